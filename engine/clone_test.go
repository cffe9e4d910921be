package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/reach"
)

// cloning is a bench whose workspace is a work tree that is pushed, on a server of a group. on lets another server go on.
type cloning struct {
	*bench
	top    string
	remote string
}

func newCloning(t *testing.T, c setup.Config) *cloning {
	t.Helper()
	b := &cloning{bench: newBench(t), top: fixture.Must[string](t)(filepath.EvalSymlinks(t.TempDir()))}
	b.workspace, b.remote = filepath.Join(b.top, "work"), filepath.Join(b.top, "git", "app.git")
	fixture.Git(t, b.top, "init", "-q", "--bare", b.remote)
	fixture.Git(t, b.top, "clone", "-q", b.remote, b.workspace)
	b.put(".gitignore", "*.hidden\n")
	b.put("a.txt", "pushed\n")
	b.put("b.txt", "pushed\n")
	b.push()
	b.on("a", c)
	return b
}

func (b *cloning) push() {
	b.t.Helper()
	fixture.Git(b.t, b.workspace, "add", "-A")
	fixture.Git(b.t, b.workspace, "commit", "-qm", "work")
	fixture.Git(b.t, b.workspace, "push", "-q", "-u", "origin", "HEAD:main")
}

// on restarts the engine as another server. The engine calls running when it looks which servers run, before it clones.
func (b *cloning) on(server string, c setup.Config, running ...func()) {
	b.t.Helper()
	r := fixture.Must[*reach.Server](b.t)(reach.New(server, reach.Options{
		Clones: reach.Cloning{Dir: filepath.Join(b.top, "clones-"+server), From: []string{filepath.Join(b.top, "git") + "/"}},
		Running: func(context.Context) ([]api.GroupServer, error) {
			for _, f := range running {
				f()
			}
			return nil, nil
		},
	}))
	b.restart(engine.Options{Config: c, Reach: r})
}

// lose takes the workspace away, as with the machine that it was on.
func (b *cloning) lose() {
	b.t.Helper()
	fixture.NoError(b.t, os.RemoveAll(b.workspace))
}

// continues runs the task on, and returns the error of the start. The script has the replies that are to come.
func (b *cloning) continues(id, script string) error {
	b.t.Helper()
	for _, m := range b.state(id).API() {
		if m.Kind() == "assistant" {
			script = "- {}\n" + script
		}
	}
	run, err := b.engine.Start(b.t.Context(), engine.Request{Task: id, Text: "go on", Choice: setup.Choice{Provider: "script", Model: b.script(script)}})
	if err != nil {
		return err
	}
	o := fixture.Must[engine.Outcome](b.t)(run.Wait(b.t.Context()))
	wantOutcome(b.t, o, "completed", "")
	b.workspace = b.settings(id).Workspace
	return nil
}

// withoutGit are the files of the workspace, apart from the repository's own.
func (b *cloning) withoutGit() files {
	b.t.Helper()
	list := b.files()
	for name := range list {
		if strings.HasPrefix(name, ".git/") {
			delete(list, name)
		}
	}
	return list
}

const finishes = `- tools: [{name: attempt_completion, input: {result: done}}]`

// The work tree comes to the next server as the last run left it: also what a person changed and pushed between runs, in
// a file that an earlier checkpoint knows.
func TestACloneIsAsTheLastRunLeftIt(t *testing.T) {
	b := newCloning(t, setup.Config{})
	b.put("own.txt", "never pushed\n")
	b.put("x.hidden", "ignored\n")
	run, o, _ := b.runScript(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "by the task\n"}}]
