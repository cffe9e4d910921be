package projection_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// tracked are the records of a task whose files were touched in this order.
type touch struct {
	path, source string
	at           int64
}

func tracked(t fatal, touches ...touch) []task.FileRecord {
	s := task.New(nil)
	for i, x := range touches {
		raw, err := task.Encode(task.FileChanged{Path: x.path, Source: x.source})
		if err == nil {
			err = s.Apply(journal.Commit{Seq: uint64(i + 1), At: x.at, Events: []journal.Event{raw}})
		}
		if err != nil {
			t.Fatalf("got %+v: %v, want no error", x, err)
		}
	}
	return s.Files
}

type fatal interface{ Fatalf(string, ...any) }

func entryOf(path, state, source, read, edit, user string) string {
	return fmt.Sprintf(`{"path":%q,"record_state":%q,"record_source":%q,"roo_read_date":%s,"roo_edit_date":%s,"user_edit_date":%s}`, path, state, source, read, edit, user)
}

func recordOf(entries ...string) string {
	return `{"files_in_context":[` + strings.Join(entries, ",") + `]}`
}

func TestMergeMetadata(t *testing.T) {
	editors := entryOf("a.ts", "active", "read_tool", "5", "null", "3")
	for _, c := range []struct {
		name, base string
		touches    []touch
		want       string
	}{
		{"no base", "", []touch{{"a.ts", "read_tool", 9}}, recordOf(entryOf("a.ts", "active", "read_tool", "9", "null", "null"))},
		{"nothing to add keeps the spelling", "{ \"files_in_context\" : [ ] }\n", nil, "{ \"files_in_context\" : [ ] }\n"},
		{"another path", recordOf(editors), []touch{{"b.ts", "roo_edited", 9}}, recordOf(editors, entryOf("b.ts", "active", "roo_edited", "9", "9", "null"))},
		{
			"the same path: stale, and the dates go on", recordOf(editors), []touch{{"a.ts", "roo_edited", 9}},
			recordOf(entryOf("a.ts", "stale", "read_tool", "5", "null", "3"), entryOf("a.ts", "active", "roo_edited", "9", "9", "3")),
		},
		{
			"each of ours makes the one before stale", recordOf(editors), []touch{{"a.ts", "read_tool", 9}, {"a.ts", "user_edited", 12}},
			recordOf(entryOf("a.ts", "stale", "read_tool", "5", "null", "3"), entryOf("a.ts", "stale", "read_tool", "9", "null", "3"), entryOf("a.ts", "active", "user_edited", "9", "null", "12")),
		},
		{
			"what is in it already is not added again", recordOf(editors, entryOf("b.ts", "active", "read_tool", "9", "null", "null")), []touch{{"b.ts", "read_tool", 9}},
			recordOf(editors, entryOf("b.ts", "active", "read_tool", "9", "null", "null")),
		},
		{
			"an entry that the editor put between ours", recordOf(entryOf("b.ts", "stale", "read_tool", "9", "null", "null"), entryOf("b.ts", "active", "user_edited", "9", "null", "11")),
			[]touch{{"b.ts", "read_tool", 9}, {"b.ts", "roo_edited", 20}},
			recordOf(entryOf("b.ts", "stale", "read_tool", "9", "null", "null"), entryOf("b.ts", "stale", "user_edited", "9", "null", "11"), entryOf("b.ts", "active", "roo_edited", "20", "20", "11")),
		},
		{
			"members that nobody knows", `{"model_usage":[{"ts":1.50}],"files_in_context":[{"path":"a.ts","record_state":"active","cline_read_date":4,"x":{"y":[1, 2]}}],"z":null}`, []touch{{"a.ts", "read_tool", 9}},
			`{"model_usage":[{"ts":1.50}],"files_in_context":[{"path":"a.ts","record_state":"stale","cline_read_date":4,"x":{"y":[1,2]}},` + entryOf("a.ts", "active", "read_tool", "9", "null", "null") + `],"z":null}`,
		},
		{"a list that is none", `{"files_in_context":7,"k":1}`, []touch{{"a.ts", "read_tool", 9}}, `{"files_in_context":[` + entryOf("a.ts", "active", "read_tool", "9", "null", "null") + `],"k":1}`},
		{"no list at all", `{"k":1}`, []touch{{"a.ts", "read_tool", 9}}, `{"k":1,"files_in_context":[` + entryOf("a.ts", "active", "read_tool", "9", "null", "null") + `]}`},
		{"not an object", `[1]`, []touch{{"a.ts", "read_tool", 9}}, recordOf(entryOf("a.ts", "active", "read_tool", "9", "null", "null"))},
		{"broken", `{"files_in_context":[`, nil, recordOf()},
		{"entries that are none", `{"files_in_context":[null,7,"a.ts"]}`, []touch{{"a.ts", "read_tool", 9}}, `{"files_in_context":[null,7,"a.ts",` + entryOf("a.ts", "active", "read_tool", "9", "null", "null") + `]}`},
		{"a clock that went back", recordOf(editors), []touch{{"a.ts", "read_tool", 2}}, recordOf(entryOf("a.ts", "stale", "read_tool", "5", "null", "3"), entryOf("a.ts", "active", "read_tool", "2", "null", "3"))},
		{"the same path in other words is another one", recordOf(editors), []touch{{"./a.ts", "read_tool", 9}}, recordOf(editors, entryOf("./a.ts", "active", "read_tool", "9", "null", "null"))},
	} {
		got := string(projection.MergeFiles([]byte(c.base), tracked(t, c.touches...)))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.name, d)
		}
	}
}

