package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// looks is a bench whose model looks n times, each for 3,000 micro-dollars.
func looks(t *testing.T, n int, l api.RunLimits) *bench {
	var turns []turn
	for i := range n {
		turns = append(turns, turn{calls: []call{use(fmt.Sprint("c", i), "look", fmt.Sprint("a", i))}, usage: llm.Usage{Input: 1000}})
	}
	b := newBench(t, turns...)
	b.agent.Model.Entry = sonnet(t)
	b.agent.Task.Settings.Limits = l
	return b
}

// again readies the next run, as a new process would.
func (b *bench) again() { b.agent.Model.Entry = sonnet(b.t) }

// A run that was killed, or waited for an answer, goes on with what it had spent: the
// limit is reached as if nothing had happened in between.
func TestARunsLimitsHoldOverAKill(t *testing.T) {
	for name, limits := range map[string]api.RunLimits{
		"cost": {MaxCostMicros: 9000}, "turns": {MaxTurns: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := looks(t, 10, limits)
			died := errors.New("killed")
			b.agent.Host.Reached = func(context.Context) (string, string, error) {
				if n := len(b.model.requests); n == 2 {
					return "", "", died // before the third request, nothing else is written
				}
				return "", "", nil
			}
			run := b.agent.Task.RunID
			b.start(agent.Input{Text: "go"})
			// What the log says of the end is what a killed process leaves: nothing.
			b.must(b.disk.Commit(t.Context(), task.RunEnded{Run: run, Outcome: "interrupted"}))
			b.again()
			want(t, b.start(agent.Input{Yes: true}), "limit", name)
			if n := len(b.model.requests); n != 3 {
				t.Errorf("%d requests, want 3 in both runs together", n)
			}
			// After the limit somebody decides to spend more: that is a new run.
			b.again()
			want(t, b.start(agent.Input{Yes: true}), "limit", name)
			if n := len(b.model.requests); n != 6 {
				t.Errorf("%d requests, want 3 more", n)
			}
		})
	}
}

// A limit in common with other tasks is asked about before each request, and never
// between a reply and the results of its calls.
func TestSharedLimits(t *testing.T) {
	b := looks(t, 4, api.RunLimits{})
	var asked []int
	b.agent.Host.Reached = func(context.Context) (string, string, error) {
		asked = append(asked, len(b.model.requests))
		if len(b.model.requests) == 2 {
			return "cost_day", "enough for today", nil
		}
		return "", "", nil
	}
	out := b.start(agent.Input{Text: "go"})
	want(t, out, "limit", "cost_day")
	if fmt.Sprint(asked) != "[0 1 2]" || out.Reason != "enough for today" {
		t.Errorf("asked after %v requests: %+v", asked, out)
	}
	if n := len(b.disk.state.OpenCalls()); n != 0 {
		t.Errorf("%d calls are left open", n)
	}
	b.agent.Host.Reached = func(context.Context) (string, string, error) { return "", "", errors.New("cannot be added up") }
	out = b.start(agent.Input{Yes: true})
	if out.State != "failed" || !strings.Contains(out.Reason, "cannot be added up") || len(b.model.requests) != 2 {
		t.Errorf("what cannot be added up may be too much: %+v after %d requests", out, len(b.model.requests))
	}
}

