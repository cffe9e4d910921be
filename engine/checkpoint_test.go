package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

const looksOnly = `
- tools: [{name: read_file, input: {path: a.txt}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

func (b *bench) stores() []string {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.root, "checkpoints"))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Nothing is kept before something changes, nor where that is switched off.
func TestNothingIsKeptWithoutNeed(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "a\n")
	_, outcome, _ := b.runScript(looksOnly)
	wantOutcome(t, outcome, "completed", "")
	if got := b.stores(); len(got) != 0 {
		t.Errorf("a run that reads made %v", got)
	}
	b.put("gone.txt", "g\n")
	run, outcome, _ := b.runScript(twoTurns, func(r *engine.Request) { r.NoCheckpoints = true })
	wantOutcome(t, outcome, "completed", "")
	if got := b.stores(); len(got) != 0 || len(b.state(run.TaskID).Checkpoints) != 0 {
		t.Errorf("a run without checkpoints made %v", got)
	}
}

// A folder that gets no checkpoints is told once, and the run goes on.
func TestRefusedWorkspace(t *testing.T) {
	b := newBench(t)
	t.Setenv("HOME", b.workspace)
	t.Setenv("USERPROFILE", b.workspace)
	b.put("gone.txt", "g\n")
	run, outcome, events := b.runScript(twoTurns)
	wantOutcome(t, outcome, "completed", "")
	told := 0
	for _, n := range ofType(events, "notice") {
		told += strings.Count(n, "no checkpoints")
	}
	if told != 1 || len(b.state(run.TaskID).Checkpoints) != 0 || len(b.stores()) != 0 {
		t.Errorf("told %d times, stores %v", told, b.stores())
	}
}

// A subtask works in the same workspace, with checkpoints of its own; what it changed is
// somebody else's to its parent.
func TestSubtasksHaveTheirOwn(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "zero\n")
	run, outcome, _ := b.runScript(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "parent\n"}}]
- tools: [{name: new_task, input: {mode: code, message: "child's work"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
- task: child's work
- tools: [{name: execute_command, input: {command: "echo child >> a.txt"}}]
- tools: [{name: attempt_completion, input: {result: child done}}]
`)
	wantOutcome(t, outcome, "completed", "")
	s := b.state(run.TaskID)
	if len(s.Children) != 1 || len(s.Checkpoints) != 2 {
		t.Fatalf("children %+v, checkpoints %v", s.Children, reasons(s))
	}
	if got := reasons(b.state(s.Children[0].ID)); len(got) != 1 || got[0] != "command a.txt" {
		t.Errorf("the child has %v", got)
	}
	r := b.restore(run.TaskID, checkpoints.RestoreOptions{To: "c1"})
	if len(r.Files) != 0 || len(r.Conflicts) != 1 {
		t.Errorf("restoring the parent over its child's work: %+v", r)
	}
	if r := b.restore(s.Children[0].ID, checkpoints.RestoreOptions{To: "0"}); r.Outcome != "done" {
		t.Errorf("got %+v, want r.Outcome = \"done\"", r)
	}
	b.wantFiles("the child's work is gone", files{"a.txt": "parent\n"})
}

