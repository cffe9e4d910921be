package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/controltool"
)

// nursery runs subtasks that a test thinks up. What it holds survives kills, as other
// tasks on the disk do.
type nursery struct {
	b     *bench
	made  map[string]agent.Subtask
	ran   []string                 // the ids of all that were run, in order
	state map[string]agent.Outcome // how each run ended last
	ends  func(agent.Subtask) (agent.Outcome, error)
	gone  bool
}

func (n *nursery) State(_ context.Context, id string) (agent.SubtaskState, error) {
	out, ran := n.state[id]
	s := agent.SubtaskState{Gone: n.gone}
	if ran {
		s.Status = out.State
	}
	if out.State == "completed" {
		s.Result = out.Reason
	}
	return s, nil
}

func (n *nursery) Run(_ context.Context, s agent.Subtask) (agent.Outcome, error) {
	n.made[s.ID] = s
	n.ran = append(n.ran, s.ID)
	n.b.note("child runs")
	out, err := agent.Outcome{State: "completed", Reason: "done: " + s.Message}, error(nil)
	if n.ends != nil {
		out, err = n.ends(s)
	}
	if err == nil {
		n.state[s.ID] = out
	}
	return out, err
}

// withSubtasks makes a bench whose tasks may have children.
func withSubtasks(t *testing.T, turns ...turn) (*bench, *nursery) {
	t.Helper()
	b := newBench(t, turns...)
	n := &nursery{b: b, made: map[string]agent.Subtask{}, state: map[string]agent.Outcome{}}
	b.tools = append(b.tools, controltool.NewNewTask())
	b.prepare()
	b.agent.Tools.Subtasks = n
	return b, n
}

func (b *bench) goOn(n *nursery, in agent.Input) agent.Outcome {
	b.t.Helper()
	b.agent.Tools.Subtasks = n
	return b.start(in)
}

func child(id, message string) call {
	return call{id, "new_task", fmt.Sprintf(`{"mode":"code","message":%q,"todos":null}`, message)}
}

// The intent is saved before the child is made; its end, the row that shows it and the
// call's outcome are one commit. Calls before it have run, calls behind it do not.
func TestASubtaskIsOneCallOfItsParent(t *testing.T) {
	b, n := withSubtasks(t, turn{calls: []call{use("c1", "look", "a"), child("c2", "part one"), use("c3", "act", "later")}}, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	trace := strings.Join(b.trace, "\n")
	for _, part := range []string{
		"ok:c1\ncommit +ui started:c2 subtask.started\nsaved\nchild runs\ncommit +ui ok:c2 subtask.ended\ncommit error:c3 +api",
	} {
		if !strings.Contains(trace, part) {
			t.Errorf("%q is not in\n%s", part, trace)
		}
	}
	s := b.disk.state
	checkHistories(t, s)
	id := n.ran[0]
	if got := result(t, s, "c2"); got != `{"type":"tool_result","tool_use_id":"c2","content":"Subtask `+id+` completed.\n\nResult:\ndone: part one"}` {
		t.Error(got)
	}
	if !strings.Contains(result(t, s, "c3"), "new_task") || strings.Contains(strings.Join(b.ran, " "), "later") {
		t.Errorf("the call behind it: %s, ran %q", result(t, s, "c3"), b.ran)
	}
	rows := map[string]string{}
	for _, m := range s.UI() {
		rows[m.Kind()] = string(m.Raw())
	}
	ts, _ := esjson.GetInt([]byte(rows["say:subtask_result"]), "ts")
	if wanted := fmt.Sprintf(`{"type":"say","say":"subtask_result","text":"done: part one","ts":%d}`, ts); rows["say:subtask_result"] != wanted {
		t.Errorf("row %s, want %s", rows["say:subtask_result"], wanted)
	}
	asked, _ := esjson.GetString([]byte(rows["ask:tool"]), "text")
	if asked != `{"tool":"newTask","mode":"code","content":"part one","todos":[]}` {
		t.Errorf("row %s", asked)
	}
	if d := cmp.Diff([]task.Child{{ID: id, Call: "c2", Message: s.Call("c2").Message, Mode: "code", Ended: true, Outcome: "completed", Result: "done: part one"}}, s.Children); d != "" {
		t.Error(d)
	}
}

// After a kill at any commit the child is found under the same id, runs to its end once
// and is told of once.
func TestASubtaskAfterAKillAtAnyCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n := withSubtasks(t, turn{calls: []call{child("c1", "one")}}, turn{calls: []call{child("c1", "two")}}, finish("done"))
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		ids := n.ran
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Fatalf("children %v", ids)
		}
		for cut := 2; cut < len(b.disk.commits); cut++ {
			left := b.after(cut, 0)
			left.agent.Task.Policy = approval.Policy{Mode: approval.ModeAll}
			again := &nursery{b: left, made: map[string]agent.Subtask{}, state: map[string]agent.Outcome{}}
			for i, id := range ids { // what had begun by then had also ended, or not: both may be
				if cut%2 == i%2 && left.started(id) {
					again.state[id] = n.state[id]
				}
			}
			known := len(again.state)
			want(t, left.goOn(again, agent.Input{Yes: true}), "completed", "")
			checkHistories(t, left.disk.state)
			if len(again.ran)+known > 2 || len(left.disk.state.Children) != 2 {
				t.Errorf("after commit %d: %v ran, %d had ended: %+v", cut, again.ran, known, left.disk.state.Children)
			}
			for _, c := range left.disk.state.Children {
				told := 0
				for _, m := range left.disk.state.API() {
					told += strings.Count(string(m.Raw()), "Subtask "+c.ID+" completed.")
				}
				if told != 1 || !c.Ended {
					t.Errorf("after commit %d: %s is told %d times: %+v", cut, c.ID, told, c)
				}
			}
			if left.disk.state.Awaited() != nil {
				t.Errorf("after commit %d: it still waits", cut)
			}
		}
	})
}

