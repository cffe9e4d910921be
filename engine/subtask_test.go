package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/trash"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// threeDeep delegates to a child that delegates to another one.
const threeDeep = `
- text: I delegate.
  tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: "[ ] write it"}}]
  usage: {input: 100, output: 10}
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
  expect: ["Result:\nOne is done."]
- task: part ONE
- text: I write and delegate.
  tools:
    - {name: write_to_file, input: {path: one.txt, content: "one\n"}}
    - {name: new_task, input: {mode: ask, message: "look at TWO", todos: null}}
  expect: ["| 1 | write it | Pending |"]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
- task: at TWO
- tools: [{name: read_file, input: {path: one.txt}}]
- tools: [{name: attempt_completion, input: {result: "Two is done."}}]
`

// asksBelow has a child that asks a question and then for a command.
const asksBelow = `
- tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: null}}]
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
- task: part ONE
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: []}}]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`

// resultsGiven counts the results of a child in its parent's history.
func (b *bench) resultsGiven(id, child string) (n int) {
	b.t.Helper()
	for _, m := range b.state(id).API() {
		n += strings.Count(string(m.Raw()), "Subtask "+child+" completed.")
	}
	return n
}

// onlyChild is the only child of a task.
func (b *bench) onlyChild(id string) task.Child {
	b.t.Helper()
	s := b.state(id)
	if len(s.Children) != 1 {
		b.t.Fatalf("children of %s: %+v", id, s.Children)
	}
	return s.Children[0]
}

func (b *bench) status(id string) string {
	b.t.Helper()
	ref, err := b.store.Find(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := b.store.Read(context.Background(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	return v.Summary.Status
}

func (b *bench) item(id string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, "tasks", id, "history_item.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var o esjson.Object
	for key, val := range esjson.Members(data) {
		if slices.Contains([]string{"rootTaskId", "parentTaskId", "number", "status", "delegatedToId", "awaitingChildId", "childIds", "completedByChildId", "completionResultSummary"}, key) {
			o.Raw(key, val)
		}
	}
	return string(o.Bytes())
}

func TestATreeOfTasksRunsAsOne(t *testing.T) {
	b := newBench(t)
	run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(threeDeep), Approve: "all", Limits: &api.RunLimits{MaxTurns: 3}}})
	if out.State != "completed" || out.Reason != "All is done." {
		t.Fatalf(`got %+v, want out.State = "completed" and out.Reason = "All is done."`, out)
	}
	root := run.TaskID
	one := b.onlyChild(root)
	two := b.onlyChild(one.ID)
	var order, seen []string
	b.tree(t.Context(), root, run.ID, func(e events.Item) bool {
		if e.ID != "" && slices.Contains(seen, e.Task+e.ID) {
			t.Errorf("twice: %s", e.Data)
		}
		seen = append(seen, e.Task+e.ID)
		if slices.Contains([]string{"subtask.started", "subtask.ended", "run.ended"}, e.Type) {
			order = append(order, e.Type+" "+map[string]string{root: "root", one.ID: "one", two.ID: "two"}[e.Task])
		}
		return true
	})
	want := []string{"subtask.started root", "subtask.started one", "run.ended two", "subtask.ended one", "run.ended one", "subtask.ended root", "run.ended root"}
	if d := cmp.Diff(want, order); d != "" {
		t.Error(d)
	}
	for id, want := range map[string]string{
		root:   `{"number":1,"status":"active","delegatedToId":"ONE","childIds":["ONE"],"completedByChildId":"ONE","completionResultSummary":"One is done."}`,
		one.ID: `{"rootTaskId":"ROOT","parentTaskId":"ROOT","number":2,"status":"completed","delegatedToId":"TWO","childIds":["TWO"],"completedByChildId":"TWO","completionResultSummary":"Two is done."}`,
		two.ID: `{"rootTaskId":"ROOT","parentTaskId":"ONE","number":3,"status":"completed"}`,
	} {
		want = strings.NewReplacer("ROOT", root, "ONE", one.ID, "TWO", two.ID).Replace(want)
		if d := cmp.Diff(want, b.item(id)); d != "" {
			t.Error(d)
		}
	}
	s := b.state(two.ID)
	if s.Settings.Mode != "ask" || s.Settings.Approve != "all" || s.Settings.Limits.MaxTurns != 3 || s.Settings.Workspace != b.workspace {
		t.Errorf("settings %+v", s.Settings)
	}
	if b.resultsGiven(root, one.ID) != 1 || b.resultsGiven(one.ID, two.ID) != 1 {
		t.Error("a result is not told exactly once")
	}
}

