package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// waitForFile waits until a file is there: what a command of a script does shows where it is.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never came", path)
		}
	}
}

func (b *bench) start(r engine.Request) *engine.Run {
	b.t.Helper()
	if r.Task == "" {
		r.Workspace = b.workspace
	}
	r.Provider = "script"
	run, err := b.engine.Start(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

func (b *bench) end(run *engine.Run) engine.Outcome {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := run.Wait(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// rowsOf counts the rows of a kind that hold some words.
func rowsOf(s *task.State, kind, words string) (n int) {
	for _, m := range s.UI() {
		if m.Kind() == kind && strings.Contains(string(m.Raw()), words) {
			n++
		}
	}
	return n
}

func TestWordsForARunThatWorks(t *testing.T) {
	b := newBench(t)
	run := b.start(engine.Request{
		Text: "go",
		Choice: setup.Choice{Approve: "all", Model: b.script(`
- tools: [{name: execute_command, input: {command: "touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done"}}]
- expect: ["<user_message>\\nand mind the gap\\n</user_message>"]
  tools: [{name: attempt_completion, input: {result: done}}]
`)},
	})
	if err := run.Accepted(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, filepath.Join(b.workspace, "here"))
	if err := run.Enqueue(t.Context(), task.InputQueued{Input: "k1", Text: "and mind the gap", By: "api"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, b.end(run), "completed", "")
	s := b.state(run.TaskID)
	if n := rowsOf(s, "say:user_feedback", "mind the gap"); n != 1 || len(s.Queue) != 0 {
		t.Errorf("%d rows of the words, %d left in the queue", n, len(s.Queue))
	}
	checkHistory(t, s, true)
	if err := run.Enqueue(t.Context(), task.InputQueued{Input: "k2", Text: "late", By: "api"}); !errors.Is(err, store.ErrLetGo) {
		t.Errorf("words for a run that has ended: %v", err)
	}
}

// Words that come while the model says that it is done are its next task, not lost.
func TestWordsWhileTheTaskIsCompleted(t *testing.T) {
	b := newBench(t)
	run := b.start(engine.Request{
		Text: "go",
		Choice: setup.Choice{Approve: "all", Model: b.script(`
- tools:
  - {name: execute_command, input: {command: "touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done"}}
  - {name: attempt_completion, input: {result: first}}
- expect: ["one more thing"]
  tools: [{name: attempt_completion, input: {result: second}}]
`)},
	})
	waitForFile(t, filepath.Join(b.workspace, "here"))
	if err := run.Enqueue(t.Context(), task.InputQueued{Input: "k", Text: "one more thing", By: "api"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := b.end(run); o.State != "completed" || o.Reason != "second" {
		t.Errorf(`got %+v, want o.State = "completed" and o.Reason = "second"`, o)
	}
	s := b.state(run.TaskID)
	checkHistory(t, s, true)
	if rowsOf(s, "say:user_feedback", "one more thing") != 1 || rowsOf(s, "say:completion_result", "first") != 1 {
		t.Errorf(`got %v, want rowsOf(s, "say:user_feedback", "one more thing") = 1 and rowsOf(s, "say:completion_result", "first") = 1`,
			kinds(s))
	}
}

const asksOnce = `
- tools: [{name: execute_command, input: {command: "echo hi"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// A run that nobody answers lets its task go, and goes on under its name.
func TestARunThatWaitsTooLongLetsItsTaskGo(t *testing.T) {
	for name, let := range map[string]func(*engine.Run){
		"after its time": func(*engine.Run) {},
		"when told to":   (*engine.Run).Release,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := engine.Request{Text: "go", Interactive: true, Choice: setup.Choice{Model: b.script(asksOnce)}}
			if name == "after its time" {
				r.Hold = 20 * time.Millisecond
			}
			run := b.start(r)
			let(run)
			wantOutcome(t, b.end(run), "waiting", "")
			if status := b.status(run.TaskID); status != "waiting" {
				t.Errorf("status %s", status)
			}
			again := b.start(engine.Request{Task: run.TaskID, RunID: run.ID, Text: "yes", Choice: setup.Choice{Model: r.Model}})
			wantOutcome(t, b.end(again), "completed", "")
			s := b.state(run.TaskID)
			if again.ID != run.ID || s.Run.ID != run.ID || len(s.Runs.All) != 1 || s.Run.Turns != 2 {
				t.Errorf("run %s, then %+v, %d runs", run.ID, s.Run, len(s.Runs.All))
			}
			checkHistory(t, s, true)
		})
	}
}

// A person's time is not the run's.
func TestWaitingForAPersonStopsTheClock(t *testing.T) {
	b := newBench(t)
	// A busy machine can be slow about what is the run's own: only a clock that goes on
	// while somebody is asked runs out every time.
	for limit := 400 * time.Millisecond; ; limit *= 3 {
		o := b.answeredAfter(2*limit, api.RunLimits{TotalTimeoutMS: limit.Milliseconds()})
		if o.State == "limit" && limit < 10*time.Second {
			continue
		}
		wantOutcome(t, o, "completed", "")
		break
	}
	slow := b.start(engine.Request{
		Text: "go",
		Choice: setup.Choice{Approve: "all", Limits: &api.RunLimits{TotalTimeoutMS: 100}, Model: b.script(`
- tools: [{name: execute_command, input: {command: "sleep 60"}}]
`)},
	})
	wantOutcome(t, b.end(slow), "limit", "timeout")
}

// A run that was let go while it waited goes on with the time that it has worked: a limit
// that a question would reset is none. What it waited for is not counted, and after an end
// of its own the next run has all of it.
func TestTheTimeARunWorkedOutlivesItsQuestion(t *testing.T) {
	b := newBench(t)
	limit, begun := api.RunLimits{TotalTimeoutMS: time.Hour.Milliseconds()}, time.Now() // the clock starts before the event does
	run := b.start(engine.Request{
		Text: "go",
		Choice: setup.Choice{Limits: &limit, Model: b.script(`
- tools: [{name: execute_command, input: {command: "sleep 0.1"}}]
- tools: [{name: ask_followup_question, input: {question: "Which?", follow_up: []}}]
- {delay: 10m, text: "a word that never comes"}
`), Approve: "all"},
	})
	wantOutcome(t, b.end(run), "waiting", "")
	had := b.state(run.TaskID)
	if most := time.Since(begun).Milliseconds(); had.Run.WorkedMS < 100 || had.Run.WorkedMS > most {
		t.Errorf("it worked %d ms, want at least the 100 of the command, and at most the %d since its start", had.Run.WorkedMS, most)
	}
	ref, err := b.store.Find(t.Context(), run.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := b.store.Own(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(owned.Task.Commit(t.Context(), task.RunWaiting{Run: run.ID, Question: had.Questions[0].Question, WorkedMS: limit.TotalTimeoutMS}), owned.Task.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := b.start(engine.Request{Task: run.TaskID, RunID: run.ID, Text: "the left one"})
	wantOutcome(t, b.end(again), "limit", "timeout")
	if s := b.state(run.TaskID); s.Run.WorkedMS < limit.TotalTimeoutMS {
		t.Errorf("it worked %d ms in all", s.Run.WorkedMS)
	}
	next := b.start(engine.Request{Task: run.TaskID, Text: "go on", Choice: setup.Choice{Model: b.script(completesAtOnce)}})
	wantOutcome(t, b.end(next), "completed", "")
	if s := b.state(run.TaskID); s.Run.WorkedMS >= limit.TotalTimeoutMS {
		t.Errorf("the next run took over %d ms", s.Run.WorkedMS)
	}
}

// answeredAfter is how a run ends that asks a person who takes their time.
func (b *bench) answeredAfter(wait time.Duration, limits api.RunLimits) engine.Outcome {
	b.t.Helper()
	gone, cancel := context.WithCancel(b.t.Context())
	cancel()
	run := b.start(engine.Request{Text: "go", Interactive: true, Choice: setup.Choice{Model: b.script(asksOnce), Limits: &limits}})
	for e := range run.Events(b.t.Context()) {
		if e.Type != "question.opened" {
			continue
		}
		time.Sleep(wait) // what is tested is that this much time does nothing
		_, asked, _ := strings.Cut(string(e.Data), `"question":"`)
		asked, _, _ = strings.Cut(asked, `"`)
		yes, over := true, func() bool { _, err := run.Wait(gone); return err == nil }
		// The event may come a moment before the question is listened for.
		for run.Answer(asked, engine.Answer{Approve: &yes, By: "test"}) != nil && !over() {
			time.Sleep(5 * time.Millisecond)
		}
	}
	return b.end(run)
}

func TestNamesOfRunsLeadToTheirTask(t *testing.T) {
	b := newBench(t)
	script := b.script("- tools: [{name: attempt_completion, input: {result: done}}]\n")
	first := b.start(engine.Request{Text: "go", NewTask: "0199aaaa-0000-7000-8000-000000000001", Choice: setup.Choice{Model: script}})
	b.end(first)
	second := b.start(engine.Request{Task: first.TaskID, Text: "more", Choice: setup.Choice{Model: script}})
	b.end(second)
	other := b.start(engine.Request{Text: "go", Choice: setup.Choice{Model: script}})
	b.end(other)
	end := func(r *engine.Run) string { return r.ID[len(r.ID)-8:] }
	if first.TaskID != "0199aaaa-0000-7000-8000-000000000001" || first.ID == second.ID || end(first) != end(second) || end(first) == end(other) {
		t.Errorf("%s of %s, %s, %s", first.ID, first.TaskID, second.ID, other.ID)
	}
	if _, err := b.engine.Start(t.Context(), engine.Request{Text: "go", NewTask: first.TaskID, Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: script}}); err == nil {
		t.Error("a task was made twice")
	}
}