func (b *bench) started(child string) bool {
	for _, c := range b.disk.state.Children {
		if c.ID == child {
			return true
		}
	}
	return false
}

// A child that does not complete ends its parent's run in the same way; the parent says
// which one and why, stays delegated, and goes on when it is resumed.
func TestAParentEndsAsItsChild(t *testing.T) {
	for _, c := range []struct {
		out  agent.Outcome
		code string
	}{
		{agent.Outcome{State: "waiting", Question: "q3", Reason: "which one?"}, ""},
		{agent.Outcome{State: "limit", Code: "turns", Reason: "the limit of 3 turns is reached"}, "turns"},
		{agent.Outcome{State: "failed", Code: "provider", Err: errors.New("it is down")}, "provider"},
		{agent.Outcome{State: "denied", Code: "policy", Reason: "refused"}, "policy"},
		{agent.Outcome{State: "completed", Code: "save", Reason: "x", Err: errors.New("the disk is full")}, "save"},
	} {
		t.Run(c.out.State, func(t *testing.T) {
			b, n := withSubtasks(t, turn{calls: []call{child("c1", "one")}}, finish("done"))
			n.ends = func(agent.Subtask) (agent.Outcome, error) { return c.out, nil }
			out := b.start(agent.Input{Text: "go"})
			want(t, out, c.out.State, c.code)
			id := n.ran[0]
			if out.Child != id || !strings.Contains(out.Reason, "subtask "+id) || c.out.Err != nil && !strings.Contains(out.Reason, c.out.Err.Error()) && c.out.Reason == "" {
				t.Errorf(`got %+v, want out.Child = id and strings.Contains(out.Reason, "subtask "+id) and (c.out.Err = nil or strings.Contains(out.Reason, c.out.Err.Error()) or c.out.Reason != "")`,
					out)
			}
			if awaited := b.disk.state.Awaited(); awaited == nil || awaited.ID != id {
				t.Fatalf("it waits for %+v", awaited)
			}
			n.ends = nil
			n.state[id] = agent.Outcome{State: "interrupted"}
			want(t, b.goOn(n, agent.Input{}), "completed", "")
			checkHistories(t, b.disk.state)
			if len(n.ran) != 2 || n.ran[1] != id {
				t.Errorf("ran %v", n.ran)
			}
		})
	}
}

