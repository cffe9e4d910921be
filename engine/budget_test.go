package engine_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/task"
)

// costly looks once, for some tens of cents.
func costly(id string) llmtest.Reply {
	t := llmtest.Call(id, "list_files", `{"path":"."}`)
	t.Input, t.Output = 100_000, 10_000
	return t
}

// What all tasks spent today counts against the day, whoever spent it and in whichever
// process; the limit is the machine's and no task keeps it.
func TestADaysLimitIsAllTasks(t *testing.T) {
	b, server := newAPIBench(t, costly("toolu_1"), done, costly("toolu_2"), done)
	request := engine.Request{Text: "go", Choice: setup.Choice{Approve: "all", Model: "claude-sonnet-4-5"}}
	first, o, _ := b.run(request)
	wantOutcome(t, o, "completed", "")
	spent := b.state(first.TaskID).Usage.CostMicros
	if spent <= 0 {
		t.Fatal("nothing was spent")
	}
	asked := len(server.Requests())

	request.MaxDayMicros = spent
	second, o, _ := b.run(request)
	wantOutcome(t, o, "limit", "cost_day")
	if n := len(server.Requests()); n != asked || !strings.Contains(o.Reason, "today") {
		t.Errorf("%d requests more: %s", n-asked, o.Reason)
	}
	// The words are saved; with more room, or none asked for, the task goes on.
	if s := b.state(second.TaskID); len(s.API()) == 0 || s.Run.Code != "cost_day" {
		t.Errorf("got %+v, want len(s.API()) != 0 and s.Run.Code = \"cost_day\"", s.Run)
	}
	_, o, _ = b.run(engine.Request{Task: second.TaskID, Yes: true, Choice: setup.Choice{RunChoice: task.RunChoice{MaxDayMicros: spent + 1}}})
	wantOutcome(t, o, "limit", "cost_day") // its own first request counts as well
	_, o, _ = b.run(engine.Request{Task: second.TaskID, Yes: true})
	wantOutcome(t, o, "completed", "")
}

// A task's own limit counts all that it ever spent, over runs that ended and began anew.
func TestATasksLimitIsForAllItsRuns(t *testing.T) {
	b, server := newAPIBench(t, costly("toolu_1"), costly("toolu_2"), done)
	run, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all", Model: "claude-sonnet-4-5", Limits: &api.RunLimits{MaxTaskMicros: 1000}}})
	wantOutcome(t, o, "limit", "cost_task")
	for range 2 { // each is a run of its own, and none may spend anything
		_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true})
		wantOutcome(t, o, "limit", "cost_task")
	}
	if n := len(server.Requests()); n != 1 {
		t.Fatalf("%d requests", n)
	}
	_, o, _ = b.run(engine.Request{Task: run.TaskID, Yes: true, Choice: setup.Choice{Limits: &api.RunLimits{MaxTaskMicros: -1}}})
	wantOutcome(t, o, "completed", "")
}

// A subtask may not spend what its tree has spent already.
func TestATreesLimitHoldsForAChild(t *testing.T) {
	b, server := newAPIBench(t, costly("toolu_1"), done, done)
	parent, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Approve: "all", Model: "claude-sonnet-4-5"}})
	wantOutcome(t, o, "completed", "")
	spent := b.state(parent.TaskID).Usage.CostMicros
	owned, err := b.store.Create(t.Context(), task.Created{
		Origin: "cli", Number: 2, Parent: parent.TaskID, RootTask: parent.TaskID, CreatedAt: b.state(parent.TaskID).CreatedAt + 1,
		Settings: task.Settings{Workspace: b.workspace, Mode: "code", Provider: "anthropic", Model: "claude-sonnet-4-5", Approve: "all", Limits: api.RunLimits{MaxTaskMicros: spent}},
	})
	if err != nil {
		t.Fatal(err)
	}
	child := owned.Ref.ID
	if err := owned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := len(server.Requests())
	_, o, _ = b.run(engine.Request{Task: child, Text: "go on"})
	wantOutcome(t, o, "limit", "cost_task")
	if n := len(server.Requests()); n != asked {
		t.Errorf("%d requests more", n-asked)
	}
	_, o, _ = b.run(engine.Request{Task: child, Yes: true, Choice: setup.Choice{Limits: &api.RunLimits{MaxTaskMicros: 10 * spent}}})
	wantOutcome(t, o, "completed", "")
}

// Rules of tools are kept by the task, and one that cannot be read starts nothing.
func TestRulesOfTools(t *testing.T) {
	b := newBench(t)
	script := b.script("- tools: [{name: write_to_file, input: {path: a, content: x}}]\n- tools: [{name: attempt_completion, input: {result: done}}]\n")
	request := engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: script, DenyTools: []string{"write(a"}}}
	if run, err := b.engine.Start(t.Context(), withWorkspace(b, request)); err == nil || run != nil {
		t.Fatalf("got %v, %v, want an error and run = nil", run, err)
	}
	request.DenyTools, request.AllowTools = []string{"write(b)"}, []string{"write_to_file"}
	run, o, _ := b.run(request)
	wantOutcome(t, o, "completed", "")
	s := b.state(run.TaskID).Settings
	if len(s.Tools) != 1 || len(s.DenyTools) != 1 || s.DenyTools[0] != "write(b)" {
		t.Errorf("the task keeps %+v", s)
	}
}

func withWorkspace(b *bench, r engine.Request) engine.Request {
	r.Workspace = b.workspace
	return r
}

// Roost's own data is protected for a task that has it in its workspace.
func TestOnesOwnDataIsProtected(t *testing.T) {
	b := newBench(t)
	inside := b.root + "/tasks/x"
	script := b.script("- tools: [{name: write_to_file, input: {path: \"" + inside + "\", content: x}}]\n- tools: [{name: attempt_completion, input: {result: done}}]\n")
	_, o, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: script, Approve: "all", AllowTools: []string{"write(/**)"}}})
	wantOutcome(t, o, "waiting", "")
}