// The person who follows the tree is asked, and answers, where the question is.
func TestASubtasksQuestionIsAnsweredThere(t *testing.T) {
	b := newBench(t)
	run, err := b.engine.Start(t.Context(), engine.Request{Text: "go", Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: b.script(asksBelow), Approve: "all"}, Interactive: true})
	if err != nil {
		t.Fatal(err)
	}
	b.tree(t.Context(), run.TaskID, run.ID, func(e events.Item) bool {
		var q api.QuestionOpened
		if e.Type != "question.opened" || json.Unmarshal(e.Data, &q) != nil {
			return true
		}
		if e.Task == run.TaskID || run.Of("another") != nil || run.Answer(q.Question, engine.Answer{Text: "no"}) == nil {
			t.Errorf("the parent asks: %s", e.Data)
		}
		if err := run.Of(e.Task).Answer(q.Question, engine.Answer{Text: "this one"}); err != nil {
			t.Error(err)
		}
		return true
	})
	out, err := run.Wait(t.Context())
	if err != nil || out.State != "completed" {
		t.Fatalf("got %+v, %v, want no error and out.State = \"completed\"", out, err)
	}
	if next, err := run.Next(t.Context()); next != nil || err != nil {
		t.Errorf("woken: %v, %v", next, err)
	}
}

// A subtask that nobody can answer ends the runs of all above it as waiting. Words to
// the first of them are the answer, as they would be to the one that asks.
func TestATreeThatWaitsForAnAnswer(t *testing.T) {
	for _, name := range []string{"answered at the top", "answered below"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			run, out, shown := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(asksBelow), Approve: "all"}})
			child := b.onlyChild(run.TaskID)
			if out.State != "waiting" || out.Child != child.ID || !strings.Contains(out.Reason, "Which one?") {
				t.Fatalf(`got %+v, want out.State = "waiting" and out.Child = child.ID and strings.Contains(out.Reason, "Which one?")`,
					out)
			}
			if last := shown[len(shown)-1]; last.Type != "run.waiting" || last.Task != run.TaskID || !strings.Contains(string(last.Data), `"child":"`+child.ID) {
				t.Errorf("last %s", last.Data)
			}
			if got := b.status(run.TaskID) + " " + b.status(child.ID); got != "delegated waiting" {
				t.Error(got)
			}
			if item := b.item(run.TaskID); !strings.Contains(item, `"status":"delegated","delegatedToId":"`+child.ID+`","awaitingChildId":"`+child.ID+`","childIds":["`+child.ID+`"]`) {
				t.Error(item)
			}
			_, out, _ = b.run(engine.Request{Task: run.TaskID}) // nobody answers: it waits on
			if out.State != "waiting" {
				t.Fatalf("got %+v, want out.State = \"waiting\"", out)
			}
			if name == "answered at the top" {
				_, out, _ = b.run(engine.Request{Task: run.TaskID, Text: "this one"})
			} else {
				var below *engine.Run
				below, out, _ = b.run(engine.Request{Task: child.ID, Text: "this one"})
				if out.State != "completed" || out.Reason != "One is done." {
					t.Fatalf("the child: %+v", out)
				}
				up, err := below.Next(t.Context())
				if err != nil || up == nil || up.TaskID != run.TaskID {
					t.Fatalf("woken: %v, %v", up, err)
				}
				if out, err = up.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if out.State != "completed" || out.Reason != "All is done." || b.resultsGiven(run.TaskID, child.ID) != 1 {
				t.Fatalf("%+v, told %d times", out, b.resultsGiven(run.TaskID, child.ID))
			}
			if got := b.status(run.TaskID) + " " + b.status(child.ID); got != "completed completed" || strings.Contains(b.item(run.TaskID), "awaiting") {
				t.Error(got, b.item(run.TaskID))
			}
		})
	}
}

