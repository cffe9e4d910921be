package task_test

import (
	"path"
	"slices"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
	"github.com/roost-dev/roost/task"
)

// watcher does what Roo's tracker adds to the records: it turns changes on the disk
// into records of their own. Ours judges by content instead (package workspace), so
// this stands here, and only the records are under test.
type watcher struct {
	state   *task.State
	watched []string        // spellings, in the order in which they were first tracked
	own     map[string]bool // edited by the agent: the next event is not the user's
	seq     uint64
}

func (w *watcher) track(t *testing.T, file, source string, at int64) {
	t.Helper()
	w.seq++
	c := encode(t, w.seq, task.FileChanged{Path: file, Source: source})
	c.At = at
	if err := w.state.Apply(c); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.watched, file) {
		w.watched = append(w.watched, file)
	}
	if source == "roo_edited" {
		w.own[file] = true
	}
}

// change returns the spellings of the file that were told of it.
func (w *watcher) change(t *testing.T, file string, at int64) (told []string) {
	t.Helper()
	for _, spelling := range slices.Clone(w.watched) {
		switch {
		case path.Clean(spelling) != path.Clean(file):
		case w.own[spelling]:
			delete(w.own, spelling)
		default:
			w.track(t, spelling, "user_edited", at)
			told = append(told, spelling)
		}
	}
	return told
}

// without leaves the records of some paths out.
func without(metadata []byte, paths []string) []byte {
	var kept [][]byte
	for _, r := range conformance.Value(metadata).Get("files_in_context").List() {
		if !slices.Contains(paths, conformance.Value(r).Str("path")) {
			kept = append(kept, r)
		}
	}
	return esjson.Set([]byte("{}"), "files_in_context", conformance.Array(kept))
}

func TestVectorsFileContext(t *testing.T) {
	conformance.Run(t, "file_context", func(t *testing.T, c conformance.Case) (choice bool) {
		w := &watcher{state: task.New(nil), own: map[string]bool{}}
		var lost []string // spellings whose records Roo loses
		kept := 0         // records at the time when the file was replaced from outside
		for _, raw := range c.Input.Get("ops").List() {
			op := conformance.Value(raw)
			file, at := op.Str("path"), op.Int("at", 0)
			switch kind := op.Str("op"); {
			case c.Input.Bool("no_workspace", false):
			case kind == "track":
				w.track(t, file, op.Str("source"), at)
			case kind == "change":
				// Roo writes the records of all spellings at once, from what it read
				// before: the last one wins.
				if told := w.change(t, file, at); len(told) > 1 {
					choice, lost = true, append(lost, told[:len(told)-1]...)
				}
			case kind == "restart":
				w.watched, w.own = nil, map[string]bool{}
			case kind == "overwrite":
				// Roo forgets all that it knew. The journal does not.
				choice, kept = true, len(w.state.Files)
			}
		}
		if !c.Want.Has("metadata_text") || string(c.Want.Get("metadata_text")) == "null" {
			if len(w.state.Files) > 0 {
				t.Errorf("%d records where Roo has none", len(w.state.Files))
			}
			return choice
		}
		got, want := task.MetadataJSON(w.state.Files[kept:]), []byte(c.Want.Str("metadata_text"))
		if len(lost) > 0 {
			got, want = without(got, lost), without(want, lost)
		}
		if string(got) != string(want) {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		return choice
	})
}
