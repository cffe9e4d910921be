package store

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

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Whatever a folder holds, its copy holds the same, a second import finds it there,
// and a change of any one byte, name or file is other content.
func TestImportAnyFolder(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b c", ".git", "ü", "journal.idx", "tasks", "ui_messages.json", ".roost-x", "x.json.lock", "_index.json"})
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "")
		check(t, err)
		dir := filepath.Join(base, "any-1")
		write(t, dir, roofmt.APIName, array(apiRow(1, "user", "x")))
		for range rapid.IntRange(0, 8).Draw(rt, "files") {
			path := filepath.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "path")...)
			if os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700) == nil {
				data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "data")
				_ = os.WriteFile(filepath.Join(dir, path), data, 0o600) // some paths are folders by now
			}
		}
		s := open(t, filepath.Join(base, "root"))
		r := bring(t, s, dir, ImportOptions{})
		if r.Imported != 1 || !r.Items[0].ByteEqual {
			rt.Fatalf("%+v", r.Items)
		}
		want, got := files(t, dir), files(t, r.Items[0].Path)
		for path := range want {
			top := strings.Split(filepath.ToSlash(path), "/")[0]
			if path == "journal.idx" || strings.HasPrefix(top, ".roost-") || top == "x.json.lock" && path != top {
				delete(want, path) // of the place
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatal(d)
		}
		if again := bring(t, s, dir, ImportOptions{}); again.Same != 1 {
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
			check(t, os.Rename(victim, victim+"~"))
		} else {
			check(t, os.WriteFile(victim, append(was, 'x'), 0o600))
		}
		if item := bring(t, s, dir, ImportOptions{}).Items[0]; item.Outcome != Conflict {
			rt.Fatalf("changed: %+v", item)
		}
	})
}

// A task that another root's program owns is copied as it is acknowledged, and its
// owner's lock does not come along.
func TestImportOfOwnedTask(t *testing.T) {
	other := open(t, t.TempDir())
	k := must[*Task](t)(other.Create(context.Background(), task.Created{Task: "owned-1", Number: 1, CreatedAt: ts0}))
	defer closeTask(t, k)
	commit(t, k, task.UI, uiRow(1, "acknowledged"))
	s := open(t, t.TempDir())
	if r := bring(t, s, other.opt.Root, ImportOptions{}); r.Imported != 1 {
		t.Fatalf("%+v", r.Items)
	}
	o := own(t, s, "owned-1")
	if text := rows(o.Task.State()); !strings.Contains(text, "acknowledged") {
		t.Errorf("%s", text)
	}
	closeTask(t, o.Task)
	commit(t, k, task.UI, uiRow(2, "and its owner goes on"))
}

// What stands under an id and is no folder is nobody's task, and is not touched.
func TestImportMeetsFile(t *testing.T) {
	storage, _ := rooStorage(t, "file-1")
	s := open(t, t.TempDir())
	write(t, s.TasksDir(), "file-1", "somebody's")
	r := bring(t, s, storage, ImportOptions{OnConflict: ConflictFork})
	if r.Failed != 1 || read(t, s.TasksDir(), "file-1") != "somebody's" {
		t.Errorf("%+v", r.Items)
	}
}

// Progress names what is done and never goes back.
func TestImportProgress(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks")
	for i := range 5 {
		write(t, filepath.Join(tasks, fmt.Sprint("step-", i)), roofmt.UIName, array(uiRow(i, "x")))
	}
	s := open(t, t.TempDir())
	var last ImportProgress
	r := bring(t, s, tasks, ImportOptions{Progress: func(p ImportProgress) {
		if p.Tasks < last.Tasks || p.Files < last.Files || p.Bytes < last.Bytes || p.Of != 5 {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}})
	if want := (ImportProgress{Tasks: 5, Of: 5, Files: r.Files, Bytes: r.Bytes}); last != want || r.Files != 5 {
		t.Errorf("%+v, want %+v", last, want)
	}
}