// A subtask asks, gets its answer directly, and ends without waking its parent. Then the parent's run counts as
// interrupted: words start it, and the next process resumes it.
func TestAParentWhoseSubtaskAsksNoMore(t *testing.T) {
	on := engine.Request{Interactive: true}
	for name, c := range map[string]struct {
		run   task.RunEnded
		words bool
		want  string // what became of the subtask
	}{
		"it failed, and words come":           {run: task.RunEnded{Outcome: "failed"}, words: true, want: "abandoned"},
		"it was killed":                       {run: task.RunEnded{Outcome: "interrupted"}, want: "completed"},
		"it completed, and was killed":        {run: task.RunEnded{Outcome: "completed", Reason: "One is done."}, want: "completed"},
		"it completed, was killed, and words": {run: task.RunEnded{Outcome: "completed", Reason: "One is done."}, words: true, want: "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t, engine.Options{})
			run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(asksBelow), Approve: "all"}})
			child := b.onlyChild(run.TaskID).ID
			if out.State != "waiting" {
				t.Fatalf("got %+v, want a run that waits", out)
			}
			below, err := b.store.Find(t.Context(), child)
			if err != nil {
				t.Fatal(err)
			}
			s := b.state(child)
			c.run.Run = s.Run.ID
			ends := []task.Event{api.QuestionClosed{Question: s.Questions[0].Question, Text: "this", By: "test"}, c.run}
			b.commits(below, func(i int) task.Event { return ends[i] }, len(ends))
			if info, err := b.engine.RunByID(t.Context(), run.ID); err != nil || info.State != "interrupted" || info.Question != "" {
				t.Errorf("got %+v %v, want that the parent is interrupted, without a question", info, err)
			}
			if c.words {
				if sent := b.send(run.TaskID, engine.Message{Text: "go on", By: "test", Request: on}); sent.Delivered != "started" {
					t.Errorf("got %+v, want that the words start a run", sent)
				}
			} else {
				b.restart(engine.Options{})
				if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
					t.Fatal(err)
				}
			}
			b.waitForState(run.ID, "completed")
			if got := b.state(run.TaskID).Children[0].Outcome; got != c.want {
				t.Errorf("the subtask is %s, want %s", got, c.want)
			}
		})
	}
}

// A parent does not continue by itself a subtask that the user rewound.
func TestRecoveryLeavesRewoundSubtasks(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	run, _, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(asksBelow), Approve: "all"}})
	child := b.onlyChild(run.TaskID).ID
	_, finish, err := history.Rewind(t.Context(), b.store, b.store.OwnRef(child), history.RewindOptions{To: "#1", Keep: true})
	fixture.NoError(t, err)
	fixture.NoError(t, finish(t.Context()))
	b.restart(engine.Options{})
	fixture.NoError(t, b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}))
	for _, id := range []string{run.TaskID, child} {
		if runs, err := b.engine.RunsOf(t.Context(), id); err != nil || len(runs) != 1 {
			t.Errorf("task %s: got %+v %v, want no other run", id, runs, err)
		}
	}
	b.waitForState(b.submit(engine.Request{Task: run.TaskID, Yes: true, Interactive: true}).ID, "waiting") // the user may
}

// Words that the parent of a subtask with a question begins with are not lost where the subtask cannot be taken: those
// for the queue wait there, and others, which would be the answer, are refused.
func TestWordsForAParentWhoseSubtaskIsHeld(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	run, _, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(asksBelow), Approve: "all"}})
	if _, err := b.engine.CancelTask(t.Context(), run.TaskID, ""); err != nil {
		t.Fatal(err)
	}
	child := b.onlyChild(run.TaskID).ID
	below, err := b.store.Find(t.Context(), child)
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.store.Own(t.Context(), below)
	if err != nil {
		t.Fatal(err)
	}
	if ticket, err := b.engine.Submit(t.Context(), engine.Request{Task: run.TaskID, Text: "that one", Interactive: true}); err == nil {
		t.Errorf("an answer that the subtask cannot take: got %+v, want an error", ticket)
	}
	settledStatus(b, run.TaskID)
	sent := b.send(run.TaskID, engine.Message{Text: "mind the step", Delivery: "queue", By: "test", Request: engine.Request{Interactive: true}})
	settledStatus(b, run.TaskID)
	words, err := b.engine.Inputs(t.Context(), run.TaskID)
	if err != nil || len(words) != 1 || words[0].Text != "mind the step" {
		t.Errorf("after %+v: got %+v %v in the queue, want the words", sent, words, err)
	}
	if err := held.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ticket := b.submit(engine.Request{Task: run.TaskID, Text: "this one", Interactive: true}); ticket.Ref.ID != run.TaskID {
		t.Errorf("got %+v, want a run of the parent", ticket)
	}
	b.waitForState(b.runOf(t.Context(), run.TaskID), "completed")
	s := b.state(run.TaskID)
	if s.Children[0].Outcome != "completed" || rowsOf(b.state(child), "say:user_feedback", "this one") != 1 || rowsOf(s, "say:user_feedback", "mind the step") != 1 {
		t.Errorf("got the subtask %+v and the rows %v, want that it completed with the answer, and the words", s.Children[0], kinds(s))
	}
}

