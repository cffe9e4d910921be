package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// cached is the same store with a cache folder. What it reads is believed at once:
// the tests give every change a time of its own.
func cached(t testing.TB, s *Store, cache string) *Store {
	t.Helper()
	o := s.opt
	o.Cache = cache
	out := fixture.Must[*Store](t)(Open(o))
	out.wait, out.calmIn = s.wait, 0
	return out
}

// page is a list as it is printed.
func page(t testing.TB, s *Store, f Filter) string {
	t.Helper()
	got := fixture.Must[Listing](t)(s.List(context.Background(), f))
	return string(fixture.Must[[]byte](t)(json.MarshalIndent(got, "", " ")))
}

var filters = []Filter{
	{}, {TaskFilter: api.TaskFilter{Empty: true}}, {TaskFilter: api.TaskFilter{Sort: "cost", Limit: 2}}, {TaskFilter: api.TaskFilter{Sort: "oldest", Limit: 3, Cursor: Filter{TaskFilter: api.TaskFilter{Sort: "oldest"}}.cursor(position{ts: ts0 + 1})}}, {TaskFilter: api.TaskFilter{Words: "DO it"}}, {TaskFilter: api.TaskFilter{Words: "fresh"}}, {TaskFilter: api.TaskFilter{Tag: "kept"}},
	{TaskFilter: api.TaskFilter{Status: "interrupted"}}, {TaskFilter: api.TaskFilter{Damaged: true}}, {TaskFilter: api.TaskFilter{Workspace: "/w"}}, {TaskFilter: api.TaskFilter{Tree: true, Limit: 1}}, {TaskFilter: api.TaskFilter{Source: "roo"}}, {TaskFilter: api.TaskFilter{Since: ts0 + 3, Model: "sonnet"}},
	{TaskFilter: api.TaskFilter{MinCost: amount(500_000)}}, {TaskFilter: api.TaskFilter{MaxCost: amount(500_000), Sort: "tokens"}},
}

func amount(micros money.USD) *money.USD { return &micros }

// world is some storages that change.
type world struct {
	t       *rapid.T
	s       *Store
	storage []string
	now     time.Time
	renames bool // files are put in place by renaming, as Roo does
}

// tick gives a file or folder a time that nothing had before.
func (w *world) tick(path string) {
	w.now = w.now.Add(time.Millisecond)
	if err := os.Chtimes(path, w.now, w.now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
}

func (w *world) put(dir, name, text string) {
	_ = os.MkdirAll(dir, 0o700)
	_, had := os.Lstat(filepath.Join(dir, name))
	if w.renames {
		if err := renamed(filepath.Join(dir, name), []byte(text)); err != nil {
			_ = os.Remove(filepath.Join(dir, ".renamed"))
			return
		}
		w.tick(dir)
	} else if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		return // a folder stands there
	}
	w.tick(filepath.Join(dir, name))
	if had != nil {
		w.tick(dir)
		w.tick(filepath.Dir(dir))
	}
}

