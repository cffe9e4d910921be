package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// Whatever a folder holds, its copy holds the same, a second import finds it there,
// and a change of any one byte, name or file is other content.
func TestImportAnyFolder(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b c", ".git", "ü", "journal.idx", "tasks", "ui_messages.json", ".roost-x", "x.json.lock", "_index.json"})
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "")
		storetest.Check(t, err)
		dir := filepath.Join(base, "any-1")
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(1, "user", "x")))
		for range rapid.IntRange(0, 8).Draw(rt, "files") {
			path := filepath.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "path")...)
			if os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700) == nil {
				data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "data")
				_ = os.WriteFile(filepath.Join(dir, path), data, 0o600) // some paths are folders by now
			}
		}
		s := storetest.Open(t, filepath.Join(base, "root"))
		r := bring(t, s, dir, importer.Options{})
		if r.Imported != 1 || !r.Items[0].ByteEqual {
			rt.Fatalf("got %+v, want r.Imported = 1 and r.Items[0].ByteEqual", r.Items)
		}
		want, got := storetest.Contents(t, dir), storetest.Contents(t, r.Items[0].Path)
		for path := range want {
			top := strings.Split(filepath.ToSlash(path), "/")[0]
			if path == "journal.idx" || strings.HasPrefix(top, ".roost-") || top == "x.json.lock" && path != top {
				delete(want, path) // of the place
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatal(d)
		}
		if again := bring(t, s, dir, importer.Options{}); again.Same != 1 {
			rt.Fatalf("again: %+v", again.Items)
		}
		var paths []string
		for path := range got {
			if path != roofmt.APIName { // what makes it a task folder stays
				paths = append(paths, path)
			}
		}
		paths = append(paths, "one more")
		slices.Sort(paths)
		victim := filepath.Join(dir, rapid.SampledFrom(paths).Draw(rt, "victim"))
		was, err := os.ReadFile(victim)
		if err == nil && rapid.Bool().Draw(rt, "renamed") {
			storetest.Check(t, os.Rename(victim, victim+"~"))
		} else {
			storetest.Check(t, os.WriteFile(victim, append(was, 'x'), 0o600))
		}
		if item := bring(t, s, dir, importer.Options{}).Items[0]; item.Outcome != api.TaskConflict {
			rt.Fatalf("changed: %+v", item)
		}
	})
}

// A task that another root's program owns is copied as it is acknowledged, and its
// owner's lock does not come along.
func TestImportOfOwnedTask(t *testing.T) {
	other := storetest.Open(t, t.TempDir())
	k := storetest.Must[*store.Task](t)(other.Create(context.Background(), task.Created{Task: "owned-1", Number: 1, CreatedAt: storetest.TS0}))
	defer storetest.Close(t, k)
	storetest.Commit(t, k, task.UI, storetest.UIRow(1, "acknowledged"))
	s := storetest.Open(t, t.TempDir())
	if r := bring(t, s, other.Root(), importer.Options{}); r.Imported != 1 {
		t.Fatalf("got %+v, want r.Imported = 1", r.Items)
	}
	o := storetest.Own(t, s, "owned-1")
	if text := storetest.Rows(o.Task.State()); !strings.Contains(text, "acknowledged") {
		t.Errorf("got %s, want strings.Contains(text, \"acknowledged\")", text)
	}
	storetest.Close(t, o.Task)
	storetest.Commit(t, k, task.UI, storetest.UIRow(2, "and its owner goes on"))
}

// What stands under an id and is no folder is nobody's task, and is not touched.
func TestImportMeetsFile(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "file-1")
	s := storetest.Open(t, t.TempDir())
	storetest.Write(t, s.TasksDir(), "file-1", "somebody's")
	r := bring(t, s, storage, importer.Options{OnConflict: api.ConflictFork})
	if r.Failed != 1 || storetest.Read(t, s.TasksDir(), "file-1") != "somebody's" {
		t.Errorf(`got %+v, want r.Failed = 1 and storetest.Read(t, s.TasksDir(), "file-1") = "somebody's"`, r.Items)
	}
}

// The progress names what is done and never goes back.
func TestImportProgress(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks")
	for i := range 5 {
		storetest.Write(t, filepath.Join(tasks, fmt.Sprint("step-", i)), roofmt.UIName, storetest.Array(storetest.UIRow(i, "x")))
	}
	s := storetest.Open(t, t.TempDir())
	var last progress.State
	r := bringWhile(t, s, tasks, importer.Options{}, func(p progress.State) {
		if p.Done < last.Done || p.Files < last.Files || p.Bytes < last.Bytes || p.Of != 5 {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	})
	if want := (progress.State{What: "importing", Done: 5, Of: 5, Files: r.Files, Bytes: r.Bytes}); last != want || r.Files != 5 {
		t.Errorf("%+v, want %+v", last, want)
	}
}
