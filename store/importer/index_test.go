package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/labels"

	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
)

// An index that names every task as it is, is not written again: an editor that
// watches it would read it anew each time, and two imports would collide for nothing.
// Items that an editor wrote with blanks stand in it without.
func TestIndexIsWrittenOnlyForAChange(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "spread")
	storetest.Write(t, dir, roofmt.ItemName, "{\n  \"id\": \"spread\",\n  \"ts\": 5,\n  \"task\": \"do  it\"\n}\n")
	root := t.TempDir()
	s := storetest.Open(t, root)
	bring(t, s, storage, importer.Options{})
	index := filepath.Join(s.TasksDir(), roofmt.IndexName)
	was := storetest.Must[os.FileInfo](t)(os.Stat(index))
	for what, again := range map[string]func(){
		"an import of what is there": func() { bring(t, s, storage, importer.Options{}) },
		"an owner that let go":       func() { storetest.Check(t, s.IndexTask(context.Background(), s.OwnRef("spread"))) },
		"nothing to import":          func() { storetest.Check(t, s.Index().Update(context.Background(), nil)) },
	} {
		again()
		if is := storetest.Must[os.FileInfo](t)(os.Stat(index)); !os.SameFile(was, is) || !is.ModTime().Equal(was.ModTime()) {
			t.Errorf("%s wrote it", what)
		}
	}
	if got := storetest.Read(t, s.TasksDir(), roofmt.IndexName); !strings.Contains(got, `{"id":"spread","ts":5,"task":"do  it"}`) {
		t.Error(got)
	}
	storetest.Write(t, filepath.Join(s.TasksDir(), "spread"), roofmt.ItemName, `{"id":"spread","ts":6}`)
	storetest.Check(t, s.IndexTask(context.Background(), s.OwnRef("spread")))
	if got := storetest.Read(t, s.TasksDir(), roofmt.IndexName); !strings.Contains(got, `{"id":"spread","ts":6}`) {
		t.Error(got)
	}
}

// An import that ended in the middle, in whatever way, is continued by doing it again:
// what is whole stays as it is, the rest comes, and the index names all of it.
func TestImportIsContinued(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	const n = 12
	for i := range n {
		dir := filepath.Join(storage, "tasks", fmt.Sprintf("task-%02d", i))
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, strings.Repeat("words ", i*100))))
		storetest.Write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":"task-%02d","ts":%d}`, i, i))
	}
	before := storetest.Tree(t, storage)
	for stop := range n {
		root := t.TempDir()
		s := storetest.Open(t, root)
		list := storetest.Must[[]importer.Original](t)(importer.FindPath(context.Background(), s, storage))
		ctx, cancel := context.WithCancel(context.Background())
		r, err := importer.Run(progress.With(ctx, func(p progress.State) {
			if p.Done == stop {
				cancel()
			}
		}), s, list, importer.Options{})
		cancel()
		if err == nil || r.Imported > n-1 {
			t.Fatalf("stopped after %d: %+v %v", stop, r, err)
		}
		there := storetest.Tree(t, s.TasksDir())
		again := bring(t, s, storage, importer.Options{})
		if again.Same != r.Imported || again.Imported != n-r.Imported || again.Failed > 0 {
			t.Errorf("stopped after %d: first %d, then %d and %d", stop, r.Imported, again.Imported, again.Same)
		}
		now := storetest.Tree(t, s.TasksDir())
		for path, sum := range there {
			if filepath.Dir(path) != s.TasksDir() && path != s.TasksDir() && now[path] != sum {
				t.Errorf("stopped after %d: %s was touched", stop, path)
			}
		}
		if ids := storetest.IndexIDs(t, s); len(ids) != n || storetest.Exists(s.TasksDir(), importer.StagesName) {
			t.Errorf("stopped after %d: index %v", stop, ids)
		}
		if third := bring(t, s, storage, importer.Options{}); third.Same != n {
			t.Errorf("got %+v, want third.Same = n", third)
		}
	}
	for path, sum := range storetest.Tree(t, storage) {
		if before[path] != sum {
			t.Errorf("%s was changed", path)
		}
	}
}

// What a person named, tagged and pinned in Roost is so after its import too: the copy
// takes the original's place in lists. It is given once, and what is done to the copy
// afterwards stays.
func TestImportBringsLabelsAlong(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "theirs")
	storetest.Write(t, filepath.Join(filepath.Dir(dir), "plain"), roofmt.UIName, storetest.Array(storetest.UIRow(1, "plain")))
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	storetest.Label(t, s, "theirs", labels.Change{Title: new("named"), Add: []string{"x", "y"}, Pinned: new(true)})
	bring(t, s, storage, importer.Options{DryRun: true})
	list, _, err := importer.FindSource(context.Background(), s, "all")
	storetest.Check(t, err)
	r := storetest.Must[api.Import](t)(importer.Run(context.Background(), s, list, importer.Options{}))
	if r.Imported != 2 {
		t.Fatalf("got %+v, want r.Imported = 2", r)
	}
	for _, item := range r.Items {
		if !item.ByteEqual || (len(item.Notes) > 0) != (item.ID == "theirs") {
			t.Errorf("got %+v, want item.ByteEqual and (len(item.Notes) > 0) = (item.ID == \"theirs\")", item)
		}
	}
	mine := filepath.Join(s.TasksDir(), "theirs")
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		if storetest.Read(t, dir, name) != storetest.Read(t, mine, name) {
			t.Errorf("%s is another one", name)
		}
	}
	if storetest.Exists(filepath.Join(s.TasksDir(), "plain"), "journal.jsonl") {
		t.Error("a task without labels was adopted")
	}
	say := func(want string) {
		t.Helper()
		all := storetest.List(t, storetest.Open(t, root, storage), store.Filter{TaskFilter: api.TaskFilter{Words: "theirs"}}).Items
		if len(all) != 1 || all[0].Source != store.OwnSource || storetest.Labels(all[0]) != want {
			t.Errorf("got %+v, want len(all) = 1 and all[0].Source = store.OwnSource and storetest.Labels(all[0]) = %v",
				all, want)
		}
	}
	say("named [x y] true")
	storetest.Label(t, s, "roost:theirs", labels.Change{Untitled: true, Remove: []string{"x", "y"}, Pinned: new(false)})
	say("do it [] false")
	bring(t, s, storage, importer.Options{})
	say("do it [] false")
	storetest.Undo(t, s, "roost:theirs", false)
	say("named [x y] true")

	// Somebody works in the copy: that it is not labelled is said, and it is there.
	s = storetest.Open(t, t.TempDir(), storage)
	bring(t, s, storage, importer.Options{})
	storetest.Label(t, s, store.SourceName(filepath.Dir(dir))+":theirs", labels.Change{Title: new("late")})
	k := storetest.Own(t, s, "roost:theirs").Task
	r = bring(t, s, storage, importer.Options{})
	storetest.Close(t, k)
	for _, item := range r.Items {
		if item.Outcome != api.TaskSame || item.ID == "theirs" && !strings.Contains(strings.Join(item.Notes, ""), "could not be copied") {
			t.Errorf(`got %+v, want item.Outcome = api.TaskSame and (item.ID != "theirs" or strings.Contains(strings.Join(item.Notes, ""), "could not be copied"))`,
				item)
		}
	}
}