// change does something to a task or to what stands around it.
func (w *world) change(cache string) string {
	t, ctx := w.t, context.Background()
	n := rapid.IntRange(0, len(w.storage)-1).Draw(t, "storage")
	tasks := filepath.Join(w.storage[n], "tasks")
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "new"}).Draw(t, "id")
	dir := filepath.Join(tasks, id)
	file := rapid.SampledFrom([]string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName, roofmt.LegacyName}).Draw(t, "file")
	path := filepath.Join(dir, file)
	what := rapid.SampledFrom([]string{
		"rewrite", "rewrite", "append", "cut", "remove file", "touch", "garbage", "remove", "rename", "copy", "link", "index", "lock", "leftover",
		"tag", "title", "hide", "own", "commit", "subtask", "no rows", "damaged rows", "cut rows", "folder for file", "other program",
	}).Draw(t, "what")
	switch what {
	case "rewrite":
		text := array(uiRow(1, "do it "+rapid.SampledFrom([]string{"now", "fresh", "soon"}).Draw(t, "words")), fmt.Sprintf(
			`{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"cost\":%d}"}`, ts0+rapid.IntRange(2, 9).Draw(t, "ts"), rapid.IntRange(0, 9).Draw(t, "in"), rapid.IntRange(0, 3).Draw(t, "cost")))
		switch file {
		case roofmt.APIName:
			text = array(apiRow(1, "user", "do it"), apiRow(2, "assistant", strings.Repeat("x", rapid.IntRange(0, 3).Draw(t, "n"))))
		case roofmt.ItemName:
			text = fmt.Sprintf(`{"id":%q,"number":%d,"ts":%d,"task":"do it by item","workspace":"/w"}`, id, rapid.IntRange(1, 5).Draw(t, "n"), ts0)
		case roofmt.MetadataName:
			text = `{"files_in_context":[]}` + strings.Repeat(" ", rapid.IntRange(0, 3).Draw(t, "n"))
		}
		w.put(dir, file, text)
	case "append":
		if old, err := os.ReadFile(path); err == nil {
			w.put(dir, file, string(old)+rapid.SampledFrom([]string{" ", "]", "x"}).Draw(t, "end"))
		}
	case "cut":
		if old, err := os.ReadFile(path); err == nil {
			w.put(dir, file, string(old[:rapid.IntRange(0, len(old)).Draw(t, "at")]))
		}
	case "garbage":
		w.put(dir, file, "\x00\x01 not JSON")
	case "remove file":
		_ = os.RemoveAll(path)
		w.tick(dir)
	case "folder for file":
		_ = os.Remove(path)
		_ = os.MkdirAll(path, 0o700)
		w.tick(dir)
	case "touch":
		w.tick(path)
		if w.renames {
			w.tick(dir)
		}
	case "remove":
		_ = os.RemoveAll(dir)
		w.tick(tasks)
	case "rename":
		_ = os.Rename(dir, filepath.Join(tasks, "renamed"))
		w.tick(tasks)
	case "copy":
		_ = os.MkdirAll(tasks, 0o700)
		other := filepath.Join(w.storage[1-n], "tasks", id)
		_ = os.RemoveAll(other)
		_ = os.CopyFS(other, os.DirFS(dir))
		w.tick(filepath.Dir(other))
	case "link":
		_ = os.Symlink(filepath.Join(w.storage[1-n], "tasks", id), filepath.Join(tasks, "linked"))
		w.tick(tasks)
	case "index":
		w.put(tasks, roofmt.IndexName, fmt.Sprintf(`{"version":1,"entries":[{"id":%q,"ts":%d,"task":"by index","totalCost":%d}]}`, id, ts0+4, rapid.IntRange(0, 2).Draw(t, "cost")))
	case "lock":
		_ = os.Mkdir(path+".lock", 0o700)
		w.tick(dir)
	case "leftover":
		w.put(dir, ".ui_messages.json.new_1700000000000_abc.tmp", array(uiRow(1, "do it from a leftover")))
	case "tag", "title", "hide":
		ref, err := w.s.Find(ctx, id)
		if err != nil {
			break
		}
		switch what {
		case "tag":
			err = Rooms.Label(ctx, w.s, ref, nil, "kept")
		case "title":
			title := "fresh title"
			err = Rooms.Label(ctx, w.s, ref, &title)
		default:
			_, err = Rooms.Delete(ctx, w.s, ref)
		}
		_ = err // a task that cannot be labelled or deleted stays as it is
	case "own", "commit", "subtask":
		w.own(ctx, what)
	case "no rows":
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(filepath.Join(cache, catalog.Name+end))
		}
	case "cut rows", "damaged rows":
		rows := filepath.Join(cache, catalog.Name)
		b, err := os.ReadFile(rows)
		if err != nil || len(b) == 0 {
			break
		}
		if at := rapid.IntRange(0, len(b)-1).Draw(t, "at"); what == "cut rows" {
			b = b[:at]
		} else {
			b[at] ^= 0x41
		}
		_ = os.WriteFile(rows, b, 0o600)
	case "other program":
		if known := w.s.readRows(ctx, catalog.Summaries); known.DB() != nil {
			for _, src := range known.Sources() {
				ch := catalog.Change{Source: src.Source, Reset: true}
				for i := range src.Rows {
					ch.Put = append(ch.Put, &src.Rows[i])
				}
				if err := known.DB().Keep(ctx, build()+1, []catalog.Change{ch}, 0, time.Second); err != nil {
					t.Fatal(err)
				}
			}
			known.Close()
		}
	}
	return what
}