// slowBelow has a child that takes its time.
const slowBelow = `
- tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: null}}]
- tools: [{name: attempt_completion, input: {result: "All is done."}}]
- task: part ONE
- tools: [{name: execute_command, input: {command: "echo begun >> ran.txt; until [ -e go.txt ]; do sleep 0.05; done; echo ended >> ran.txt"}}]
- tools: [{name: attempt_completion, input: {result: "One is done."}}]
`

// tree gives the events of a task from its start on, and those of its subtasks in between, until a run of the task has
// ended or give returns false.
func (b *bench) tree(ctx context.Context, id, run string, give func(events.Item) bool) (more bool) {
	b.t.Helper()
	ref, err := b.store.Find(ctx, id)
	if err != nil {
		b.t.Fatal(err)
	}
	topic, release, err := b.engine.Events().Task(ref)
	if err != nil {
		b.t.Fatal(err)
	}
	defer release()
	enough := errors.New("enough")
	more = true
	for sub := topic.Subscribe(events.Cursor{}); ; {
		err := sub.Read(ctx, func(e events.Item) error {
			if more = give(e); !more || e.Type == "run.ended" && e.Run == run {
				return enough
			}
			if e.Type == "subtask.started" {
				child, _ := esjson.GetString(e.Data, "child")
				if more = b.tree(ctx, child, b.runOf(ctx, child), give); !more {
					return enough
				}
			}
			return nil
		})
		if errors.Is(err, enough) {
			return more
		}
		if err != nil {
			b.t.Fatal(err)
		}
		select {
		case <-sub.Changed():
		case <-ctx.Done():
			b.t.Fatal(ctx.Err())
		}
	}
}

// runOf waits for the run of a subtask that was just started.
func (b *bench) runOf(ctx context.Context, id string) string {
	b.t.Helper()
	for ctx.Err() == nil {
		if runs, err := b.engine.RunsOf(ctx, id); err == nil && len(runs) > 0 {
			return runs[0].ID
		}
		time.Sleep(time.Millisecond)
	}
	b.t.Fatal(ctx.Err())
	return ""
}

