package known_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/known"
)

func record(seq uint64, path, source, hash string) task.FileRecord {
	return task.FileRecord{Path: path, Source: source, Hash: hash, RecordedAt: int64(seq) * 10, Seq: seq}
}

// Seen is what the model learned or made; being told that somebody changed a file does
// not make it known.
func TestKnowledge(t *testing.T) {
	var k known.Files
	k.Follow([]task.FileRecord{
		record(1, "a", "read_tool", "1"), record(2, "b", "file_mentioned", "2"), record(3, "a", "user_edited", "3"),
		record(4, "c", "roo_edited", ""), record(5, "d", "user_edited", "5"),
	})
	type row struct{ Path, Source, Seen, Last string }
	var got []row
	for _, f := range k.All() {
		got = append(got, row{f.Path, f.Source, f.Seen.Hash, f.Last.Hash})
	}
	want := []row{{"a", "user_edited", "1", "3"}, {"b", "file_mentioned", "2", "2"}, {"c", "roo_edited", "", ""}, {"d", "user_edited", "", "5"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !k.File("c").Seen.Gone() || k.File("d").Seen.Path != "" || k.File("none") != nil {
		t.Error("a file that was removed is gone, one that was only told of was never seen")
	}
}

// What can be judged has a content, a time, or is known to be gone.
func TestJudgeable(t *testing.T) {
	for _, tt := range []struct {
		r          task.FileRecord
		gone, able bool
	}{
		{task.FileRecord{Source: "roo_edited"}, true, true},
		{task.FileRecord{Source: "user_edited"}, true, true},
		{task.FileRecord{Source: "read_tool"}, false, false},
		{task.FileRecord{Source: "read_tool", MTime: 1}, false, true},
		{task.FileRecord{Source: "roo_edited", Hash: "x"}, false, true},
	} {
		if tt.r.Gone() != tt.gone || tt.r.Judgeable() != tt.able {
			t.Errorf("%+v: gone %v, judgeable %v", tt.r, tt.r.Gone(), tt.r.Judgeable())
		}
	}
}

// Following a list piece by piece, over rewinds that cut it and go on otherwise, equals
// reading it at once.
func TestKnowledgeFollows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var k known.Files
		var all []task.FileRecord
		seq := uint64(0)
		for range rapid.IntRange(1, 8).Draw(r, "rounds") {
			if rapid.Bool().Draw(r, "rewind") {
				all = all[:rapid.IntRange(0, len(all)).Draw(r, "to")]
			}
			for range rapid.IntRange(0, 4).Draw(r, "records") {
				seq++
				path := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "path")
				source := rapid.SampledFrom([]string{"read_tool", "roo_edited", "user_edited", "file_mentioned"}).Draw(r, "source")
				all = append(all[:len(all):len(all)], record(seq, path, source, fmt.Sprint(seq)))
			}
			k.Follow(all)
			var whole known.Files
			whole.Follow(all)
			if d := cmp.Diff(whole.All(), k.All()); d != "" {
				r.Fatal(d)
			}
		}
	})
}