- tools: [{name: write_to_file, input: {path: new.txt, content: "by the task\n"}}, {name: execute_command, input: {command: "rm b.txt; mkdir deep; echo x > deep/c.txt; ln -s a.txt link; chmod +x a.txt", cwd: null, timeout: null}}]
` + finishes)
	wantOutcome(t, o, "completed", "")
	id := run.TaskID
	b.put("a.txt", "by a person\n")
	b.push()
	fixture.NoError(t, b.continues(id, finishes))
	want := b.withoutGit()
	delete(want, "x.hidden")
	ref := fixture.Must[store.Ref](t)(b.store.Find(t.Context(), id))
	fixture.Must[store.Ref](t)(b.engine.Amend(t.Context(), ref, engine.Request{Choice: setup.Choice{Effort: "low"}}))
	b.lose()

	b.on("b", setup.Config{})
	fixture.NoError(t, b.continues(id, `- tools: [{name: write_to_file, input: {path: second.txt, content: "b\n"}}]
`+finishes))
	want["second.txt"] = "b\n"
	b.holds(b.withoutGit(), want)
	if info, err := os.Lstat(filepath.Join(b.workspace, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: got %v, %v, want a link", info, err)
	}
	if info, err := os.Stat(filepath.Join(b.workspace, "a.txt")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the program: got %v, %v, want it to be one", info, err)
	}
	// Checkpoints of the first server are those of the clone.
	b.restore(id, checkpoints.RestoreOptions{To: "c1"})
	if got := b.withoutGit(); got["a.txt"] != "pushed\n" && got["a.txt"] != "by a person\n" || got["own.txt"] != "never pushed\n" {
		t.Errorf("restored: got %q", got)
	}

	// A third server clones what the second one left. When a person removes that clone, the server makes it again.
	for _, server := range []string{"c", "c"} {
		want = b.withoutGit()
		b.lose()
		b.on(server, setup.Config{})
		fixture.NoError(t, b.continues(id, finishes))
		b.holds(b.withoutGit(), want)
	}

	// A purge by a person who does not see the task leaves its clone alone.
	another, _, _ := b.bench.runScript(finishes, func(r *engine.Request) { r.Workspace = t.TempDir() })
	fixture.Must[api.DeletedTask](t)(trash.Delete(t.Context(), b.store, fixture.Must[store.Ref](t)(b.store.Find(t.Context(), another.TaskID))))
	blind := store.Seeing(t.Context(), func(api.Access) (bool, error) { return false, nil })
	_, _ = b.engine.Purge(blind, another.TaskID)
	if got := b.withoutGit(); len(got) == 0 {
		t.Error("the clone of a task that the caller does not see is gone, want it to stay")
	}

	// The clone of a task that was purged goes.
	fixture.Must[api.DeletedTask](t)(trash.Delete(t.Context(), b.store, fixture.Must[store.Ref](t)(b.store.Find(t.Context(), id))))
	fixture.NoError(t, b.engine.Recover(t.Context(), engine.RecoverOptions{}))
	if got := b.withoutGit(); len(got) == 0 {
		t.Error("the clone of a task in the trash is gone, want it to stay")
	}
	fixture.Must[api.DeletedTask](t)(b.engine.Purge(t.Context(), id))
	if left, err := os.ReadDir(filepath.Join(b.top, "clones-c")); err != nil || len(left) != 0 {
		t.Errorf("clones of a purged task: got %v, %v, want none", left, err)
	}
}

func (b *cloning) holds(got, want files) {
	b.t.Helper()
	for name := range want {
		if got[name] != want[name] {
			b.t.Errorf("%s: got %q, want %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, is := want[name]; !is {
			b.t.Errorf("%s is there, want no such file", name)
		}
	}
}

// What cannot be made again whole is not made: the run reports it at its start, and the next server refuses.
func TestWhatCannotBeCloned(t *testing.T) {
	for name, c := range map[string]struct {
		config setup.Config
		change func(b *cloning)
		script string
		notice string // at the start of the first run; "" = none
		want   string // of the next server's error
	}{
		"a change that is too large": {
			change: func(b *cloning) {
				b.put("large.txt", "")
				fixture.NoError(b.t, os.Truncate(filepath.Join(b.workspace, "large.txt"), 100<<20))
			},
			notice: "100 MB differ from what was pushed, and at most 64 MB may",
			want:   "it cannot be cloned: 100 MB differ",
		},
		"what the task made is too large": {
			config: setup.Config{CheckpointFile: 100},
			script: `- tools: [{name: execute_command, input: {command: "seq 1000 > large.txt", cwd: null, timeout: null}}]` + "\n",
			want:   "no checkpoint keeps what is in large.txt",
		},
		"no checkpoints": {
			config: setup.Config{NoCheckpoints: true},
			notice: "the run takes no checkpoints",
			want:   "it cannot be cloned: the run takes no checkpoints",
		},
		"no remote": {
			change: func(b *cloning) { fixture.Git(b.t, b.workspace, "remote", "remove", "origin") },
			notice: "none of its remotes",
			want:   "it cannot be cloned: none of its remotes",
		},
		"a remote that is gone": {
			script: `- tools: [{name: execute_command, input: {command: "rm -rf ../git", cwd: null, timeout: null}}]` + "\n",
			want:   "git fetch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newCloning(t, c.config)
			if c.change != nil {
				c.change(b)
			}
			run, o, all := b.runScript(c.script + finishes)
			wantOutcome(t, o, "completed", "")
			notices := strings.Join(ofType(all, "notice"), "\n")
			if c.notice == "" && strings.Contains(notices, "no other server") || !strings.Contains(notices, c.notice) {
				t.Errorf("notices: got %q, want %q", notices, c.notice)
			}
			b.lose()
			b.on("b", c.config)
			err := b.continues(run.TaskID, finishes)
			var lacks *setup.WorkspaceError
			if !errors.As(err, &lacks) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the next server: got %v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(filepath.Join(b.top, "clones-b")); len(left) != 0 {
				t.Errorf("the folder for clones: got %v, want it empty", left)
			}
		})
	}
}

// A clone whose run does not begin is removed, and so is one of a task that went on meanwhile.
func TestACloneThatIsNotUsedIsRemoved(t *testing.T) {
	b := newCloning(t, setup.Config{})
	run, o, _ := b.runScript(`- tools: [{name: write_to_file, input: {path: a.txt, content: "by the task\n"}}]
