package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
)

const deskChildEnv = "ENGINE_TEST_DESK"

// errand is what a child process does with an engine before it is killed.
type errand struct {
	Root     string
	Requests []engine.Request // submitted one after the other
	Task     string
	Message  *engine.Message
	Question string
	Reply    *engine.Reply
	Until    string // a file that is waited for between requests and the rest
}

// deskMain is the program of those children. They end by a failpoint or a kill.
func deskMain() {
	text := os.Getenv(deskChildEnv)
	if text == "" {
		return
	}
	var what errand
	fail := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	fail(json.Unmarshal([]byte(text), &what))
	s, err := store.Open(store.Options{Root: what.Root, State: what.Root + ".state", Program: "child engine"})
	fail(err)
	e := engine.New(s, engine.Options{MaxRuns: 1, Config: setup.Config{Keys: map[string]string{}}})
	ctx := context.Background()
	for _, r := range what.Requests {
		_, err := e.Submit(ctx, r)
		fail(err)
	}
	for what.Until != "" {
		if _, err := os.Stat(what.Until); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for what.Question != "" {
		if open, err := e.Questions(ctx, what.Task); err == nil && len(open) > 0 {
			what.Question = open[0].ID
			break
		}
		time.Sleep(time.Millisecond)
	}
	switch {
	case what.Message != nil:
		_, err = e.Send(ctx, what.Task, *what.Message)
	case what.Reply != nil:
		_, err = e.Reply(ctx, what.Question, *what.Reply)
	case what.Question != "":
		time.Sleep(time.Minute) // it is the run that dies, behind what was seen of it here
	}
	fail(err)
	fmt.Println("not killed")
	os.Exit(0)
}

// killed runs an errand in a process that dies at a failpoint.
func (b *bench) killed(at string, what errand) {
	b.t.Helper()
	what.Root = b.root
	text, err := json.Marshal(what)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), deskChildEnv+"="+string(text), failpoint.Env+"="+at)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil || cmd.ProcessState.ExitCode() >= 0 {
		b.t.Fatalf("the child was not killed at %s: %v: %s", at, err, out)
	}
}

// What was acknowledged to be in the queue is there, once, after a kill.
func TestKilledBehindAQueuedRun(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	b := newLimitedBench(t, engine.Options{})
	busy, queued := b.ask(waitsForGo), b.ask(completesAtOnce)
	busy.NewTask, queued.NewTask = "busy-task", "queued-task"
	b.killed("engine.queued", errand{Requests: []engine.Request{busy, queued}})
	runs, err := b.engine.RunsOf(t.Context(), "queued-task")
	if err != nil || len(runs) != 1 || runs[0].State != "queued" || runs[0].Here {
		t.Fatalf("got %+v %v, want no error and len(runs) = 1 and runs[0].State = \"queued\" and not runs[0].Here",
			runs, err)
	}
	if again := b.submit(queued); !again.Same || again.ID != runs[0].ID {
		t.Errorf("the request again: %+v", again)
	}
	if err := b.engine.Recover(t.Context(), engine.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	b.waitForState(runs[0].ID, "completed")
	s := b.state("queued-task")
	checkHistory(t, s, true)
	if len(s.Runs.All) != 1 || rowsOf(s, "say:text", "go") != 1 {
		t.Errorf("%d runs: %v", len(s.Runs.All), kinds(s))
	}
	other, err := b.engine.RunsOf(t.Context(), "busy-task")
	if err != nil || len(other) != 1 || other[0].State != "interrupted" || other[0].Outcome != "interrupted" {
		t.Errorf("the run that was killed: %+v %v", other, err)
	}
}

// A person goes on with a queued run of a dead process: it is that run, with its words
// before theirs.
func TestAQueuedRunOfTheDeadIsTakenOver(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	b := newLimitedBench(t, engine.Options{})
	busy, queued := b.ask(waitsForGo), b.ask(completesAtOnce)
	busy.NewTask, queued.NewTask = "busy-task", "queued-task"
	b.killed("engine.queued", errand{Requests: []engine.Request{busy, queued}})
	before, err := b.engine.RunsOf(t.Context(), "queued-task")
	if err != nil || len(before) != 1 {
		t.Fatal(before, err)
	}
	sent := b.send("queued-task", engine.Message{ID: "m", Text: "and more", By: "test", Request: engine.Request{Interactive: true}})
	if sent.Run != before[0].ID {
		t.Errorf("%+v, was %+v", sent, before[0])
	}
	b.waitForState(before[0].ID, "completed")
	s := b.state("queued-task")
	if rowsOf(s, "say:text", "go") != 1 || rowsOf(s, "say:user_feedback", "and more") != 1 || len(s.Runs.All) != 1 {
		t.Errorf("%d runs: %v", len(s.Runs.All), kinds(s))
	}
}

// Words that were acknowledged while a run worked come to the model, once.
func TestKilledBehindWordsForARun(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(`
- tools: [{name: read_file, input: {path: here}}]
- tools: [{name: execute_command, input: {command: "touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	r.NewTask = "works"
	m := engine.Message{ID: "m-1", Text: "mind the gap", By: "test", Request: engine.Request{Interactive: true}}
	b.killed("engine.sent", errand{Requests: []engine.Request{r}, Task: "works", Message: &m, Until: filepath.Join(r.Workspace, "here")})
	words, err := b.engine.Inputs(t.Context(), "works")
	if err != nil || len(words) != 1 || words[0].Text != m.Text {
		t.Fatalf("got %+v %v, want no error and len(words) = 1 and words[0].Text = m.Text", words, err)
	}
	touch(t, r.Workspace, "go")
	if again := b.send("works", m); again.Delivered != "queued" || again.Input != "m-1" {
		t.Errorf("again: %+v", again)
	}
	if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
		t.Fatal(err)
	}
	runs, err := b.engine.RunsOf(t.Context(), "works")
	if err != nil || len(runs) != 2 {
		t.Fatalf("got %+v %v, want no error and len(runs) = 2", runs, err)
	}
	b.waitForState(runs[0].ID, "completed")
	s := b.state("works")
	checkHistory(t, s, true)
	if rowsOf(s, "say:user_feedback", m.Text) != 1 || len(s.Queue) != 0 {
		t.Errorf("got %v, want rowsOf(s, \"say:user_feedback\", m.Text) = 1 and len(s.Queue) = 0", kinds(s))
	}
}

// An answer that was acknowledged is used, once, whether its run waited for it in memory
// or was let go.
func TestKilledBehindAnAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	for name, hold := range map[string]time.Duration{"live": time.Hour, "let go": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t, engine.Options{})
			r := b.ask(asksWhich)
			r.NewTask, r.Hold = "asks", hold
			what := errand{Requests: []engine.Request{r}, Task: "asks", Question: "?", Reply: &engine.Reply{ID: "a-1", Text: "that one", By: "test"}}
			if name == "let go" {
				ticket := b.submit(r)
				b.waitForState(ticket.ID, "waiting")
				settledStatus(b, "asks")
				what.Requests = nil
			}
			b.killed("engine.answered", what)
			runs, err := b.engine.RunsOf(t.Context(), "asks")
			if err != nil || len(runs) != 1 || runs[0].State != "interrupted" && runs[0].State != "completed" {
				t.Fatalf(`got %+v %v, want no error and len(runs) = 1 and (runs[0].State = "interrupted" or runs[0].State = "completed")`,
					runs, err)
			}
			if open, err := b.engine.Questions(t.Context(), "asks"); err != nil || len(open) != 0 {
				t.Fatalf("got %+v %v, want no error and len(open) = 0", open, err)
			}
			if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
				t.Fatal(err)
			}
			runs, err = b.engine.RunsOf(t.Context(), "asks")
			if err != nil {
				t.Fatal(err)
			}
			b.waitForState(runs[0].ID, "completed")
			s := b.state("asks")
			checkAnswers(t, s)
			if rowsOf(s, "say:user_feedback", "that one") != 1 {
				t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", "that one") = 1`, kinds(s))
			}
		})
	}
}

