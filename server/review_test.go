package server

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

// thirty are thirty lines, some of them with other words.
func thirty(other map[int]string) string {
	var out strings.Builder
	for i := 1; i <= 30; i++ {
		word, is := other[i]
		if !is {
			word = fmt.Sprintf("line %d", i)
		}
		out.WriteString(word + "\n")
	}
	return out.String()
}

// reviewed is a task that wrote b.txt twice, with a command and a change by the person in between.
func reviewed(t *testing.T) (g *bench, file string) {
	g = newWorkingBench(t)
	file = filepath.Join(g.dir, "ws", "b.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(thirty(nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := g.started(`
- tools: [{name: read_file, input: {path: b.txt}}]
- tools: [{name: write_to_file, input: {path: b.txt, content: ` + fmt.Sprintf("%q", thirty(map[int]string{2: "agent"})) + `}}]
- tools: [{name: execute_command, input: {command: "sed -i 's/line 15/command/' b.txt"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	g.state(run.ID, "completed")
	g.id = run.Task
	return g, file
}

// Each hunk of a difference names what made it: a call, a command, or something outside of the task.
func TestADifferenceNamesWhoMadeIt(t *testing.T) {
	g, file := reviewed(t)
	if err := os.WriteFile(file, []byte(thirty(map[int]string{2: "agent", 15: "command", 28: "own"})), 0o600); err != nil {
		t.Fatal(err)
	}
	var d api.Diff
	g.did(200, &d, "GET", g.path("/checkpoints/0/diff"), "")
	if len(d.Files) != 1 || len(d.Files[0].Hunks) != 3 {
		t.Fatalf("got %+v, want one file with three hunks", d)
	}
	var got []string
	for _, h := range d.Files[0].Hunks {
		for _, a := range h.Authors {
			got = append(got, fmt.Sprintf("%d:%d %s %s %v", h.Number, h.To, a.By, a.Tool, a.Row > 0))
		}
	}
	want := []string{"1:1 agent write_to_file true", "2:12 command execute_command true", "3:25 other  false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := len(d.Files[0].Authors); n != 3 {
		t.Errorf("got %d authors of the file, want 3: %+v", n, d.Files[0].Authors)
	}
}

// One hunk goes back, with a preview, and comes again with undo; the others stay.
func TestRestoreAHunk(t *testing.T) {
	g, file := reviewed(t)
	var d api.Diff
	g.did(200, &d, "GET", g.path("/checkpoints/0/diff"), "")
	hunk := d.Files[0].Hunks[0]
	body := func(dry, hash, more string) string {
		return `{"paths":["b.txt"],"shown":{"hunk":1,"hash":"` + hash + `"},"dry_run":` + dry + more + `}`
	}
	var plan, done api.RestoreResult
	g.did(200, &plan, "POST", g.path("/checkpoints/0/restore"), body("true", hunk.Hash, ""))
	if len(plan.Files) != 1 || !strings.Contains(plan.Files[0].Patch, "-agent\n+line 2\n") || strings.Contains(plan.Files[0].Patch, "command") {
		t.Errorf("the preview: got %+v, want line 2 alone", plan.Files)
	}
	g.did(200, &done, "POST", g.path("/checkpoints/0/restore"), body("false", hunk.Hash, `,"plan":"`+plan.Plan+`"`))
	if got, want := read(t, file), thirty(map[int]string{15: "command"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.did(200, nil, "POST", g.path("/undo"), `{}`)
	if got, want := read(t, file), thirty(map[int]string{2: "agent", 15: "command"}); got != want {
		t.Errorf("after undo: got %q, want %q", got, want)
	}
	if resp := g.send("POST", g.path("/checkpoints/0/restore"), body("true", "0"+hunk.Hash, "")); resp.StatusCode != 409 {
		t.Errorf("another hash: got %s, want 409", resp.Status)
	}
	if err := os.WriteFile(file, []byte(thirty(map[int]string{2: "agent", 15: "own"})), 0o600); err != nil {
		t.Fatal(err)
	}
	if resp := g.send("POST", g.path("/checkpoints/0/restore"), body("false", hunk.Hash, "")); resp.StatusCode != 409 {
		t.Errorf("a file that changed since: got %s, want 409", resp.Status)
	}
}

// A hunk between two checkpoints of a file that differs by now is a conflict, and its lines go with merge.
func TestRestoreAHunkOfAnEarlierTurn(t *testing.T) {
	g, file := reviewed(t)
	var list api.Checkpoints
	g.did(200, &list, "GET", g.path("/checkpoints"), "")
	var d api.Diff
	g.did(200, &d, "GET", g.path("/checkpoints/0/diff?to=c2"), "")
	hunk := d.Files[0].Hunks[0]
	body := `{"paths":["b.txt"],"shown":{"to":"c2","hunk":1,"hash":"` + hunk.Hash + `"},"dry_run":%t,"on_conflict":%q}`
	var plan api.RestoreResult
	g.did(200, &plan, "POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, true, "keep"))
	if len(plan.Files) != 0 || len(plan.Conflicts) != 1 {
		t.Errorf("got %+v, want a conflict", plan)
	}
	g.did(200, nil, "POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, false, "merge"))
	if got, want := read(t, file), thirty(map[int]string{15: "command"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if resp := g.send("POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, true, "overwrite")); resp.StatusCode != 422 {
		t.Errorf("overwrite: got %s, want 422", resp.Status)
	}
}

// A whole file goes back; with a change of the person in it that is a conflict, and merge leaves that change.
func TestRestoreAFileThatWasShown(t *testing.T) {
	g, file := reviewed(t)
	if err := os.WriteFile(file, []byte(thirty(map[int]string{2: "agent", 15: "command", 28: "own"})), 0o600); err != nil {
		t.Fatal(err)
	}
	var d api.Diff
	g.did(200, &d, "GET", g.path("/checkpoints/0/diff"), "")
	body := `{"paths":["b.txt"],"shown":{"hash":"` + d.Files[0].Hash + `"},"dry_run":%t,"on_conflict":%q}`
	var plan api.RestoreResult
	g.did(200, &plan, "POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, true, "keep"))
	if len(plan.Files) != 0 || len(plan.Conflicts) != 1 {
		t.Errorf("got %+v, want a conflict", plan)
	}
	g.did(200, &plan, "POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, true, "merge"))
	if len(plan.Files) != 1 || strings.Contains(plan.Files[0].Patch, "-own") || !strings.Contains(plan.Files[0].Patch, "-command") {
		t.Errorf("got %+v, want a preview that keeps the person's line", plan.Files)
	}
	g.did(200, nil, "POST", g.path("/checkpoints/0/restore"), fmt.Sprintf(body, false, "merge"))
	if got, want := read(t, file), thirty(map[int]string{28: "own"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Two branches of a task are compared from the last message that both have, and so are a task and its fork.
func TestCompare(t *testing.T) {
	g := newWorkingBench(t)
	run := g.started(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\n"}}]
- tools: [{name: write_to_file, input: {path: b.txt, content: "two\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	g.state(run.ID, "completed")
	g.id = run.Task
	var fork api.ForkResult
	g.did(201, &fork, "POST", g.path("/forks"), `{}`)
	var taken api.Rewound
	g.did(200, &taken, "POST", g.path("/rewinds"), `{"to":"~2","files":true}`)
	for with, want := range map[string]string{taken.Branch: taken.Branch, fork.ID: "head"} {
		var got api.Comparison
		g.did(200, &got, "GET", g.path("/compare?with=%s", with), "")
		if len(got.Sides) != 2 || got.Common == nil || got.Sides[0].Branch != "head" || got.Sides[1].Branch != want {
			t.Fatalf("%s: got %+v, want two sides with a common message", with, got)
		}
		one, other := got.Sides[0], got.Sides[1]
		if one.Messages.UI != 0 || other.Messages.UI == 0 || len(other.Rows) == 0 || other.Rows[0].Number <= got.Common.Number {
			t.Errorf("%s: got %+v and %+v, want messages of the second alone, behind the common one", with, one.Messages, other.Rows)
		}
		var files []string
		for _, f := range other.Files {
			files = append(files, f.Change+" "+f.Path)
		}
		if d := cmp.Diff([]string{"added b.txt"}, files); d != "" {
			t.Errorf("%s: the second side: %s", with, d)
		}
	}
	for _, bad := range []string{"", "?with=", "?with=nothing", "?with=b999999"} {
		resp := g.send("GET", g.path("/compare%s", bad), "")
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 404 && resp.StatusCode != 422 || bytes.Contains(body, []byte("no task has the id "+g.id)) {
			t.Errorf("%q: got %s, %s, want 404 or 422 about what with names", bad, resp.Status, body)
		}
	}
}

// A task and its fork that changed files each in its own way differ in these files.
func TestCompareFilesOfAFork(t *testing.T) {
	g := newWorkingBench(t)
	run := g.started(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
- tools: [{name: write_to_file, input: {path: b.txt, content: "two\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	g.state(run.ID, "completed")
	g.id = run.Task
	var fork api.ForkResult
	g.did(201, &fork, "POST", g.path("/forks"), `{}`)
	var more api.Run
	g.did(202, &more, "POST", "/v1/tasks/"+fork.ID+"/runs", `{"message":{"text":"go on"}}`)
	g.state(more.ID, "completed")
	var got api.Comparison
	g.did(200, &got, "GET", g.path("/compare?with=%s", fork.ID), "")
	if got.Why != "" || len(got.Files) != 1 || got.Files[0].Path != "b.txt" || !strings.Contains(got.Files[0].Patch, "+two") {
		t.Errorf("got %q %+v, want b.txt, which the fork added", got.Why, got.Files)
	}
}

// A change that another task made names that task once the journal knows it, and a change during a long command is not
// guessed.
func TestADifferenceNamesAnotherTask(t *testing.T) {
	g := newWorkingBench(t)
	writes := func(text string) string {
		return `- tools: [{name: write_to_file, input: {path: f, content: "` + text + `\n"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`
	}
	run := g.started(writes("mine") + "- tools: [{name: attempt_completion, input: {result: done}}]\n")
	g.state(run.ID, "completed")
	other := g.started("- tools: [{name: read_file, input: {path: f}}]\n" + writes("theirs"))
	g.state(other.ID, "completed")
	g.id = run.Task
	var more api.Run
	g.did(202, &more, "POST", g.path("/runs"), `{"message":{"text":"go on"}}`)
	g.state(more.ID, "completed")
	var d api.Diff
	g.did(200, &d, "GET", g.path("/checkpoints/0/diff"), "")
	if len(d.Files) != 1 || len(d.Files[0].Authors) != 2 || d.Files[0].Authors[0].By != "agent" || d.Files[0].Authors[1].By != "other" ||
		d.Files[0].Authors[1].Task != other.Task {
		t.Errorf("got %+v, want the agent and the task %s", d.Files, other.Task)
	}
}