` + finishes)
	wantOutcome(t, o, "completed", "")
	first, id := b.workspace, run.TaskID
	left := func() []os.DirEntry {
		return fixture.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(b.top, "clones-b")))
	}
	fixture.NoError(t, os.Rename(first, first+".away"))
	b.on("b", setup.Config{})
	_, err := b.engine.Start(t.Context(), engine.Request{Task: id, Text: "go on", Choice: setup.Choice{Provider: "none"}})
	if err == nil || len(left()) != 0 {
		t.Errorf("a run without a model: got %v and %v, want an error and no clone", err, left())
	}

	b.on("b", setup.Config{}, func() { // the first server is back, and continues the task
		fixture.NoError(t, os.Rename(first+".away", first))
		other := &cloning{bench: &bench{t: t, root: b.root, workspace: first, store: b.store, engine: b.engine}, top: b.top, remote: b.remote}
		other.on("a", setup.Config{})
		fixture.NoError(t, other.continues(id, finishes))
		fixture.NoError(t, other.engine.Close(t.Context()))
	})
	_, err = b.engine.Start(t.Context(), engine.Request{Task: id, Text: "go on", Choice: setup.Choice{Provider: "script", Model: b.script(finishes)}})
	if !errors.Is(err, store.ErrForeignBusy) || len(left()) != 0 {
		t.Errorf("a task that went on meanwhile: got %v and %v, want it refused and no clone", err, left())
	}
}

// What the journal cannot give back is not left out in silence.
func TestAnIncompleteTreeIsRefused(t *testing.T) {
	b := newCloning(t, setup.Config{})
	for want, c := range map[string]struct {
		state task.State
		tree  api.WorkTree
	}{
		"a restore of its files was interrupted": {state: task.State{Restoring: &task.Restoring{}}},
		"the checkpoint c3":                      {tree: api.WorkTree{Checkpoint: 3}},
	} {
		if _, err := b.engine.Checkpoints().FillClone(t.Context(), &c.state, &c.tree, b.workspace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