// own does something to a task of Roost's own.
func (w *world) own(ctx context.Context, what string) {
	list, _ := names(w.s.TasksDir())
	var o *Task
	var err error
	if what == "commit" && len(list) > 0 {
		owned, failed := w.s.Own(ctx, Ref{ID: list[0], Source: OwnSource, Tool: "roost", Dir: filepath.Join(w.s.TasksDir(), list[0]), Log: filepath.Join(w.s.TasksDir(), list[0]), Own: true})
		if failed != nil {
			w.t.Fatal(failed)
		}
		o = owned.Task
	} else {
		parent := ""
		if what == "subtask" && len(list) > 0 {
			parent = list[0]
		}
		o, err = w.s.Create(ctx, task.Created{Task: fmt.Sprint("own", len(list)), Number: 1, CreatedAt: ts0, Parent: parent})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	title := fmt.Sprint("do it myself ", rapid.IntRange(0, 9).Draw(w.t, "title"))
	err = errors.Join(o.Commit(ctx, task.Changed{Title: &title}), o.Close(ctx))
	if err != nil {
		w.t.Fatal(err)
	}
}

// A list from kept rows is the list without them, whatever happened in between, for
// every filter, and looking changes nothing.
func TestKeptRowsAreNeverStale(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes one call after another, and the race detector takes ten times as long")
	}
	rapid.Check(t, func(r *rapid.T) {
		base := fixture.Must[string](t)(os.MkdirTemp("", "rows"))
		defer os.RemoveAll(base)
		w := &world{t: r, now: time.Now().Add(-time.Hour), storage: []string{filepath.Join(base, "one"), filepath.Join(base, "rooveterinaryinc.roo-cline")}}
		for _, s := range w.storage {
			fixture.NoError(t, os.MkdirAll(filepath.Join(s, "tasks"), 0o700))
			for _, id := range []string{"a", "b"} {
				w.put(filepath.Join(s, "tasks", id), roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "more of "+s+id)))
			}
		}
		cache := filepath.Join(base, "cache")
		plain := open(t, filepath.Join(base, "root"), w.storage...)
		w.s = cached(t, plain, cache)
		if w.renames = rapid.Bool().Draw(r, "renames"); w.renames { // then folders show every change
			w.s.pace = pace{every: time.Hour}
		}
		second := cached(t, plain, cache) // another process, which does not always look
		second.pace = w.s.pace
		var done []string
		for range rapid.IntRange(1, 8).Draw(r, "changes") {
			done = append(done, w.change(cache))
			if rapid.IntRange(0, 3).Draw(r, "look") == 0 {
				continue // several changes between two lists
			}
			f := rapid.SampledFrom(filters).Draw(r, "filter")
			looks := w.s
			if rapid.Bool().Draw(r, "second") {
				looks = second
			}
			if diff := cmp.Diff(page(t, plain, f), page(t, looks, f)); diff != "" {
				r.Fatalf("after %v, %+v: -without +with rows\n%s", done, f, diff)
			}
		}
		before := tree(t, filepath.Join(base, "one"))
		for _, f := range filters {
			if diff := cmp.Diff(page(t, plain, f), page(t, w.s, f)); diff != "" {
				r.Fatalf("after %v, %+v: -without +with rows\n%s", done, f, diff)
			}
		}
		if diff := cmp.Diff(before, tree(t, filepath.Join(base, "one"))); diff != "" {
			r.Fatalf("looking changed something\n%s", diff)
		}
	})
}