// After so many requests, or so much money, a person is asked; each yes begins the
// count anew, and the count is the log's.
func TestAskedToGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		limits api.RunLimits
		row    string
	}{
		"requests": {api.RunLimits{AskRequests: 2}, `{\"count\":2,\"type\":\"requests\"}`},
		"cost":     {api.RunLimits{AskCostMicros: 3500}, `{\"count\":\"0.00\",\"type\":\"cost\"}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := looks(t, 6, c.limits)
			var at []int
			b.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
				at = append(at, len(b.model.requests))
				if q.Kind != "limit" || !strings.Contains(q.Text, "2 requests") {
					t.Errorf(`got %+v, want q.Kind = "limit" and strings.Contains(q.Text, "2 requests")`, q)
				}
				answer := agent.Answer{Text: fmt.Sprintf("be quick %d", len(at)), By: "terminal"}
				if len(at) > 1 {
					answer.Approve = yes()
				}
				return answer, nil
			})
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			for i, n := range at { // the words that come with a yes are for the model
				last := b.model.requests[n].Messages
				if words := fmt.Sprintf("be quick %d", i+1); !strings.Contains(string(last[len(last)-1].Content), words) {
					t.Errorf("request %d: got %s, want %q in it", n, last[len(last)-1].Content, words)
				}
			}
			if fmt.Sprint(at) != "[2 4 6]" {
				t.Errorf("asked after %v requests", at)
			}
			if rows := uiOf(b, "ask:auto_approval_max_req_reached"); len(rows) != 3 || !strings.Contains(rows[0], c.row) {
				t.Errorf("got %q, want len(rows) = 3 and strings.Contains(rows[0], c.row)", rows)
			}
			checkHistories(t, b.disk.state)
		})
	}
}

// uiOf are the visible rows of a kind.
func uiOf(b *bench, kind string) (rows []string) {
	for _, m := range b.disk.state.UI() {
		if m.Kind() == kind {
			rows = append(rows, string(m.Raw()))
		}
	}
	return rows
}

// Nobody can be asked: the run waits, whatever is said without an answer; no ends it,
// other words are for the model and go on.
func TestAskedToGoOnWithNobodyThere(t *testing.T) {
	b := looks(t, 8, api.RunLimits{AskRequests: 2})
	step := func(in agent.Input, state, code string, requests int) {
		t.Helper()
		b.again()
		want(t, b.start(in), state, code)
		if n := len(b.model.requests); n != requests {
			t.Errorf("%d requests, want %d", n, requests)
		}
	}
	step(agent.Input{Text: "go"}, "waiting", "", 2)
	step(agent.Input{}, "waiting", "", 2)
	step(agent.Input{Text: "yes"}, "waiting", "", 4)
	step(agent.Input{Text: "no"}, "limit", "asked", 4)
	step(agent.Input{}, "waiting", "", 4) // going on without a word is no yes
	step(agent.Input{Text: "but be quick"}, "waiting", "", 6)
	if !strings.Contains(string(b.model.requests[4].Messages[len(b.model.requests[4].Messages)-1].Content), "but be quick") {
		t.Error("the words did not reach the model")
	}
	step(agent.Input{Yes: true}, "waiting", "", 8)
	if n := len(uiOf(b, "ask:auto_approval_max_req_reached")); n != 5 {
		t.Errorf("%d rows, want one a question", n)
	}
	if n := len(b.disk.state.Questions); n != 1 {
		t.Errorf("%d open questions", n)
	}
}

// The log says of each call who allowed or refused it, and by which rule; of what a
// person decided, also which rule made it ask.
func TestDecisionsAreInTheLog(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "look", "a"), use("c2", "edit", "b"), use("c3", "act", "ls -l"), use("c4", "act", "rm x"), use("c5", "edit", "c")}})
	b.agent.Task.Policy = approval.Policy{Allow: []string{"ls"}, Deny: []string{"rm"}}
	answers := []agent.Answer{{Approve: yes(), By: "terminal"}, {Approve: no(), By: "web", Text: "not that"}}
	b.agent.User.Asker = asks(func(context.Context, api.QuestionOpened) (agent.Answer, error) {
		a := answers[0]
		answers = answers[1:]
		return a, nil
	})
	b.start(agent.Input{Text: "go"})
	got := map[string]task.Approval{}
	for _, c := range b.disk.commits {
		for _, raw := range c.Events {
			e, err := task.Decode(raw)
			b.must(err)
			switch e := e.(type) {
			case task.ToolStarted:
				got["start "+e.Call] = *e.Approval
			case task.ToolFinished:
				if e.Approval != nil {
					got["end "+e.Call] = *e.Approval
				}
			}
		}
	}
	user := task.Approval{State: "allowed", By: "user", Via: "terminal", Kind: "mode", Rule: "ask"}
	for at, want := range map[string]task.Approval{
		"start c1": {State: "allowed", By: "policy", Kind: "mode", Rule: "ask"},
		"start c2": user, "end c2": user,
		"start c3": {State: "allowed", By: "policy", Kind: "allow", Rule: "ls"},
		"end c4":   {State: "denied", By: "policy", Kind: "deny", Rule: "rm"},
		"end c5":   {State: "denied", By: "user", Via: "web", Kind: "mode", Rule: "ask", Feedback: "not that"},
	} {
		if got[at] != want {
			t.Errorf("%s: %+v, want %+v", at, got[at], want)
		}
	}
	for _, call := range []string{"start c4", "start c5"} {
		if _, ran := got[call]; ran {
			t.Errorf("%s although it was refused", call)
		}
	}
}
