package cli

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/running"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
)

// Who begins to follow a task while its subtask works, begun by an earlier run that was
// killed, sees the subtask and answers what it asks.
func TestAttachFindsTheSubtaskThatWorksAlready(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	mark := filepath.Join(s.dir, "begun")
	model := s.script(call("new_task", `{mode: code, message: "do part ONE", todos: null}`) + finish("All is done.") +
		"- task: part ONE\n" + call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; sleep 600", cwd: null, timeout: null}`, mark)) +
		"- tools: [{name: ask_followup_question, input: {question: \"Which part of it?\", follow_up: []}}]\n" + finish("One is done."))
	killed := s.beside("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "go")
	s.pid(mark)
	must(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait()
	id := ""
	for _, item := range s.list() {
		if item.Title == "go" {
			id = item.ID
		}
	}
	x := s.onTerminal("resume", id)
	x.expect("Which part of it?")
	x.expect("your answer")
	y := s.onTerminal("attach", id)
	y.expect("· subtask ")
	y.expect("Which part of it?")
	y.expect("your answer")
	y.press("the left one\n")
	for _, terminal := range []*terminal{x, y} {
		terminal.expect("All is done.")
		terminal.exits(failure.ExitDone)
	}
}

// Only a subtask that works or waits is looked at, and each of its runs once.
func TestWhichSubtaskIsFollowed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	p := s.roost("run", "--provider", "script", "--model", s.script(call("new_task", `{mode: code, message: "do part ONE", todos: null}`)+finish("All is done.")+
		"- task: part ONE\n"+"- tools: [{name: ask_followup_question, input: {question: \"Which?\", follow_up: []}}]\n"+finish("One is done.")), "-C", s.ws, "--yes", "go")
	if p.code != failure.ExitInput {
		t.Fatalf("exit %d\n%s", p.code, p.err)
	}
	var root, child string
	for _, item := range s.list() {
		if item.Title == "go" {
			root = item.ID
		} else {
			child = item.ID
		}
	}
	here, err := local.Open(local.Options{Root: s.root})
	must(t, err)
	here.Start(engine.Options{}, true)
	defer here.Close(t.Context())
	c, end, err := here.Client()
	must(t, err)
	defer end()
	look := func(w *running.Watcher, id string) string {
		if r := w.Running(t.Context(), id); r != nil {
			return r.Task
		}
		return ""
	}
	w := &running.Watcher{C: c, Followed: map[string]bool{}}
	if got := look(w, root); got != child {
		t.Errorf("it follows %q, the subtask is %s", got, child)
	}
	if got := look(w, child); got != "" {
		t.Errorf("a task without subtasks follows %s", got)
	}
	runs, err := c.RunsOf(t.Context(), child)
	must(t, err)
	w.Followed[runs.Items[0].ID] = true
	if got := look(w, root); got != "" {
		t.Errorf("one that is followed is followed again: %s", got)
	}
	if r := s.roost("cancel", child); r.code != 0 {
		t.Fatalf("cancel: %s", r.err)
	}
	if got := look(&running.Watcher{C: c}, root); got != "" {
		t.Errorf("one that has ended is followed: %s", got)
	}
}