// Words to a task that waits for a subtask give it up, unless it has completed by then.
func TestWordsGiveUpOnASubtask(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		says  string
		ended string
	}{
		"interrupted": {"interrupted", "is not finished (interrupted); the user continues without it:", "abandoned"},
		"completed":   {"completed", "completed.\\n\\nResult:\\nlate", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := withSubtasks(t, turn{calls: []call{child("c1", "one")}}, finish("done"))
			n.ends = func(agent.Subtask) (agent.Outcome, error) {
				return agent.Outcome{State: "failed", Code: "provider"}, nil
			}
			want(t, b.start(agent.Input{Text: "go"}), "failed", "provider")
			n.state[n.ran[0]] = agent.Outcome{State: c.state, Reason: "late"}
			want(t, b.goOn(n, agent.Input{Text: "do it yourself"}), "completed", "")
			s := b.disk.state
			checkHistories(t, s)
			if got := result(t, s, "c1"); !strings.Contains(got, c.says) {
				t.Error(got)
			}
			if len(n.ran) != 1 || s.Children[0].Outcome != c.ended || !strings.Contains(b.model.last(), "do it yourself") {
				t.Errorf("ran %v, %+v", n.ran, s.Children)
			}
		})
	}
}

// Words that waited already when the child was started do not give it up.
func TestOlderWordsDoNotGiveUpOnASubtask(t *testing.T) {
	b, n := withSubtasks(t, turn{calls: []call{use("c1", "act", "x"), child("c2", "one")}}, finish("done"))
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeRead, AllowTools: []string{"new_task"}}
	want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
	n.ends = func(agent.Subtask) (agent.Outcome, error) {
		return agent.Outcome{State: "failed", Code: "provider"}, nil
	}
	b.must(b.disk.Commit(context.Background(), task.InputQueued{Input: "x", Text: "mind the step"}))
	want(t, b.goOn(n, agent.Input{Text: "yes"}), "failed", "provider")
	n.ends = nil
	want(t, b.goOn(n, agent.Input{}), "completed", "")
	if len(n.ran) != 2 || !strings.Contains(b.model.last(), "mind the step") {
		t.Errorf("ran %v; %s", n.ran, b.model.last())
	}
}

// Words that came to a run while its child worked are for the time after the child: a run that continues after that one
// was killed or ended does not give the child up. Words that a resume brings under a name of their own do.
func TestWordsOfARunBeforeDoNotGiveUpOnASubtask(t *testing.T) {
	for name, c := range map[string]struct {
		in  agent.Input
		ran int
	}{
		"resumed without words": {agent.Input{}, 2},
		"resumed with words":    {agent.Input{Queued: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := withSubtasks(t, turn{calls: []call{child("c1", "one")}}, finish("done"))
			n.ends = func(agent.Subtask) (agent.Outcome, error) {
				b.must(b.disk.Commit(context.Background(), task.InputQueued{Input: "x", Text: "mind the step", By: "api"}))
				return agent.Outcome{State: "failed", Code: "provider"}, nil
			}
			want(t, b.start(agent.Input{Text: "go"}), "failed", "provider")
			n.ends = nil
			want(t, b.goOn(n, c.in), "completed", "")
			if len(n.ran) != c.ran || !strings.Contains(b.model.last(), "mind the step") {
				t.Errorf("the child ran %d times, want %d; the model reads %s", len(n.ran), c.ran, b.model.last())
			}
		})
	}
}

