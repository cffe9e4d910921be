package filelog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

// A commit that is handed over in memory is the one that its line gives.
func TestHandedOverIsWhatTheLineSays(t *testing.T) {
	event := rapid.OneOf(
		rapid.Just(`{}`), rapid.Just("{\n  \"a\": [1,\r\n 2]\n}"), rapid.Just(`{"a":"\ud800","b":1e400}`),
		rapid.Map(rapid.StringMatching(`[a-z ]{0,20}`), func(s string) string { return `{"t":"` + s + `" }` }),
	)
	rapid.Check(t, func(t *rapid.T) {
		c := journal.Commit{
			Seq: rapid.Uint64Range(1, 1<<60).Draw(t, "seq"), Epoch: rapid.Uint64Range(1, 1<<60).Draw(t, "epoch"),
			At: rapid.Int64().Draw(t, "at"), By: string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "by")),
		}
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			c.Events = append(c.Events, journal.Event(event.Draw(t, "event")))
		}
		switch rapid.IntRange(0, 2).Draw(t, "blobs") {
		case 1:
			c.Blobs = []journal.Hash{}
		case 2:
			c.Blobs = []journal.Hash{journal.Hash(strings.Repeat("ab", 32))}
		}
		line, err := journal.EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		want, err := journal.DecodeCommit(line)
		if err != nil {
			t.Fatal(err)
		}
		e := handover(c, line)
		if diff := cmp.Diff(want, e.commit); diff != "" || e.size != int64(len(line)) {
			t.Fatalf("size %d of %d\n%s", e.size, len(line), diff)
		}
	})
}

func pieces(from uint64, sizes ...int64) (out []entry) {
	for i, size := range sizes {
		out = append(out, entry{commit: journal.Commit{Seq: from + uint64(i)}, size: size})
	}
	return out
}

func seqsOf(list []entry) (out []uint64) {
	for _, e := range list {
		out = append(out, e.commit.Seq)
	}
	return out
}

func TestTailGivesWhatIsBehindAnOffset(t *testing.T) {
	var tl tail
	tl.begin(100)
	tl.add(pieces(1, 10, 20))
	tl.add(pieces(3, 30))
	for _, c := range []struct {
		off  int64
		want []uint64
		ok   bool
	}{
		{0, nil, false}, {99, nil, false}, {100, []uint64{1, 2, 3}, true}, {101, nil, false}, {110, []uint64{2, 3}, true},
		{130, []uint64{3}, true}, {160, nil, true}, {161, nil, false},
	} {
		list, ok := tl.from(c.off)
		if diff := cmp.Diff(c.want, seqsOf(list)); ok != c.ok || diff != "" {
			t.Errorf("from %d: %v\n%s", c.off, ok, diff)
		}
	}
}

// However much goes through it, a tail holds a bounded part, and whoever follows
// closely gets each commit once and in order.
func TestTailIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tl tail
		tl.begin(0)
		next, end, at, got := uint64(1), int64(0), int64(0), uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			size := rapid.OneOf(rapid.Int64Range(1, tailBytes/3), rapid.Int64Range(tailBytes-1, 4*tailBytes)).Draw(t, "size")
			tl.add(pieces(next, size))
			next, end = next+1, end+size
			var kept int64
			for _, e := range tl.entries {
				kept += e.size
			}
			if kept != tl.bytes || kept > tailBytes && len(tl.entries) > 1 {
				t.Fatalf("it holds %d bytes in %d commits and says %d", kept, len(tl.entries), tl.bytes)
			}
			if list, ok := tl.from(end - size); !ok || fmt.Sprint(seqsOf(list)) != fmt.Sprint([]uint64{next - 1}) {
				t.Fatalf("it gives %v, not the newest, commit %d of %d bytes", seqsOf(list), next-1, size)
			}
			if !rapid.Bool().Draw(t, "look") {
				continue
			}
			list, ok := tl.from(at)
			if !ok { // too far behind: read from the file, and go on from its end
				at, got = end, next-1
				continue
			}
			for _, e := range list {
				if e.commit.Seq != got+1 || e.start != at {
					t.Fatalf("commit %d at %d, want %d at %d", e.commit.Seq, e.start, got+1, at)
				}
				got, at = e.commit.Seq, at+e.size
			}
		}
	})
}

// A follower takes a copy: what the owner drops meanwhile stays whole for it.
func TestWhatWasTakenIsNotTakenBack(t *testing.T) {
	var tl tail
	tl.begin(0)
	tl.add(pieces(1, 1000, 1000))
	list, _ := tl.from(0)
	tl.add(pieces(3, tailBytes))
	if got := fmt.Sprint(seqsOf(list)); got != "[1 2]" {
		t.Fatal(got)
	}
	if _, ok := tl.from(0); ok {
		t.Fatal("the tail still knows what it dropped")
	}
}
