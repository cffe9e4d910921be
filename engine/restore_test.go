package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/actions"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// twoTurns changes a.txt by a tool, and a.txt and b.txt by a command.
const twoTurns = `
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\ntwo\nthree\nfour\nfive\n"}}]
- tools: [{name: execute_command, input: {command: "echo six >> a.txt; echo b > b.txt; rm gone.txt"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// files are the contents of a workspace, by path; links are not among them.
type files map[string]string

func (b *bench) files() files {
	b.t.Helper()
	out := files{}
	err := filepath.WalkDir(b.workspace, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		rel, _ := filepath.Rel(b.workspace, path)
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) put(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.workspace, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// afterTwoTurns is a bench on which twoTurns ran, the task, and the files before and after.
func afterTwoTurns(t *testing.T) (b *bench, id string, before, after files) {
	t.Helper()
	b = newBench(t)
	b.put("a.txt", "zero\n")
	b.put("gone.txt", "g\n")
	b.put("mine/own.txt", "mine\n")
	before = b.files()
	run, outcome, _ := b.runScript(twoTurns)
	wantOutcome(t, outcome, "completed", "")
	after = b.files()
	if after["a.txt"] != "one\ntwo\nthree\nfour\nfive\nsix\n" || after["b.txt"] != "b\n" || len(after) != 3 {
		t.Fatalf("the run made %v", after)
	}
	return b, run.TaskID, before, after
}

func (b *bench) wantFiles(what string, want files) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.files()); diff != "" {
		b.t.Errorf("%s: got %s, want diff = \"\"", what, diff)
	}
}

func (b *bench) restore(id string, o checkpoints.RestoreOptions) api.RestoreResult {
	b.t.Helper()
	r, finish, err := b.engine.Checkpoints().Restore(context.Background(), id, o)
	if err == nil {
		err = finish(context.Background())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) undo(id string, redo bool) (api.Action, *api.RestoreResult) {
	b.t.Helper()
	d, _, r, err := b.engine.Undo(context.Background(), id, actions.Options{Redo: redo})
	if err != nil {
		b.t.Fatal(err)
	}
	return d, r
}

func reasons(s *task.State) (out []string) {
	for _, c := range s.Checkpoints {
		var names []string
		for _, f := range c.Files {
			names = append(names, f.Path)
		}
		out = append(out, c.Reason+" "+strings.Join(names, ","))
	}
	return out
}

// The paths of a restore are those of the disk: absolute, through a link, or the workspace itself.
func TestRestoreSelectsPaths(t *testing.T) {
	b := newBench(t)
	b.put("in/a.txt", "zero\n")
	if err := os.Symlink("in", filepath.Join(b.workspace, "linked")); err != nil {
		t.Skip("links cannot be made here")
	}
	run, outcome, _ := b.runScript(strings.ReplaceAll(twoTurns, "a.txt", "linked/a.txt"))
	wantOutcome(t, outcome, "completed", "")
	for _, path := range []string{"in/a.txt", "in", "linked", "linked/a.txt", ".", "./", b.workspace, filepath.Join(b.workspace, "linked")} {
		r := b.restore(run.TaskID, checkpoints.RestoreOptions{To: "0", NewRestore: api.NewRestore{Paths: []string{path}, DryRun: true}})
		if !slices.ContainsFunc(r.Files, func(f api.RestoreItem) bool { return f.Path == "in/a.txt" }) {
			t.Errorf("%s: got %+v, want in/a.txt among the files", path, r.Files)
		}
		d, err := b.engine.Checkpoints().Diff(context.Background(), run.TaskID, checkpoints.DiffOptions{From: "0", To: "c2", Paths: []string{path}})
		if err != nil || len(d.Files) != 1 || len(d.Files[0].Authors) != 1 || d.Files[0].Authors[0].Tool != "write_to_file" {
			t.Errorf("%s: got %+v, %v, want in/a.txt by write_to_file", path, d.Files, err)
		}
	}
	if r := b.restore(run.TaskID, checkpoints.RestoreOptions{To: "0", NewRestore: api.NewRestore{Paths: []string{t.TempDir()}, DryRun: true}}); len(r.Files) > 0 {
		t.Errorf("a folder elsewhere: got %+v, want no files", r.Files)
	}
}

// A run's checkpoints tell what each step did; each can be restored, and undo and redo
// go back and forth between the states, byte for byte.
func TestRestoreUndoRedo(t *testing.T) {
	b, id, before, after := afterTwoTurns(t)
	if diff := cmp.Diff([]string{"before a.txt", "turn a.txt", "command a.txt,b.txt,gone.txt"}, reasons(b.state(id))); diff != "" {
		t.Fatal(diff)
	}
	middle := maps.Clone(before)
	middle["a.txt"] = "one\ntwo\nthree\nfour\nfive\n"

	preview := b.restore(id, checkpoints.RestoreOptions{NewRestore: api.NewRestore{DryRun: true}})
	b.wantFiles("after a dry run", after)
	if len(preview.Files) != 3 || preview.Bytes != int64(len(middle["a.txt"])+len("g\n")) || preview.Outcome != "" {
		t.Errorf("the preview is %+v", preview)
	}
	r := b.restore(id, checkpoints.RestoreOptions{To: "c2"})
	b.wantFiles("back to c2", middle)
	if r.Outcome != "done" || r.Safety != 4 || r.To.Number != 2 || len(r.Conflicts)+len(r.Lost) != 0 {
		t.Errorf("got %+v, want r.Outcome = \"done\" and r.Safety = 4 and r.To.Number = 2 and len(r.Conflicts)+len(r.Lost) = 0",
			r)
	}
	b.restore(id, checkpoints.RestoreOptions{To: "c1"})
	b.wantFiles("back to c1", before)
	for range 2 {
		if d, r := b.undo(id, false); d.Kind != "restore" || r == nil || r.Outcome != "done" {
			t.Errorf("undid %+v, %+v", d, r)
		}
		b.wantFiles("undone", middle)
		b.undo(id, true)
		b.wantFiles("done again", before)
	}
	b.undo(id, false)
	b.undo(id, false)
	b.wantFiles("both undone", after)
	if n := len(b.restore(id, checkpoints.RestoreOptions{To: "c3"}).Files); n != 0 {
		t.Errorf("nothing differs from c3, and %d files were put back", n)
	}
}

// A folder may take the place of a link, and a link that of a folder: the undo of a restore brings both back.
func TestUndoWhereALinkAndAFolderChangedPlaces(t *testing.T) {
	for name, command := range map[string]string{
		"a folder for a link": "rm link; mkdir -p link/sub; echo x > link/sub/f",
		"a link for a folder": "rm -r folder; ln -s d folder",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("d/own.txt", "own\n")
			b.put("folder/sub/f", "f\n")
			if err := os.Symlink("d", filepath.Join(b.workspace, "link")); err != nil {
				t.Fatal(err)
			}
			leads := func(when string, want map[string]bool) {
				t.Helper()
				for name, want := range want {
					if _, err := os.Readlink(filepath.Join(b.workspace, name)); (err == nil) != want {
						t.Errorf("%s: %s is a link: %v, want %v", when, name, err == nil, want)
					}
				}
			}
			before := b.files()
			run, outcome, _ := b.runScript(fmt.Sprintf("- tools: [{name: execute_command, input: {command: %q}}]\n", command) +
				"- tools: [{name: attempt_completion, input: {result: done}}]\n")
			wantOutcome(t, outcome, "completed", "")
			after, folder := b.files(), name == "a folder for a link"
			for range 2 {
				b.restore(run.TaskID, checkpoints.RestoreOptions{To: "0"})
				b.wantFiles("restored", before)
				leads("restored", map[string]bool{"link": true, "folder": false})
				_, r := b.undo(run.TaskID, false)
				b.wantFiles("undone", after)
				leads("undone", map[string]bool{"link": !folder, "folder": !folder})
				if len(r.Conflicts)+len(r.Left) != 0 {
					t.Errorf("undo: conflicts %v, left %v, want none", r.Conflicts, r.Left)
				}
				b.undo(run.TaskID, true)
				b.wantFiles("done again", before)
				b.undo(run.TaskID, false)
				b.wantFiles("undone again", after)
			}
		})
	}
}

// What others changed since is theirs: it is kept, merged or overwritten as asked, and
// what a restore replaced can always be had again.
func TestConflicts(t *testing.T) {
	for _, tt := range []struct {
		rule      checkpoint.Rule
		theirs    string
		want      string
		conflicts int
	}{
		{"", "ONE\ntwo\nthree\nfour\nfive\nsix\n", "ONE\ntwo\nthree\nfour\nfive\nsix\n", 1},
		{checkpoint.Keep, "other\n", "other\n", 1},
		{checkpoint.Merge, "ONE\ntwo\nthree\nfour\nfive\nsix\n", "ONE\ntwo\nthree\nfour\nfive\n", 0},
		{checkpoint.Merge, "one\ntwo\nthree\nfour\nfive\n6\n", "one\ntwo\nthree\nfour\nfive\n6\n", 1},
		{checkpoint.Overwrite, "other\n", "one\ntwo\nthree\nfour\nfive\n", 0},
	} {
		t.Run(string(tt.rule)+" "+tt.theirs, func(t *testing.T) {
			b, id, before, _ := afterTwoTurns(t)
			b.put("a.txt", tt.theirs)
			b.put("mine/own.txt", "mine too\n")
			present := b.files()
			r := b.restore(id, checkpoints.RestoreOptions{To: "c2", NewRestore: api.NewRestore{OnConflict: string(tt.rule)}})
			wanted := files{"a.txt": tt.want, "gone.txt": before["gone.txt"], "mine/own.txt": "mine too\n"}
			b.wantFiles("restored", wanted)
			if len(r.Conflicts) != tt.conflicts || tt.conflicts > 0 && r.Conflicts[0].Why == "" {
				t.Errorf("conflicts %+v", r.Conflicts)
			}
			b.undo(id, false)
			b.wantFiles("undone", present)
		})
	}
}

// What somebody changes between a restore and its undo is left alone.
func TestUndoLeavesAloneWhatChangedSince(t *testing.T) {
	b, id, before, _ := afterTwoTurns(t)
	b.restore(id, checkpoints.RestoreOptions{To: "c1"})
	b.put("a.txt", "by hand\n")
	_, r := b.undo(id, false)
	if len(r.Conflicts) != 1 || r.Conflicts[0].Path != "a.txt" {
		t.Errorf("got %+v, want len(r.Conflicts) = 1 and r.Conflicts[0].Path = \"a.txt\"", r)
	}
	b.wantFiles("undone around it", files{"a.txt": "by hand\n", "b.txt": "b\n", "mine/own.txt": before["mine/own.txt"]})
}

// A task that changed a file again after a restore says where what it replaced is kept.
func TestUndoAfterTheTaskWentOn(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	b.restore(id, checkpoints.RestoreOptions{To: "c1"})
	// The first write is refused, and tells the model what the restore made of the file.
	again := strings.Repeat("- tools: [{name: attempt_completion, input: {result: done}}]\n", 3) +
		strings.Repeat("- tools: [{name: write_to_file, input: {path: a.txt, content: \"new\\n\"}}]\n", 2) + "- tools: [{name: attempt_completion, input: {result: done}}]\n"
	_, outcome, _ := b.run(engine.Request{Task: id, Text: "more", Choice: setup.Choice{Model: b.script(again)}})
	wantOutcome(t, outcome, "completed", "")
	_, _, _, err := b.engine.Undo(context.Background(), id, actions.Options{})
	var since *checkpoints.ChangedSinceError
	if !errors.As(err, &since) || since.Path != "a.txt" || since.Safety != 4 {
		t.Errorf("undo: %v", err)
	}
}

// Both histories and the files go back in one deed, and come back in one.
func TestRewindWithFiles(t *testing.T) {
	b, id, before, after := afterTwoTurns(t)
	whole := b.state(id)
	rows := len(whole.UI())
	first, r, finish, err := b.engine.Checkpoints().RewindFiles(context.Background(), id, history.RewindOptions{To: "~2"}, checkpoints.RestoreOptions{NewRestore: api.NewRestore{DryRun: true}})
	if err != nil || !first.DryRun || len(r.Files) != 3 || finish(context.Background()) != nil {
		t.Fatalf("got %+v %+v %v, want no error and first.DryRun and len(r.Files) = 3 and finish(context.Background()) = nil",
			first, r, err)
	}
	b.wantFiles("after a dry run", after)
	for _, tt := range []struct {
		to   string
		want files
	}{
		{"~2", files{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "gone.txt": "g\n", "mine/own.txt": "mine\n"}},
		{"~3", before},
		{"#1", before},
	} {
		taken, r, finish, err := b.engine.Checkpoints().RewindFiles(context.Background(), id, history.RewindOptions{To: tt.to}, checkpoints.RestoreOptions{})
		if err == nil {
			err = finish(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		b.wantFiles("rewound to "+tt.to, tt.want)
		s := b.state(id)
		if len(s.UI()) != taken.Left.UI || taken.Gone.UI+taken.Left.UI != rows || s.Restoring != nil || r.Outcome != "done" {
			t.Errorf("%s: %d rows, %+v, %+v", tt.to, len(s.UI()), taken, r)
		}
		d, _ := b.undo(id, false)
		b.wantFiles("undone", after)
		if s := b.state(id); len(s.UI()) != rows || d.Kind != "rewind" || d.Files == 0 {
			t.Errorf("undo of %s left %d rows: %+v", tt.to, len(s.UI()), d)
		}
		b.undo(id, true)
		b.wantFiles("done again", tt.want)
		b.undo(id, false)
	}
	if got := b.state(id); !slices.Equal(kinds(got), kinds(whole)) {
		t.Errorf("the history is %v, was %v", kinds(got), kinds(whole))
	}
}

// An edited message waits for the next run, also when the files went back with it.
func TestEditWithFiles(t *testing.T) {
	b, id, before, _ := afterTwoTurns(t)
	_, _, finish, err := b.engine.Checkpoints().RewindFiles(context.Background(), id, history.RewindOptions{To: "#1", Edit: "other words"}, checkpoints.RestoreOptions{})
	if err == nil {
		err = finish(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.wantFiles("rewound", before)
	if s := b.state(id); len(s.Queue) != 1 || s.Queue[0].Text != "other words" || len(s.API()) != 0 {
		t.Errorf("queue %+v, %d messages", s.Queue, len(s.API()))
	}
	_, outcome, _ := b.run(engine.Request{Task: id, Yes: true})
	wantOutcome(t, outcome, "completed", "")
}

// A wrong reference names what there is; a task without checkpoints says so.
func TestWrongCheckpoints(t *testing.T) {
	b, id, _, _ := afterTwoTurns(t)
	for _, word := range []string{"c9", "9", "#999", "zebra", "ffffffff"} {
		_, _, err := b.engine.Checkpoints().Restore(context.Background(), id, checkpoints.RestoreOptions{To: word})
		var bad *checkpoints.ReferenceError
		if !errors.As(err, &bad) || len(bad.Candidates) != 3 {
			t.Errorf("%s: got %v, want errors.As(err, &bad) and len(bad.Candidates) = 3", word, err)
		}
	}
	commit := b.state(id).Checkpoints[1].Commit
	for word, n := range map[string]int{"c2": 2, "2": 2, commit[:8]: 2, "0": 0, "c0": 0, "": 2} {
		if r := b.restore(id, checkpoints.RestoreOptions{To: word, NewRestore: api.NewRestore{DryRun: true}}); r.To.Number != n {
			t.Errorf("%q is c%d", word, r.To.Number)
		}
	}
	run, _, _ := b.runScript("- tools: [{name: attempt_completion, input: {result: done}}]\n")
	if _, _, err := b.engine.Checkpoints().Restore(context.Background(), run.TaskID, checkpoints.RestoreOptions{}); !errors.Is(err, checkpoints.ErrNone) {
		t.Errorf("a task without checkpoints: %v", err)
	}
}
