package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

const childEnv = "ENGINE_TEST_CHILD"

// childMain is the program of the child processes: it starts or continues a task
// in a root and says what became of that.
func childMain() {
	args := strings.Split(os.Getenv(childEnv), "\n")
	if len(args) != 4 {
		return
	}
	s, err := store.Open(store.Options{Root: args[0], State: args[0] + ".state", Program: "child engine"})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	e := engine.New(s, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	run, err := e.Start(context.Background(), engine.Request{
		Task:   args[1],
		Choice: setup.Choice{Workspace: args[2], Provider: "script", Model: args[3], Approve: "all"},
		Text:   "go",
	})
	var busy *journal.BusyError
	switch {
	case errors.As(err, &busy):
		fmt.Println("busy", busy.Holder.PID, busy.Holder.Program)
		os.Exit(0)
	case err != nil:
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("running", run.TaskID)
	o, err := run.Wait(context.Background())
	fmt.Println("ended", o.State, err)
	if err := e.Close(context.Background()); err != nil {
		fmt.Println("error", err)
	}
	os.Exit(0)
}

func (b *bench) child(id, script string) (*exec.Cmd, *bufio.Scanner) {
	b.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{b.root, id, b.workspace, script}, "\n"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func line(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	if !s.Scan() {
		t.Fatalf("the child said no more: %v", s.Err())
	}
	return s.Text()
}

// Two engines in two processes want one task: the second is told who has it, and
// neither disturbs the other. When the first is killed the second gets it.
func TestTwoProcessesOneTask(t *testing.T) {
	b := newBench(t)
	slow := b.script("- {text: a b c d e f g h i j k l m n o p q r s t u v w x y z, delay: 500ms}\n")
	first, out := b.child("", slow)
	word, id, _ := strings.Cut(line(t, out), " ")
	if word != "running" {
		t.Fatal(word, id)
	}
	_, err := b.engine.Start(t.Context(), engine.Request{Task: id, Text: "mine"})
	var busy *journal.BusyError
	if !errors.As(err, &busy) || busy.Holder.PID != first.Process.Pid || busy.Holder.Program != "child engine" {
		t.Fatalf("while another process runs it: %v", err)
	}
	if who := fmt.Sprintf("in use by child engine (pid %d)", first.Process.Pid); !strings.Contains(err.Error(), who) {
		t.Fatalf("%q is not in %q", who, err)
	}
	_, second := b.child(id, slow)
	if got, want := line(t, second), fmt.Sprintf("busy %d child engine", first.Process.Pid); got != want {
		t.Fatalf("the third engine said %q, want %q", got, want)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	_, o, _ := b.run(engine.Request{Task: id, Text: "mine", Choice: setup.Choice{Model: b.script("- text: x\n- tools: [{name: attempt_completion, input: {result: ok}}]\n")}})
	wantOutcome(t, o, "completed", "")
	checkHistory(t, b.state(id), true)
}

// Within one process it is the same: a task runs once at a time.
func TestOneRunOfATaskAtATime(t *testing.T) {
	b := newBench(t)
	run, err := b.engine.Start(t.Context(), engine.Request{
		Text:   "go",
		Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Approve: "all", Model: b.script("- {text: a b c d e f g h i j k l m n o p q r s t, delay: 200ms}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var busy *journal.BusyError
	if _, err := b.engine.Start(t.Context(), engine.Request{Task: run.TaskID, Text: "too"}); !errors.As(err, &busy) || busy.Holder.PID != os.Getpid() {
		t.Fatalf("a second run: %v", err)
	}
	if n := len(b.engine.Runs()); n != 1 {
		t.Fatalf("%d runs", n)
	}
	run.Cancel()
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, o, _ := b.run(engine.Request{Task: run.TaskID, Text: "now", Choice: setup.Choice{Model: b.script("- tools: [{name: attempt_completion, input: {result: ok}}]\n- tools: [{name: attempt_completion, input: {result: ok}}]\n")}})
	wantOutcome(t, o, "completed", "")
}

// A Close that has returned leaves no run behind, whatever was starting meanwhile;
// a task that was just being taken is let go.
func TestCloseWhileRunsStart(t *testing.T) {
	for range 5 {
		b := newBench(t)
		script := b.script("- {text: a b c d e f g h, delay: 100ms}\n")
		var wait sync.WaitGroup
		var mu sync.Mutex
		var started []*engine.Run
		for range 4 {
			wait.Go(func() {
				run, err := b.engine.Start(context.Background(), engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Model: script}})
				if err != nil && !errors.Is(err, engine.ErrClosed) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					started = append(started, run)
					mu.Unlock()
				}
			})
		}
		time.Sleep(2 * time.Millisecond) // anywhere between none and all of them
		if err := b.engine.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.engine.Runs()); n != 0 {
			t.Fatalf("%d runs after Close", n)
		}
		wait.Wait()
		for _, run := range started {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := run.Wait(ctx); err != nil {
				t.Errorf("a run lives on after Close: %v", err)
			}
			cancel()
		}
		if _, err := b.engine.Start(t.Context(), engine.Request{Text: "more", Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Model: script}}); !errors.Is(err, engine.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
		tasks, err := filepath.Glob(filepath.Join(b.root, "tasks", "*", "journal.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, log := range tasks { // nobody holds them
			ref, err := b.store.Find(t.Context(), filepath.Base(filepath.Dir(log)))
			if err != nil {
				t.Fatal(err)
			}
			owned, err := b.store.Own(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if err := owned.Task.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A watcher's end never touches the run.
func TestWatcherThatLeavesDoesNotTouchTheRun(t *testing.T) {
	b := newBench(t)
	run, err := b.engine.Start(t.Context(), engine.Request{
		Text:   "go",
		Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Approve: "all", Model: b.script(writeAndFinish)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range run.Events(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait: %v", err)
	}
	o, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, o, "completed", "")
}

// A refused start leaves nothing behind: no task, no journal, no lock.
func TestRefusedStartLeavesNothing(t *testing.T) {
	b := newBench(t)
	for name, r := range map[string]engine.Request{
		"no prompt":    {Choice: setup.Choice{Provider: "script", Workspace: b.workspace}},
		"no provider":  {Text: "go", Choice: setup.Choice{Workspace: b.workspace}},
		"no workspace": {Text: "go", Choice: setup.Choice{Provider: "script"}},
		"gone":         {Text: "go", Choice: setup.Choice{Provider: "script", Workspace: filepath.Join(b.workspace, "gone")}},
		"no policy":    {Text: "go", Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Approve: "perhaps"}},
		"no script":    {Text: "go", Choice: setup.Choice{Provider: "script", Workspace: b.workspace, Model: "/nowhere.yaml"}},
	} {
		_, err := b.engine.Start(t.Context(), r)
		var config *setup.Error
		if !errors.As(err, &config) || config.Try == "" || config.What == "" {
			t.Errorf(`%s: got %v, want errors.As(err, &config) and config.Try != "" and config.What != ""`, name, err)
		}
	}
	if _, err := b.engine.Start(t.Context(), engine.Request{Task: "nobody", Text: "go"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no task: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.root, "tasks", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A task keeps its limits; one that is given replaces itself and no other.
func TestLimitsOfATaskAreKept(t *testing.T) {
	b := newBench(t)
	all := api.RunLimits{MaxTurns: 1, MaxCostMicros: 9_000_000, IdleTimeoutMS: 60_000, TotalTimeoutMS: 120_000}
	run, o, _ := b.runScript(writeAndFinish, func(r *engine.Request) { r.Limits = &all })
	wantOutcome(t, o, "limit", "turns")
	if got := b.state(run.TaskID).Settings.Limits; got != all {
		t.Fatalf("kept %+v", got)
	}
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true})
	wantOutcome(t, o, "limit", "turns")
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true, Choice: setup.Choice{Limits: &api.RunLimits{MaxTurns: 20}}})
	wantOutcome(t, o, "completed", "")
	changed := all
	changed.MaxTurns = 20
	if got := b.state(run.TaskID).Settings.Limits; got != changed {
		t.Fatalf("kept %+v, want %+v", got, changed)
	}
}

// The cost limit stops a run before the request that would come after it was
// reached, saved, and another run goes on.
func TestCostLimit(t *testing.T) {
	dear := llmtest.Call("toolu_1", "list_files", `{"path":"."}`)
	dear.Input, dear.Output = 100_000, 10_000 // some tens of cents on any model
	b, server := newAPIBench(t, dear, done)
	run, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all", Model: "claude-sonnet-4-5", Limits: &api.RunLimits{MaxCostMicros: 1000}}})
	wantOutcome(t, o, "limit", "cost")
	if n := len(server.Requests()); n != 1 {
		t.Fatalf("%d requests went out", n)
	}
	s := b.state(run.TaskID)
	if s.Run.Outcome != "limit" || s.Run.Code != "cost" || s.Usage.CostMicros <= 1000 || !strings.Contains(o.Reason, "$") {
		t.Fatalf("run %+v, spent %d, %q", s.Run, s.Usage.CostMicros, o.Reason)
	}
	checkHistory(t, s, false)
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true, Choice: setup.Choice{Limits: &api.RunLimits{MaxCostMicros: -1}}})
	wantOutcome(t, o, "completed", "")
}

// A question that nobody could answer is answered by the words of the next run:
// they are the answer to it, and not a new request beside it.
func TestFollowupIsAnsweredByResume(t *testing.T) {
	b := newBench(t)
	run, o, events := b.runScript(`
- tools: [{name: ask_followup_question, input: {question: "which one?", follow_up: [{text: "this", mode: null}, {text: "that", mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: ok}}]
`)
	wantOutcome(t, o, "waiting", "")
	if len(ofType(events, "question.opened")) != 1 || o.Question == "" {
		t.Fatalf(`got %+v, want len(ofType(events, "question.opened")) = 1 and o.Question != ""`, o)
	}
	_, o, _ = b.run(engine.Request{Task: run.TaskID}) // without words it waits on, for the same
	wantOutcome(t, o, "waiting", "")
	if n := len(b.state(run.TaskID).Questions); n != 1 {
		t.Fatalf("%d questions are open", n)
	}
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Text: "neither of them"})
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID)
	checkHistory(t, s, true)
	if len(s.Questions) != 0 || strings.Count(string(s.API()[2].Raw()), "neither of them") != 1 || !strings.Contains(string(s.API()[2].Raw()), `"tool_use_id":"call_1_1"`) {
		t.Fatalf("open %d, the answer is %s", len(s.Questions), s.API()[2].Raw())
	}
}

// Whoever answers at the very moment the question is shown is heard.
func TestAnswerAtOnce(t *testing.T) {
	b := newBench(t)
	yes := true
	run, err := b.engine.Start(t.Context(), engine.Request{
		Text:        "go",
		Choice:      setup.Choice{Provider: "script", Workspace: b.workspace, Model: b.script(strings.Repeat("- tools: [{name: execute_command, input: {command: \"echo x\"}}]\n", 8))},
		Interactive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for e := range run.Events(t.Context()) {
		if e.Type != "question.opened" {
			continue
		}
		asked++
		id := between(string(e.Data), `"question":"`, `"`)
		if err := run.Answer(id, engine.Answer{Approve: &yes}); err != nil {
			t.Fatalf("question %d: %v", asked, err)
		}
	}
	o, err := run.Wait(t.Context())
	if err != nil || asked != 8 {
		t.Fatal(asked, err)
	}
	wantOutcome(t, o, "completed", "")
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// Stopping at a question saves the run; the question is still open for the next.
func TestStopAtAQuestion(t *testing.T) {
	b := newBench(t)
	run, err := b.engine.Start(t.Context(), engine.Request{
		Text:        "go",
		Choice:      setup.Choice{Provider: "script", Workspace: b.workspace, Model: b.script("- tools: [{name: execute_command, input: {command: \"echo ran > ran.txt\"}}]\n")},
		Interactive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for e := range run.Events(t.Context()) {
		if e.Type == "question.opened" {
			run.Cancel()
		}
	}
	o, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, o, "cancelled", "")
	if _, err := os.Stat(filepath.Join(b.workspace, "ran.txt")); err == nil {
		t.Fatal("it ran")
	}
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Text: "yes"})
	wantOutcome(t, o, "completed", "")
	if _, err := os.Stat(filepath.Join(b.workspace, "ran.txt")); err != nil {
		t.Fatal("the answer of the next run was not used:", err)
	}
}