// An editor and Roost that take turns leave the file that one tracker would have.
func TestMergedRecordIsOneTrackers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all, ours []touch
		file := []byte(nil)
		at := int64(100)
		for range rapid.IntRange(0, 15).Draw(r, "touches") {
			at += rapid.Int64Range(1, 3).Draw(r, "later")
			x := touch{
				rapid.SampledFrom([]string{"a.ts", "b.ts", `c "d".ts`}).Draw(r, "path"),
				rapid.SampledFrom([]string{"read_tool", "roo_edited", "user_edited", "file_mentioned"}).Draw(r, "source"), at,
			}
			all = append(all, x)
			if rapid.Bool().Draw(r, "editor") {
				// The editor's tracker adds to whatever stands in the file.
				file = projection.MergeFiles(file, tracked(r, x))
				continue
			}
			ours = append(ours, x)
			file = projection.MergeFiles(file, tracked(r, ours...))
		}
		want := string(task.MetadataJSON(tracked(r, all...)))
		if len(all) == 0 {
			want = ""
		}
		if d := cmp.Diff(want, string(file)); d != "" {
			r.Fatal(d)
		}
		if again := projection.MergeFiles(file, tracked(r, ours...)); len(all) > 0 && string(again) != string(file) {
			r.Fatalf("merged twice: %s", again)
		}
	})
}

func FuzzMergeMetadata(f *testing.F) {
	f.Add([]byte(recordOf(entryOf("a.ts", "active", "read_tool", "5", "null", "3"))), "a.ts")
	f.Add([]byte(`{"files_in_context":[{"path":1,"roo_read_date":1e999}]}`), "\xff")
	f.Fuzz(func(t *testing.T, base []byte, path string) {
		got := projection.MergeFiles(base, tracked(t, touch{path, "read_tool", 9}))
		if !esjson.Valid(got) || esjson.TypeOf(got) != esjson.TypeObject {
			t.Fatalf("got %q, want esjson.Valid(got) and esjson.TypeOf(got) = esjson.TypeObject", got)
		}
		var file struct {
			Files []json.RawMessage `json:"files_in_context"`
		}
		if err := json.Unmarshal(got, &file); err == nil && len(file.Files) == 0 {
			t.Fatalf("our record is not in %s", got)
		}
	})
}