// What is wrong with the call is told to the model, and nothing is started.
func TestSubtasksThatAreNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		set   func(*bench)
		says  string
	}{
		"no such mode":   {`{"mode":"cod","message":"x","todos":null}`, nil, "Invalid mode: cod"},
		"no mode":        {`{"message":"x"}`, nil, "is missing: give the slug"},
		"no message":     {`{"mode":"code","message":" ","todos":null}`, nil, "is missing: say what"},
		"todos are none": {`{"mode":"code","message":"x","todos":"do it"}`, nil, "is a step"},
		"todos are five": {`{"mode":"code","message":"x","todos":5}`, nil, "must be text with one step a line"},
		"too deep":       {`{"mode":"code","message":"x","todos":null}`, func(b *bench) { b.disk.state.Number = 8 }, "levels down"},
		"none here":      {`{"mode":"code","message":"x","todos":null}`, func(b *bench) { b.agent.Tools.Subtasks = nil }, "no subtasks here"},
		"denied": {`{"mode":"code","message":"x","todos":null}`, func(b *bench) {
			b.agent.Task.Policy.DenyTools = []string{"new_task"}
		}, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := withSubtasks(t, turn{calls: []call{{"c1", "new_task", c.input}}}, finish("done"))
			modes := mode.Merge(nil, nil)
			b.agent.User.Modes = &modes
			if c.set != nil {
				c.set(b)
			}
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			if len(n.ran) > 0 || len(b.disk.state.Children) > 0 || !strings.Contains(result(t, b.disk.state, "c1"), c.says) {
				t.Errorf("ran %v, %s", n.ran, result(t, b.disk.state, "c1"))
			}
			checkHistories(t, b.disk.state)
		})
	}
}

// Who may start a subtask unasked, and where the remark of a person who agrees goes.
func TestConsentToASubtask(t *testing.T) {
	for name, c := range map[string]struct {
		policy approval.Policy
		asked  bool
	}{
		"all":                {approval.Policy{Mode: approval.ModeAll}, false},
		"edits":              {approval.Policy{Mode: approval.ModeEdits}, true},
		"the tool's rule":    {approval.Policy{Mode: approval.ModeAsk, AllowTools: []string{"new_task"}}, false},
		"asked all the same": {approval.Policy{Mode: approval.ModeAll, AskTools: []string{"new_task"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := withSubtasks(t, turn{calls: []call{child("c1", "one")}}, finish("done"))
			modes := mode.Merge(nil, nil)
			b.agent.Task.Policy, b.agent.User.Modes = c.policy, &modes
			b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), Text: "but be quick"}, nil)
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			message := "one"
			if c.asked {
				message += "\n\nThe user's remark on it: but be quick"
			}
			if got := n.made[n.ran[0]]; len(b.asked) > 0 != c.asked || got.Message != message {
				t.Errorf("asked %v, made %+v", b.asked, got)
			}
		})
	}
}

// A child's first words and its checklist come with its making; the list is the task's
// from its first request on.
func TestAChildBeginsWithItsWordsAndItsList(t *testing.T) {
	b := newBench(t, finish("done"))
	b.tools = append(b.tools, controltool.NewTodoList())
	b.prepare()
	b.must(b.disk.Commit(context.Background(), task.InputQueued{Input: "new_task", Text: "do part one", Todos: "[ ] first\n[x] second"}))
	want(t, b.start(agent.Input{}), "completed", "")
	if got := kinds(b.disk.state)[:2]; got[0] != "say:text" || got[1] != "say:user_edit_todos" {
		t.Error(got)
	}
	for _, part := range []string{"do part one", "| 1 | first | Pending |", "| 2 | second | Completed |"} {
		if !strings.Contains(sent(b.model.requests[0]), part) {
			t.Errorf("%q is not in the first request", part)
		}
	}
	if len(b.disk.state.Queue) > 0 {
		t.Error("the words still wait")
	}
}

// A stopped parent's child is interrupted and says why.
func TestAChildOfAStoppedParent(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "act", "x")}})
	ctx, cancel := context.WithCancelCause(context.Background())
	b.tool("act").run = nil
	b.model.during = nil
	cancel(agent.ErrParentStopped)
	out := b.startWith(ctx, agent.Input{Text: "go"})
	want(t, out, "interrupted", "parent")
	if out.Reason != "its parent was stopped" {
		t.Errorf("got %+v, want out.Reason = \"its parent was stopped\"", out)
	}
}
