package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// An index that names every task as it is, is not written again: an editor that
// watches it would read it anew each time, and two imports would collide for nothing.
// Items that an editor wrote with blanks stand in it without.
func TestIndexIsWrittenOnlyForAChange(t *testing.T) {
	storage, dir := rooStorage(t, "spread")
	write(t, dir, roofmt.ItemName, "{\n  \"id\": \"spread\",\n  \"ts\": 5,\n  \"task\": \"do  it\"\n}\n")
	root := t.TempDir()
	s := open(t, root)
	bring(t, s, storage, ImportOptions{})
	index := filepath.Join(s.TasksDir(), roofmt.IndexName)
	was := must[os.FileInfo](t)(os.Stat(index))
	for what, again := range map[string]func(){
		"an import of what is there": func() { bring(t, s, storage, ImportOptions{}) },
		"an owner that let go":       func() { check(t, s.IndexTask(context.Background(), s.OwnRef("spread"))) },
		"nothing to import":          func() { check(t, s.UpdateIndex(context.Background(), nil)) },
	} {
		again()
		if is := must[os.FileInfo](t)(os.Stat(index)); !os.SameFile(was, is) || !is.ModTime().Equal(was.ModTime()) {
			t.Errorf("%s wrote it", what)
		}
	}
	if got := read(t, s.TasksDir(), roofmt.IndexName); !strings.Contains(got, `{"id":"spread","ts":5,"task":"do  it"}`) {
		t.Error(got)
	}
	write(t, filepath.Join(s.TasksDir(), "spread"), roofmt.ItemName, `{"id":"spread","ts":6}`)
	check(t, s.IndexTask(context.Background(), s.OwnRef("spread")))
	if got := read(t, s.TasksDir(), roofmt.IndexName); !strings.Contains(got, `{"id":"spread","ts":6}`) {
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
		write(t, dir, roofmt.UIName, array(uiRow(1, strings.Repeat("words ", i*100))))
		write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":"task-%02d","ts":%d}`, i, i))
	}
	before := tree(t, storage)
	for stop := range n {
		root := t.TempDir()
		s := open(t, root)
		list := must[[]Importable](t)(s.ImportPath(context.Background(), storage))
		ctx, cancel := context.WithCancel(context.Background())
		r, err := s.Import(ctx, list, ImportOptions{Progress: func(p ImportProgress) {
			if p.Tasks == stop {
				cancel()
			}
		}})
		cancel()
		if err == nil || r.Imported > n-1 {
			t.Fatalf("stopped after %d: %+v %v", stop, r, err)
		}
		there := tree(t, s.TasksDir())
		again := bring(t, s, storage, ImportOptions{})
		if again.Same != r.Imported || again.Imported != n-r.Imported || again.Failed > 0 {
			t.Errorf("stopped after %d: first %d, then %d and %d", stop, r.Imported, again.Imported, again.Same)
		}
		now := tree(t, s.TasksDir())
		for path, sum := range there {
			if filepath.Dir(path) != s.TasksDir() && path != s.TasksDir() && now[path] != sum {
				t.Errorf("stopped after %d: %s was touched", stop, path)
			}
		}
		if ids := strings.Fields(indexIDs(t, root)); len(ids) != n || exists(s.TasksDir(), importStages) {
			t.Errorf("stopped after %d: index %v", stop, ids)
		}
		if third := bring(t, s, storage, ImportOptions{}); third.Same != n {
			t.Errorf("%+v", third)
		}
	}
	for path, sum := range tree(t, storage) {
		if before[path] != sum {
			t.Errorf("%s was changed", path)
		}
	}
}

// What a person named, tagged and pinned in Roost is so after its import too: the copy
// takes the original's place in lists. It is given once, and what is done to the copy
// afterwards stays.
func TestImportBringsLabelsAlong(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	write(t, filepath.Join(filepath.Dir(dir), "plain"), roofmt.UIName, array(uiRow(1, "plain")))
	root := t.TempDir()
	s := open(t, root, storage)
	label(t, s, "theirs", Labels{Title: ptr("named"), Add: []string{"x", "y"}, Pinned: ptr(true)})
	bring(t, s, storage, ImportOptions{DryRun: true})
	list, _, err := s.ImportSource(context.Background(), "all")
	check(t, err)
	r := must[ImportReport](t)(s.Import(context.Background(), list, ImportOptions{}))
	if r.Imported != 2 {
		t.Fatalf("%+v", r)
	}
	for _, item := range r.Items {
		if !item.ByteEqual || (len(item.Notes) > 0) != (item.ID == "theirs") {
			t.Errorf("%+v", item)
		}
	}
	mine := filepath.Join(s.TasksDir(), "theirs")
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		if read(t, dir, name) != read(t, mine, name) {
			t.Errorf("%s is another one", name)
		}
	}
	if exists(filepath.Join(s.TasksDir(), "plain"), "journal.jsonl") {
		t.Error("a task without labels was adopted")
	}
	say := func(want string) {
		t.Helper()
		all := listing(t, open(t, root, storage), Filter{Query: "theirs"}).Items
		if len(all) != 1 || all[0].Source != OwnSource || labels(all[0]) != want {
			t.Errorf("%+v", all)
		}
	}
	say("named [x y] true")
	label(t, s, "roost:theirs", Labels{Untitled: true, Remove: []string{"x", "y"}, Pinned: ptr(false)})
	say("do it [] false")
	bring(t, s, storage, ImportOptions{})
	say("do it [] false")
	undo(t, s, "roost:theirs", false)
	say("named [x y] true")

	// Somebody works in the copy: that it is not labelled is said, and it is there.
	s = open(t, t.TempDir(), storage)
	bring(t, s, storage, ImportOptions{})
	label(t, s, sourceName(filepath.Dir(dir))+":theirs", Labels{Title: ptr("late")})
	k := own(t, s, "roost:theirs").Task
	r = bring(t, s, storage, ImportOptions{})
	closeTask(t, k)
	for _, item := range r.Items {
		if item.Outcome != Same || item.ID == "theirs" && !strings.Contains(strings.Join(item.Notes, ""), "did not come along") {
			t.Errorf("%+v", item)
		}
	}
}