// A checkpoint by hand tells apart what others did.
func TestManualCheckpoint(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	save := func() (api.Checkpoint, bool) {
		t.Helper()
		out, finish, err := b.engine.Checkpoints().Save(context.Background(), id)
		if err == nil {
			err = finish(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		if !out.Saved {
			return api.Checkpoint{}, false
		}
		return *out.Checkpoint, true
	}
	if c, saved := save(); saved {
		t.Errorf("nothing changed, and c%d was saved", c.Number)
	}
	b.put("a.txt", "by hand\n")
	if c, saved := save(); !saved || c.Number != 4 || c.Reason != "manual" || c.Title != "a.txt" {
		t.Errorf(`got %+v, want saved and c.Number = 4 and c.Reason = "manual" and c.Title = "a.txt"`, c)
	}
	b.put("a.txt", "by hand again\n")
	b.restore(id, checkpoints.RestoreOptions{To: "c4", NewRestore: api.NewRestore{OnConflict: "overwrite"}})
	if got := b.files()["a.txt"]; got != "by hand\n" {
		t.Errorf("a.txt is %q", got)
	}
}

func TestListAndDiff(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	list, err := b.engine.Checkpoints().List(context.Background(), id)
	if err != nil || len(list.Checkpoints) != 3 || list.Objects == 0 || list.Bytes == 0 || list.Store != b.stores()[0] {
		t.Fatalf("got %+v, %v, want no error and len(list.Checkpoints) = 3 and list.Objects != 0 and list.Bytes != 0 and list.Store = b.stores()[0]",
			list, err)
	}
	rows := 0
	for _, c := range list.Checkpoints {
		if c.Row < rows || c.Row == 0 || c.Commit == "" || c.Title == "" || c.Time == "" {
			t.Errorf(`got %+v, want c.Row >= rows and c.Row != 0 and c.Commit != "" and c.Title != "" and c.Time != ""`,
				c)
		}
		rows = c.Row
	}
	b.put("b.txt", "other\n")
	for _, tt := range []struct{ from, to, want string }{
		{"c1", "c2", "changed a.txt +5 -1"},
		{"c2", "c3", "changed a.txt +1 -0, added b.txt +1 -0, deleted gone.txt +0 -1"},
		{"c3", "c2", "changed a.txt +0 -1, deleted b.txt +0 -1, added gone.txt +1 -0"},
		{"c3", "now", "changed b.txt +1 -1"},
		{"c3", "c3", ""},
	} {
		d, err := b.engine.Checkpoints().Diff(context.Background(), id, checkpoints.DiffOptions{From: tt.from, To: tt.to, Patch: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range d.Files {
			got = append(got, f.Change+" "+f.Path+" +"+string(rune('0'+f.Added))+" -"+string(rune('0'+f.Removed)))
			if !strings.Contains(f.Patch, "@@") {
				t.Errorf("%s has no patch: %+v", f.Path, f)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s to %s: %v, want %s", tt.from, tt.to, got, tt.want)
		}
	}
}

// A fork keeps the checkpoints that it shares when the task that it came from is purged
// and everything is collected; what nobody needs goes then.
func TestForksPurgesAndCollecting(t *testing.T) {
	ctx := context.Background()
	b, id, before, _ := afterTwoTurns(t)
	ref, err := b.store.Find(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	fork, finish, err := b.engine.Fork(ctx, ref, history.ForkOptions{Origin: "test"})
	if err == nil {
		err = finish(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trash.Delete(ctx, b.store, ref); err != nil {
		t.Fatal(err)
	}
	collect := func() api.CollectedStore {
		t.Helper()
		list, err := b.engine.Checkpoints().Collect(ctx, false)
		if err != nil || len(list) != 1 || list[0].Err != nil {
			t.Fatalf("got %+v, %v, want no error and len(list) = 1 and list[0].Err = nil", list, err)
		}
		return list[0]
	}
	if c := collect(); c.Tasks != 2 || len(c.Removed) != 0 {
		t.Errorf("with the task in the trash: %+v", c)
	}
	if _, err := b.engine.Purge(ctx, id); err != nil {
		t.Fatal(err)
	}
	if c := collect(); c.Tasks != 1 {
		t.Errorf("with the fork alone: %+v", c)
	}
	b.restore(fork.ID, checkpoints.RestoreOptions{To: "c1"})
	b.wantFiles("the fork's c1", before)
	ref, err = b.store.Find(ctx, fork.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trash.Delete(ctx, b.store, ref); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Purge(ctx, fork.ID); err != nil {
		t.Fatal(err)
	}
	if c := collect(); c.Tasks != 0 || c.Objects != 0 {
		t.Errorf("with no task: %+v", c) // the purge had removed all that was left
	}
}

// What a task had in a store is removed when there is no such task any more, in whatever way it
// went, and not before: that of a fork stays while it is being made, however long that takes.
func TestWhatIsCollectedIsOfNoTask(t *testing.T) {
	for name, c := range map[string]struct {
		moved string // what becomes of the task's folder; ID stands for its name
		age   time.Duration
		stays bool
	}{
		"in the trash":              {"trash/ID", 24 * time.Hour, true},
		"in the trash a third time": {"trash/ID~3", 24 * time.Hour, true},
		"a fork in the making":      {"tasks/.fork-ID-123456789", 24 * time.Hour, true},
		"gone":                      {"elsewhere", 24 * time.Hour, false},
		"not there yet":             {"elsewhere", time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, id, _, _ := afterTwoTurns(t)
			to := filepath.Join(b.root, filepath.FromSlash(strings.Replace(c.moved, "ID", id, 1)))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(filepath.Join(b.root, "tasks", id), to)); err != nil {
				t.Fatal(err)
			}
			refs, err := filepath.Glob(filepath.Join(b.root, "checkpoints", "*", "names", id))
			if err != nil || len(refs) != 1 {
				t.Fatal(refs, err)
			}
			when := time.Now().Add(-c.age)
			if err := os.Chtimes(refs[0], when, when); err != nil {
				t.Fatal(err)
			}
			dry, err := b.engine.Checkpoints().Collect(context.Background(), true)
			if err != nil {
				t.Fatal(err)
			}
			list, err := b.engine.Checkpoints().Collect(context.Background(), false)
			if err != nil || len(list) != 1 || list[0].Err != nil {
				t.Fatalf("got %+v, %v, want no error and len(list) = 1 and list[0].Err = nil", list, err)
			}
			if len(dry) != 1 || dry[0].Objects != list[0].Objects || !slices.Equal(dry[0].Removed, list[0].Removed) {
				t.Errorf("a dry run says %+v, and then %+v is done", dry, list)
			}
			if _, err := os.Stat(refs[0]); (err == nil) != c.stays || (list[0].Tasks == 1) != c.stays || (list[0].Objects == 0) != c.stays {
				t.Errorf("stays: %v, %+v", err == nil, list[0])
			}
		})
	}
}

// A disk with the tasks that is not there now makes no task a removed one.
func TestNothingIsCollectedWithoutTheFolderOfTasks(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	names, err := filepath.Glob(filepath.Join(b.root, "checkpoints", "*", "names", id))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	long := time.Now().Add(-24 * time.Hour)
	if err := errors.Join(os.Chtimes(names[0], long, long), os.Rename(filepath.Join(b.root, "tasks"), filepath.Join(b.root, "away"))); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		list, err := b.engine.Checkpoints().Collect(t.Context(), dry)
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("dry run %t: got %+v, %v; want an error about the missing folder of tasks", dry, list, err)
		}
	}
	if _, err := os.Stat(names[0]); err != nil {
		t.Errorf("the task's contents: got %v, want them kept", err)
	}
}

// What is kept of a task that lies in another tool's storage has its source in the name:
// it stays for as long as its journal is there.
func TestWhatIsCollectedIsOfNoTaskOfAnotherTool(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	stores, err := filepath.Glob(filepath.Join(b.root, "checkpoints", "*"))
	if err != nil || len(stores) != 1 {
		t.Fatal(stores, err)
	}
	s, err := content.Open(stores[0])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit, err := s.Name(t.Context(), content.OwnerName(id))
	if err != nil {
		t.Fatal(err)
	}
	const source, foreign = "VSCode-roo", "Task_1.b"
	refs := map[string]bool{} // whether it stays
	for _, name := range []string{source + "." + foreign, source + ".gone"} {
		ref := content.OwnerName(name)
		if err := s.SetName(t.Context(), ref, commit); err != nil {
			t.Fatal(err)
		}
		refs[ref] = name == source+"."+foreign
		long := time.Now().Add(-24 * time.Hour)
		if err := os.Chtimes(filepath.Join(stores[0], "names", ref), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(b.root, "adopted", source, foreign), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Checkpoints().Collect(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	for ref, stays := range refs {
		if _, err := s.Name(t.Context(), ref); (err == nil) != stays {
			t.Errorf("%s: stays %t, %v", ref, stays, err)
		}
	}
}

// A purge removes the contents that only this task had, and says when it could not.
func TestAPurgeRemovesContents(t *testing.T) {
	ctx := context.Background()
	for _, stuck := range []bool{false, true} {
		b, id, _, _ := afterTwoTurns(t)
		ref, err := b.store.Find(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := trash.Delete(ctx, b.store, ref); err != nil {
			t.Fatal(err)
		}
		bundles, err := filepath.Glob(filepath.Join(b.store.Root(), "checkpoints", "*", "bundles", "*.bundle"))
		if err != nil || len(bundles) == 0 {
			t.Fatalf("got %q, %v, want no error and len(bundles) != 0", bundles, err)
		}
		if stuck { // as on a disk that may only be read: nobody may remove
			lock := filepath.Join(filepath.Dir(bundles[0]), "..", "lock")
			if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		err = b.engine.PurgeAll(ctx, []string{id}, func(gone api.DeletedTask) error {
			told++
			if gone.ID != id {
				t.Errorf("told of %s", gone.ID)
			}
			return nil
		})
		if told != 1 || (err != nil) != stuck || stuck && !strings.Contains(err.Error(), "the task is removed; contents of its checkpoints") {
			t.Errorf("stuck %t: told %d times, %v", stuck, told, err)
		}
		for _, bundle := range bundles {
			if _, err := os.Lstat(bundle); (err == nil) != stuck {
				t.Errorf("stuck %t: %s: %v", stuck, bundle, err)
			}
		}
	}
}

// leaveHalfRestored leaves a task as a kill in the middle of a restore to c1 does: the intent is
// durable, and done says which files were put back.
func leaveHalfRestored(t *testing.T, b *bench, id string, done ...string) {
	t.Helper()
	ctx := context.Background()
	ref, err := b.store.Find(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := b.store.Own(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	s := owned.Task.State()
	var saved []task.CheckpointSaved
	for _, c := range s.Checkpoints {
		saved = append(saved, c.CheckpointSaved)
	}
	at, now := checkpoint.StateAt(saved, 1), checkpoint.StateAt(saved, 3)
	r := task.RestoreBegun{Restore: "r", To: 1, Safety: 3}
	for _, path := range []string{"a.txt", "b.txt", "gone.txt"} {
		r.Files = append(r.Files, task.RestoreFile{Path: path, From: now[path], To: at[path], How: task.HowRestore})
	}
	if err := owned.Task.Commit(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := owned.Task.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, path := range done {
		switch path {
		case "a.txt":
			b.put(path, "zero\n")
		case "b.txt":
			if err := os.Remove(filepath.Join(b.workspace, path)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Whoever works on a task in the middle of a restore finishes that first, wherever it was
// cut short.
func TestAKilledRestoreIsFinishedFirst(t *testing.T) {
	ctx := context.Background()
	for name, next := range map[string]func(b *bench, id string) error{
		"finish": func(b *bench, id string) error { _, err := b.engine.Checkpoints().Finish(ctx, id); return err },
		"run": func(b *bench, id string) error {
			_, outcome, events := b.run(engine.Request{Task: id, Text: "on", Yes: true})
			told := strings.Join(ofType(events, "notice"), "")
			if outcome.State != "completed" || !strings.Contains(told, "finished the interrupted restore of 3 files to c1") {
				b.t.Errorf(`got %+v: %s, want outcome.State = "completed" and strings.Contains(told, "finished the interrupted restore of 3 files to c1")`,
					outcome, told)
			}
			return nil
		},
		"restore": func(b *bench, id string) error {
			_, finish, err := b.engine.Checkpoints().Restore(ctx, id, checkpoints.RestoreOptions{To: "c1"})
			if err != nil {
				return err
			}
			return finish(ctx)
		},
		"undo": func(b *bench, id string) error {
			if d, r := b.undo(id, false); d.Kind != "restore" || r == nil || len(r.Files) != 3 {
				b.t.Errorf("undid %+v, %+v", d, r)
			}
			b.undo(id, true)
			return nil
		},
	} {
		for _, done := range [][]string{nil, {"b.txt"}, {"a.txt", "b.txt"}} {
			t.Run(name+" "+strings.Join(done, " "), func(t *testing.T) {
				b, id, before, _ := afterTwoTurns(t)
				leaveHalfRestored(t, b, id, done...)
				if s := b.state(id); s.Restoring == nil {
					t.Fatal("the task is not restoring")
				}
				if err := next(b, id); err != nil {
					t.Fatal(err)
				}
				b.wantFiles("finished", before)
				if s := b.state(id); s.Restoring != nil {
					t.Error("the task is still restoring")
				}
			})
		}
	}
}

// A restore that cannot go on, as what it needs is not in the store any more, does not
// hold its task up for ever: untouched it ends as it was, half done it stays and says so.
func TestARestoreThatCannotBeFinished(t *testing.T) {
	b, id, _, after := afterTwoTurns(t)
	leaveHalfRestored(t, b, id)
	kept := filepath.Join(b.root, "checkpoints", b.stores()[0], "bundles")
	if err := os.Rename(kept, kept+".away"); err != nil {
		t.Fatal(err)
	}
	told, err := b.engine.Checkpoints().Finish(context.Background(), id)
	if err != nil || !strings.Contains(told, "everything is as it was before") || b.state(id).Restoring != nil {
		t.Errorf("untouched: %q, %v", told, err)
	}
	b.wantFiles("untouched", after)
	leaveHalfRestored(t, b, id, "b.txt")
	// Another folder does not help: only the one that the intent names has these files.
	if err := os.Rename(b.workspace, b.workspace+".away"); err != nil {
		t.Fatal(err)
	}
	var missing *setup.WorkspaceError
	if _, err := b.engine.Checkpoints().Finish(context.Background(), id); !errors.As(err, &missing) || !strings.HasPrefix(missing.Fault.Try, "roost fork "+id) ||
		!strings.Contains(err.Error(), "restore") {
		t.Errorf("without the folder: got %v, want an error of the restore that advises a fork", err)
	}
	if err := os.Rename(b.workspace+".away", b.workspace); err != nil {
		t.Fatal(err)
	}
	var half *checkpoints.HalfwayError
	if _, err := b.engine.Start(context.Background(), engine.Request{Task: id, Yes: true}); !errors.As(err, &half) || b.state(id).Restoring == nil {
		t.Errorf("half done: %v", err)
	}
	if err := os.Rename(kept+".away", kept); err != nil {
		t.Fatal(err)
	}
	if told, err := b.engine.Checkpoints().Finish(context.Background(), id); err != nil || !strings.Contains(told, "finished the interrupted restore of 3 files") {
		t.Errorf("with its contents again: %q, %v", told, err)
	}
}

// A restore that fails after it has changed the first file gives everything back.
func TestARestoreThatFailsInTheMiddle(t *testing.T) {
	b, id, before, after := afterTwoTurns(t)
	kept := fixture.Must[[]string](t)(filepath.Glob(filepath.Join(b.root, "checkpoints", b.stores()[0], "bundles", "*.bundle")))
	damaged := 0
	spoil := func(from, to string) {
		for _, name := range kept {
			data := fixture.Must[[]byte](t)(os.ReadFile(name))
			if spoilt := bytes.Replace(data, []byte(from), []byte(to), 1); !bytes.Equal(spoilt, data) {
				fixture.NoError(t, os.WriteFile(name, spoilt, 0o600))
				damaged++
			}
		}
	}
	spoil("zero\n", "Zero\n") // the old content of a.txt, which comes after the removal of b.txt
	_, _, err := b.engine.Checkpoints().Restore(context.Background(), id, checkpoints.RestoreOptions{To: "c1"})
	if back, ok := errors.AsType[*checkpoints.RolledBackError](err); !ok || !strings.Contains(back.Error(), "a.txt") || damaged == 0 {
		t.Errorf("%d contents are damaged: got %v, want that it was rolled back because of a.txt", damaged, err)
	}
	b.wantFiles("rolled back", after)
	if b.state(id).Restoring != nil {
		t.Error("the task is restoring")
	}
	spoil("Zero\n", "zero\n")
	b.restore(id, checkpoints.RestoreOptions{To: "c1"})
	b.wantFiles("mended", before)
}

// While a process of an earlier version works with a workspace's checkpoints, no run begins there and nothing is
// collected: both would write, in two formats.
func TestARunWaitsForAnEarlierVersion(t *testing.T) {
	ctx := context.Background()
	b, id, _, _ := afterTwoTurns(t)
	dir := filepath.Join(b.root, "checkpoints", b.stores()[0])
	lease := filepath.Join(dir, "roost", "leases", "1-1")
	if err := errors.Join(os.Remove(filepath.Join(dir, "roost")), os.MkdirAll(filepath.Dir(lease), 0o700), os.Mkdir(filepath.Join(dir, "objects"), 0o700)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(lease)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := filelock.Try(f, filelock.Exclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := b.engine.Start(ctx, engine.Request{Task: id, Yes: true}); !errors.Is(err, store.ErrForeignBusy) {
		t.Errorf("start: got %v, want ErrForeignBusy", err)
	}
	if list, err := b.engine.Checkpoints().Collect(ctx, false); err != nil || len(list) != 1 || !errors.Is(list[0].Err, store.ErrForeignBusy) {
		t.Errorf("collect: got %+v, %v", list, err)
	}
	if err := filelock.Release(f); err != nil {
		t.Fatal(err)
	}
	if list, err := b.engine.Checkpoints().Collect(ctx, false); err != nil || list[0].Err != nil || list[0].Tasks != 1 {
		t.Errorf("collect afterwards: got %+v, %v", list, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "roost")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("an earlier version could write to it: %v", err)
	}
}
