package projection_test

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/store/projection"
)

// watcher does what Roo's tracker adds to the records: it turns changes on the disk
// into records of their own. Ours judges by content instead (package workspace), so
// this stands here, and only the records are under test.
type watcher struct {
	touches []touch
	watched []string        // spellings, in the order in which they were first tracked
	own     map[string]bool // edited by the agent: the next event is not the user's
}

func (w *watcher) track(file, source string, at int64) {
	w.touches = append(w.touches, touch{file, source, at})
	if !slices.Contains(w.watched, file) {
		w.watched = append(w.watched, file)
	}
	if source == "roo_edited" {
		w.own[file] = true
	}
}

// change returns the spellings of the file that were told of it.
func (w *watcher) change(file string, at int64) (told []string) {
	for _, spelling := range slices.Clone(w.watched) {
		switch {
		case path.Clean(spelling) != path.Clean(file):
		case w.own[spelling]:
			delete(w.own, spelling)
		default:
			w.track(spelling, "user_edited", at)
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

// anew are the records of a file that is written anew: one for each path.
func anew(t *testing.T, touches []touch) string {
	t.Helper()
	var entries []string
	seen := map[string]bool{}
	for _, x := range touches {
		at := strconv.FormatInt(x.at, 10)
		read, edit, user := at, "null", "null"
		switch x.source {
		case "roo_edited":
			edit = at
		case "user_edited":
			read, user = "null", at
		}
		if seen[x.path] {
			t.Fatalf("%s is tracked twice, and no rule says what is wanted", x.path)
		}
		seen[x.path] = true
		entries = append(entries, entryOf(x.path, "active", x.source, read, edit, user))
	}
	return recordOf(entries...)
}

// The text that replaced the file from outside is the base of what is written, as it is
// when a task of another program is adopted. By choice no record is lost where that text is
// no JSON object, or where Roo loses one of two spellings; and no file is tracked at the
// time 0, which means never here.
func TestVectorsFileContext(t *testing.T) {
	conformance.Run(t, "file_context", func(t *testing.T, c conformance.Case) (choice bool) {
		w := &watcher{own: map[string]bool{}}
		var lost []string // spellings whose records Roo loses
		var base []byte   // the text that replaced the file
		before := 0       // files tracked until then
		never := false
		for _, raw := range c.Input.Get("ops").List() {
			op := conformance.Value(raw)
			file, at := op.Str("path"), op.Int("at", 0)
			switch kind := op.Str("op"); {
			case c.Input.Bool("no_workspace", false):
			case kind == "track":
				w.track(file, op.Str("source"), at)
				never = never || at == 0
			case kind == "change":
				// Roo writes the records of all spellings at once, from what it read
				// before: the last one wins.
				if told := w.change(file, at); len(told) > 1 {
					choice, lost = true, append(lost, told[:len(told)-1]...)
				}
			case kind == "restart":
				w.watched, w.own = nil, map[string]bool{}
			case kind == "overwrite":
				base, before = []byte(op.Str("text")), len(w.touches)
			}
		}
		want := c.Want.Str("metadata_text")
		if !c.Want.Has("metadata_text") || string(c.Want.Get("metadata_text")) == "null" {
			if len(w.touches) > 0 {
				t.Errorf("%d records where Roo has none", len(w.touches))
			}
			return choice
		}
		touches := w.touches
		switch {
		case base == nil:
		case !esjson.Valid(base) || esjson.TypeOf(base) != esjson.TypeObject:
			choice, want = true, anew(t, touches)
		default: // Roo knows what the text holds, and no more; the journal knows all
			choice, touches = before > 0, touches[before:]
		}
		got := string(projection.MergeFiles(base, tracked(t, touches...)))
		if never {
			choice, want = true, strings.ReplaceAll(want, `_date":0`, `_date":null`)
		}
		if len(lost) > 0 {
			got, want = string(without([]byte(got), lost)), string(without([]byte(want), lost))
		}
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		return choice
	})
}