// A run that was killed while it waited for a person still waits, over two restarts, and
// goes on with the answer.
func TestKilledWhileItWaits(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(asksWhich)
	r.NewTask = "asks"
	b.killed("question.opened", errand{Requests: []engine.Request{r}, Task: "asks", Question: "?"})
	for range 2 {
		open, err := b.engine.Questions(t.Context(), "")
		if err != nil || len(open) != 1 || open[0].Ref.ID != "asks" || open[0].Here {
			t.Fatalf("got %+v %v, want no error and len(open) = 1 and open[0].Ref.ID = \"asks\" and not open[0].Here",
				open, err)
		}
		if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
			t.Fatal(err)
		}
		if got := b.status("asks"); got != "waiting" {
			t.Errorf("the task is %s", got)
		}
		b.restart(engine.Options{})
	}
	q := b.asked("asks")
	got := b.reply(q.ID, engine.Reply{Text: "this", Request: engine.Request{Interactive: true}})
	b.waitForState(got.Run, "completed")
	s := b.state("asks")
	checkAnswers(t, s)
	if len(s.Runs.All) != 1 {
		t.Errorf("%d runs", len(s.Runs.All))
	}
}

// A request that was cut off between making its task and beginning its run is not lost
// and not done twice when it comes again.
func TestKilledBeforeARunWasAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("what it kills is a program of its own")
	}
	for _, at := range []string{"input.saved", "engine.started", "engine.made"} {
		t.Run(at, func(t *testing.T) {
			b := newLimitedBench(t, engine.Options{})
			r := b.ask(completesAtOnce)
			r.NewTask = "new-task"
			b.killed(at, errand{Requests: []engine.Request{r}})
			ticket := b.submit(r)
			if ticket.Same == (at == "engine.made") {
				t.Errorf("got %+v, want ticket.Same != (at == \"engine.made\")", ticket)
			}
			if ticket.Same {
				if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
					t.Fatal(err)
				}
			}
			runs, err := b.engine.RunsOf(t.Context(), "new-task")
			if err != nil || len(runs) == 0 {
				t.Fatal(runs, err)
			}
			b.waitForState(runs[0].ID, "completed")
			s := b.state("new-task")
			checkHistory(t, s, true)
			if rowsOf(s, "say:text", "go") != 1 {
				t.Errorf(`got %v, want rowsOf(s, "say:text", "go") = 1`, kinds(s))
			}
		})
	}
}