// started runs a tree until the command of its child has begun.
func (b *bench) started() (run *engine.Run, child string) {
	b.t.Helper()
	run, err := b.engine.Start(context.Background(), engine.Request{Text: "go", Choice: setup.Choice{Workspace: b.workspace, Provider: "script", Model: b.script(slowBelow), Approve: "all"}})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.tree(ctx, run.TaskID, run.ID, func(e events.Item) bool {
		if e.Type == "tool.process" && strings.Contains(string(e.Data), "pgid") {
			child = e.Task
		}
		return child == ""
	})
	for ctx.Err() == nil {
		if data, _ := os.ReadFile(filepath.Join(b.workspace, "ran.txt")); len(data) > 0 {
			return run, child
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatal("the command did not begin")
	return nil, ""
}

func (b *bench) release() {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.workspace, "go.txt"), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Who stops a parent stops what it waits for; both go on later.
func TestCancelStopsTheWholeTree(t *testing.T) {
	b := newBench(t)
	run, child := b.started()
	run.Cancel()
	out, err := run.Wait(t.Context())
	if err != nil || out.State != "cancelled" {
		t.Fatalf("got %+v, %v, want no error and out.State = \"cancelled\"", out, err)
	}
	s := b.state(child)
	if s.Run.Outcome != "interrupted" || s.Run.Reason != "its parent was stopped" || b.status(run.TaskID) != "delegated" {
		t.Errorf(`got %+v, %s, want s.Run.Outcome = "interrupted" and s.Run.Reason = "its parent was stopped" and b.status(run.TaskID) = "delegated"`,
			s.Run, b.status(run.TaskID))
	}
	b.release()
	_, out, _ = b.run(engine.Request{Task: run.TaskID})
	if out.State != "completed" || b.resultsGiven(run.TaskID, child) != 1 {
		t.Fatalf("got %+v, want out.State = \"completed\" and b.resultsGiven(run.TaskID, child) = 1", out)
	}
}

// A subtask that is stopped by itself wakes nobody: the task above would start it again.
func TestAStoppedSubtaskWakesNobody(t *testing.T) {
	b := newBench(t)
	run, child := b.started()
	below := run.Of(child)
	run.CancelAlone()
	if out, err := run.Wait(t.Context()); err != nil || out.State != "cancelled" {
		t.Fatalf("got %+v, %v, want no error and out.State = \"cancelled\"", out, err)
	}
	// Resumed by itself it would wake the one above with its end.
	below.Cancel()
	if out, err := below.Wait(t.Context()); err != nil || out.State != "cancelled" {
		t.Fatalf("the child: %+v, %v", out, err)
	}
	// Its model does not come to an end before it is stopped.
	below, err := b.engine.Start(context.Background(), engine.Request{Task: child, Yes: true, Choice: setup.Choice{Provider: "script", Model: b.script("- text: first\n- text: one two\n  delay: 1h\n")}})
	if err != nil {
		t.Fatal(err)
	}
	below.Cancel()
	if out, err := below.Wait(t.Context()); err != nil || out.State != "cancelled" {
		t.Fatalf("the child again: %+v, %v", out, err)
	}
	if next, err := below.Next(t.Context()); next != nil || err != nil {
		t.Errorf("woken: %v, %v", next, err)
	}
	if got := b.status(run.TaskID); got != "delegated" || len(b.engine.Runs()) != 0 {
		t.Errorf("the task above is %s, %d runs", got, len(b.engine.Runs()))
	}
}

// What a process left of a tree the next one goes on with at the top: the subtask is gone on
// with by the task that waits for it, and by nobody else.
func TestATreeIsTakenUpAtItsTop(t *testing.T) {
	b := newBench(t)
	run, child := b.started()
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := b.engine.Drain(over); err != nil {
		t.Fatal(err)
	}
	b.restart(engine.Options{})
	b.release()
	if err := b.engine.Recover(t.Context(), engine.RecoverOptions{Resume: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{run.TaskID, child} {
		runs, err := b.engine.RunsOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		b.waitForState(runs[0].ID, "completed")
	}
	if settledStatus(b, run.TaskID) != "completed" || b.resultsGiven(run.TaskID, child) != 1 {
		t.Errorf("%s, told %d times", b.status(run.TaskID), b.resultsGiven(run.TaskID, child))
	}
	for _, id := range []string{run.TaskID, child} {
		if runs, err := b.engine.RunsOf(t.Context(), id); err != nil || len(runs) != 2 {
			t.Errorf("task %s has %d runs: %v", id, len(runs), err)
		}
	}
}

// A parent that is stopped alone leaves its child running, and hears of its end when
// somebody resumes either of them.
func TestCancelOfTheParentAlone(t *testing.T) {
	for _, resumed := range []string{"parent", "child"} {
		t.Run(resumed, func(t *testing.T) {
			b := newBench(t)
			run, child := b.started()
			below := run.Of(child)
			run.CancelAlone()
			if out, err := run.Wait(t.Context()); err != nil || out.State != "cancelled" {
				t.Fatalf("got %+v, %v, want no error and out.State = \"cancelled\"", out, err)
			}
			b.release()
			if out, err := below.Wait(t.Context()); err != nil || out.State != "completed" {
				t.Fatalf("the child: %+v, %v", out, err)
			}
			if next, err := below.Next(t.Context()); next != nil || err != nil {
				t.Fatalf("woken: %v, %v", next, err)
			}
			if got := b.status(run.TaskID) + " " + b.status(child); got != "delegated completed" {
				t.Fatal(got)
			}
			id := run.TaskID
			if resumed == "child" {
				id = child
			}
			again, out, _ := b.run(engine.Request{Task: id, Yes: true})
			if next, err := again.Next(t.Context()); err != nil {
				t.Fatal(err)
			} else if next != nil {
				if out, err = next.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if out.State != "completed" || out.Reason != "All is done." || b.resultsGiven(run.TaskID, child) != 1 {
				t.Fatalf("%+v, told %d times", out, b.resultsGiven(run.TaskID, child))
			}
			if data, _ := os.ReadFile(filepath.Join(b.workspace, "ran.txt")); string(data) != "begun\nended\n" {
				t.Errorf("it ran %q", data)
			}
			for range 2 { // neither is told a second time
				b.run(engine.Request{Task: child})
				if b.resultsGiven(run.TaskID, child) != 1 {
					t.Error("told again")
				}
			}
		})
	}
}

// A person gives up on a subtask by saying something else to its parent.
func TestAParentGoesOnWithoutItsChild(t *testing.T) {
	b := newBench(t)
	run, child := b.started()
	run.Cancel()
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, out, _ := b.run(engine.Request{Task: run.TaskID, Text: "leave it"})
	s := b.state(run.TaskID)
	if out.State != "completed" || s.Children[0].Outcome != "abandoned" || b.status(run.TaskID) != "completed" {
		t.Fatalf(`got %+v, %+v, want out.State = "completed" and s.Children[0].Outcome = "abandoned" and b.status(run.TaskID) = "completed"`,
			out, s.Children)
	}
	b.release()
	below, out, _ := b.run(engine.Request{Task: child}) // it can still be finished, for itself
	if next, err := below.Next(t.Context()); out.State != "completed" || next != nil || err != nil || b.resultsGiven(run.TaskID, child) != 0 {
		t.Fatalf("%+v, woken %v, %v", out, next, err)
	}
}

// However words reach a parent that does not run, they give its subtask up; words that a run of the parent got while the
// subtask worked do not, once that run has ended.
func TestWordsForAParentThatContinues(t *testing.T) {
	on := engine.Request{Interactive: true}
	for name, c := range map[string]struct {
		before bool // the words come before the parent is stopped
		how    string
		busy   bool // another run has the only slot
		want   string
	}{
		"words for the run":        {before: true, want: "completed"},
		"words instead of the run": {before: true, how: "interrupt", want: "abandoned"},
		"words afterwards":         {want: "abandoned"},
		"words in the queue":       {busy: true, want: "abandoned"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t, engine.Options{MaxRuns: 1})
			run, _ := b.started()
			words := func() {
				b.send(run.TaskID, engine.Message{Text: "mind the step", Delivery: c.how, By: "api", Request: on})
			}
			if c.before {
				words()
			}
			run.Cancel()
			if _, err := run.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			other := b.ask(waitsForGo)
			if c.busy {
				b.submit(other)
				waitForFile(t, filepath.Join(other.Workspace, "here"))
			}
			if !c.before {
				words()
			}
			touch(t, other.Workspace, "go")
			b.release()
			if c.before && c.how == "" {
				b.submit(engine.Request{Task: run.TaskID, Interactive: true})
			}
			b.waitForState(b.runOf(t.Context(), run.TaskID), "completed")
			s := b.state(run.TaskID)
			if got := s.Children[0].Outcome; got != c.want || len(s.Queue) != 0 {
				t.Errorf("the subtask is %s and %d inputs wait, want %s and none", got, len(s.Queue), c.want)
			}
		})
	}
}

// A deleted subtask is not waited for.
func TestADeletedSubtask(t *testing.T) {
	b := newBench(t)
	run, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(asksBelow), Approve: "all"}})
	child := b.onlyChild(run.TaskID)
	ref, err := b.store.Find(t.Context(), child.ID)
	if err == nil {
		_, err = trash.Delete(t.Context(), b.store, ref)
	}
	if err != nil || out.State != "waiting" {
		t.Fatal(err, out)
	}
	_, out, _ = b.run(engine.Request{Task: run.TaskID})
	if got := b.state(run.TaskID).Call("call_1_1"); out.State != "completed" || got.Finished.Outcome != "error" {
		t.Fatalf(`got %+v, %+v, want out.State = "completed" and got.Finished.Outcome = "error"`, out, got.Finished)
	}
}

// A model that only delegates comes to an end.
func TestSubtasksAreNotNestedForEver(t *testing.T) {
	b := newBench(t)
	_, out, _ := b.run(engine.Request{
		Text: "go",
		Choice: setup.Choice{Provider: "script", Approve: "all", Model: b.script(`
- tools: [{name: new_task, input: {mode: code, message: "do it", todos: null}}]
- tools: [{name: attempt_completion, input: {result: "Done."}}]
`)},
	})
	dirs, err := os.ReadDir(filepath.Join(b.root, "tasks"))
	if err != nil || out.State != "completed" {
		t.Fatalf("got %+v, %v, want no error and out.State = \"completed\"", out, err)
	}
	n := 0
	for _, d := range dirs {
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			n++
		}
	}
	if n != 8 {
		t.Errorf("%d tasks", n)
	}
}
