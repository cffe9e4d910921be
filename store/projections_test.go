package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// The record is derived: whatever became of it, the task is read and continued as
// before, and nothing counts as changed.
func TestTheRecordMayBeAnything(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"files":7}`, `{"files":null,"seq":-1}`, `{"seq":99999,"files":{"ui_messages.json":{"sha256":"","size":-5}}}`, strings.Repeat("\x00", 50)} {
		s, dir, want := continued(t)
		ref := fixture.Must[Ref](t)(s.Find(context.Background(), "live-one"))
		write(t, ref.Log, projection.Name, text)
		if v := view(t, s, "live-one"); len(v.Pending) != 0 || rows(v.State) != want {
			t.Errorf("%q: pending %+v", text, v.Pending)
		}
		o := own(t, s, "live-one")
		if len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
			t.Errorf("%q: got %+v, want len(o.Task.Intakes()) = 0 and rows(o.Task.State()) = %v", text, o.Task.Intakes(), want)
		}
		commit(t, o.Task, task.UI, uiRow(9, "on"))
		closeTask(t, o.Task)
		if got := read(t, dir, roofmt.UIName); got != with(fourRows, uiRow(9, "on")) {
			t.Errorf("%q: rows %s", text, got)
		}
	}
}

// Nothing is written while nothing changes, however often a task is taken over.
func TestProjectionsRestWhileNothingChanges(t *testing.T) {
	s, dir, _ := continued(t)
	own1 := filepath.Join(t.TempDir(), "own")
	s2 := open(t, own1)
	closeTask(t, create(t, s2, "still"))
	for _, c := range []struct {
		s   *Store
		id  string
		dir string
	}{{s, "live-one", dir}, {s2, "still", filepath.Join(own1, "tasks", "still")}} {
		before := map[string]string{}
		for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
			before[name] = tree(t, filepath.Join(c.dir, name))[filepath.Join(c.dir, name)]
		}
		for range 3 {
			closeTask(t, own(t, c.s, c.id).Task)
		}
		for name, want := range before {
			if got := tree(t, filepath.Join(c.dir, name))[filepath.Join(c.dir, name)]; got != want {
				t.Errorf("%s: %s was written again: %s, before %s", c.id, name, got, want)
			}
		}
	}
}

// A run does not wait for its projections; they come behind by themselves.
func TestProjectionsComeBehind(t *testing.T) {
	s := open(t, t.TempDir())
	k := create(t, s, "behind")
	commit(t, k, task.UI, uiRow(2, "soon"))
	path := filepath.Join(s.TasksDir(), "behind", roofmt.UIName)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "soon") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no projection came")
		}
	}
	closeTask(t, k)
}

// Files of ours are for their owner; a file that an editor shares keeps its mode.
func TestModesOfProjections(t *testing.T) {
	s, dir, _ := continued(t)
	fixture.NoError(t, os.Chmod(filepath.Join(dir, roofmt.UIName), 0o644))
	k := own(t, s, "live-one").Task
	commit(t, k, task.UI, uiRow(9, "on"))
	closeTask(t, k)
	root := t.TempDir()
	closeTask(t, create(t, open(t, root), "private"))
	for path, want := range map[string]os.FileMode{
		filepath.Join(dir, roofmt.UIName):                                                0o644,
		filepath.Join(dir, roofmt.APIName):                                               0o600,
		filepath.Join(root, "tasks", "private", roofmt.UIName):                           0o600,
		filepath.Join(root, "tasks", "private", "journal.jsonl"):                         0o600,
		filepath.Join(root, "tasks", roofmt.IndexName):                                   0o600,
		filepath.Join(root, "tasks", "private"):                                          0o700 | os.ModeDir,
		filepath.Join(root, "tasks", "private", projection.Name):                         0o600,
		filepath.Dir(fixture.Must[Ref](t)(s.Find(context.Background(), "live-one")).Log): 0o700 | os.ModeDir,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
}

// A command's whole output lies where Roo looks for it, once, and never through a
// link that somebody put there.
func TestOutputsOfCommands(t *testing.T) {
	ctx := context.Background()
	s := open(t, t.TempDir())
	k := create(t, s, "outputs")
	text := strings.Repeat("line\n", 1000)
	finish := func(call, name string) {
		hash := fixture.Must[string](t)(k.PutBlob(ctx, []byte(text)))
		fixture.NoError(t, k.Commit(ctx, task.ToolFinished{Call: call, Name: "execute_command", Outcome: "ok", Output: hash, Size: int64(len(text)), Artifact: name, Result: []byte(`{"type":"tool_result","tool_use_id":"c"}`)}))
		fixture.NoError(t, k.Barrier(ctx))
	}
	finish("c1", "cmd-1700000000001.txt")
	finish("c2", "../../escape.txt")
	fixture.NoError(t, k.proj.Settle(ctx))
	dir := filepath.Join(s.TasksDir(), "outputs")
	for _, name := range []string{"cmd-1700000000001.txt", "escape.txt"} {
		if got := read(t, filepath.Join(dir, "command-output"), name); got != text {
			t.Errorf("%s holds %d bytes", name, len(got))
		}
	}
	if exists(filepath.Dir(s.TasksDir()), "escape.txt") || exists(s.TasksDir(), "escape.txt") {
		t.Error("a name led out of the folder")
	}
	// A person's change to it stays.
	write(t, filepath.Join(dir, "command-output"), "cmd-1700000000001.txt", "mine")
	finish("c3", "cmd-1700000000003.txt")
	fixture.NoError(t, k.proj.Settle(ctx))
	if got := read(t, filepath.Join(dir, "command-output"), "cmd-1700000000001.txt"); got != "mine" {
		t.Errorf("overwritten: %d bytes", len(got))
	}
	outside := t.TempDir()
	fixture.NoError(t, os.RemoveAll(filepath.Join(dir, "command-output")))
	fixture.NoError(t, os.Symlink(outside, filepath.Join(dir, "command-output")))
	finish("c4", "cmd-1700000000004.txt")
	if err := k.Close(ctx); err == nil {
		t.Error("nobody was told that the outputs could not be written")
	}
	if left := fixture.Must[[]os.DirEntry](t)(os.ReadDir(outside)); len(left) != 0 {
		t.Errorf("written through a link: %v", left)
	}
}
