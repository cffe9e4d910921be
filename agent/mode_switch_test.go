package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// question is a turn that asks with two choices, of which the second leads to a mode.
func question(slug string) turn {
	return turn{calls: []call{{"q1", "ask_followup_question",
		`{"question":"and now?","follow_up":[{"text":"stay","mode":null},{"text":"build it","mode":` + string(mustJSON(slug)) + `}]}`}}}
}

// The mode that stands beside an answer is gone to when the answer is given, by a number
// on a terminal as by its words later, and nobody is asked again. It is in the commit of
// the outcome: there is no moment between them.
func TestAnAnswerMayLeadToAnotherMode(t *testing.T) {
	for name, c := range map[string]struct{ slug, answer, mode, note string }{
		"chosen":       {"code", "build it", "code", "the answer switches to 💻 Code mode"},
		"with blanks":  {"code", "  build it\n", "code", "switches to"},
		"the other":    {"code", "stay", "ask", ""},
		"own words":    {"code", "build it now", "ask", ""},
		"the same":     {"ask", "build it", "ask", ""},
		"no such mode": {"cod", "build it", "ask", `the answer asks for a mode that does not exist: there is no mode "cod"`},
		"one of ours":  {"docs", "build it", "docs", "switches to Docs mode"},
	} {
		for _, attended := range []bool{true, false} {
			t.Run(fmt.Sprint(name, attended), func(t *testing.T) {
				b := moded(t, "ask", question(c.slug), finish("done"))
				b.agent.Task.Policy = approval.Policy{DenyTools: []string{"switch_mode"}} // that is about what the model asks for
				if attended {
					b.agent.User.Asker = b.person(agent.Answer{Text: c.answer, By: "terminal"}, nil)
					want(t, b.start(agent.Input{Text: "go"}), "completed", "")
				} else {
					want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
					b.inMode("")
					want(t, b.start(agent.Input{Text: c.answer}), "completed", "")
				}
				s := b.disk.state
				if s.Settings.Mode != c.mode && (s.Settings.Mode != "" || c.mode != "ask") || !strings.Contains(b.model.last(), "<slug>"+c.mode+"</slug>") {
					t.Errorf("mode %q: %s", s.Settings.Mode, b.model.last())
				}
				if got := strings.Join(b.notices, "\n"); !strings.Contains(got, c.note) || c.note == "" && strings.Contains(got, "switches to") {
					t.Errorf("told %q", got)
				}
				if i := slices.IndexFunc(b.trace, func(e string) bool { return strings.Contains(e, "ok:q1") }); strings.Contains(b.trace[i], "task.changed") != (c.note != "" && c.slug != "cod") {
					t.Errorf("the outcome's commit is %s", b.trace[i])
				}
				if attended && !cmp.Equal(b.asked[0].Modes, map[string][]string{"code": {"", "code"}, "docs": {"", "docs"}}[c.slug]) {
					t.Errorf("beside the choices stands %q", b.asked[0].Modes)
				}
				checkHistories(t, s)
			})
		}
	}
}

// Whenever the program is killed, the answer and the mode that it led to are one.
func TestAnAnswersModeOutlivesAKill(t *testing.T) {
	b := moded(t, "ask", question("code"), turn{calls: []call{use("w1", "edit", "a")}}, finish("done"))
	b.agent.Task.Policy, b.agent.User.Asker = approval.Policy{Mode: approval.ModeEdits}, b.person(agent.Answer{Text: "build it"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for n := 2; n < len(b.disk.commits); n++ {
		left := b.after(n, b.disk.ranAt[n-1])
		c := left.disk.state.Call("q1")
		if in := left.disk.state.Settings.Mode == "code"; in != (c != nil && c.Finished != nil) {
			t.Fatalf("after commit %d the mode is %q", n, left.disk.state.Settings.Mode)
		}
		left.inMode(left.disk.state.Settings.Mode)
		if left.agent.Task.Settings.Mode == "" {
			left.agent.Task.Settings.Mode = "ask"
		}
		left.agent.User.Asker = left.person(agent.Answer{Text: "build it"}, nil)
		want(t, left.start(agent.Input{Yes: true}), "completed", "")
		if s := left.disk.state; s.Settings.Mode != "code" || len(left.asked) > 1 || len(left.ran) != 1 {
			t.Fatalf("after commit %d: mode %q, asked %d times, ran %q", n, s.Settings.Mode, len(left.asked), left.ran)
		}
	}
}

// A tool that leads to a mode, as a slash command's does, asks for what switch_mode asks
// for, and with one question.
func TestACallMayLeadToAnotherMode(t *testing.T) {
	for name, c := range map[string]struct {
		policy approval.Policy
		slug   string
		answer *bool
		asked  string
		mode   string
		want   string
	}{
		"asked":           {approval.Policy{Mode: approval.ModeRead}, "code", yes(), "look x (and go on in 💻 Code mode)", "code", "g ok"},
		"refused":         {approval.Policy{Mode: approval.ModeRead}, "code", no(), "look x (and go on in 💻 Code mode)", "ask", "g denied"},
		"all":             {approval.Policy{Mode: approval.ModeAll}, "code", nil, "", "code", "g ok"},
		"allowed":         {approval.Policy{AllowTools: []string{"switch_mode"}}, "code", nil, "", "code", "g ok"},
		"only the call":   {approval.Policy{AllowTools: []string{"look"}}, "code", yes(), "look x (and go on in 💻 Code mode)", "code", "g ok"},
		"a rule denies":   {approval.Policy{Mode: approval.ModeAll, DenyTools: []string{"switch_mode"}}, "code", nil, "", "ask", "g denied"},
		"the call denied": {approval.Policy{Mode: approval.ModeAll, DenyTools: []string{"look"}}, "code", nil, "", "ask", "g denied"},
		"both ask":        {approval.Policy{Mode: approval.ModeAll, AskTools: []string{"look", "switch_mode"}}, "code", yes(), "look x (and go on in 💻 Code mode)", "code", "g ok"},
		"the same mode":   {approval.Policy{Mode: approval.ModeRead}, "ask", nil, "", "ask", "g ok"},
		"no such mode":    {approval.Policy{Mode: approval.ModeRead}, "cod", nil, "", "ask", "g ok"},
	} {
		t.Run(name, func(t *testing.T) {
			b := moded(t, "ask", turn{calls: []call{use("g", "look", "x")}}, finish("done"))
			b.agent.Task.Policy, b.agent.User.Asker = c.policy, b.person(agent.Answer{Approve: c.answer}, nil)
			b.tool("look").ask = func(a *tool.Ask) { a.Mode = c.slug }
			b.tool("look").run = func(context.Context, tool.Output, string) (tool.Result, error) {
				return tool.Result{Text: "DO IT", Mode: c.slug}, nil
			}
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			asked := ""
			for _, q := range b.asked {
				asked += q.Text
			}
			if got := outcomes(b.disk.state)[0]; got != c.want || asked != c.asked || !strings.Contains(b.model.last(), "<slug>"+c.mode+"</slug>") {
				t.Errorf("%s, asked %q: %s", got, asked, b.model.last())
			}
			if said := strings.Contains(result(t, b.disk.state, "g"), "[The mode stays as it is: there is no mode"); said != (c.slug == "cod") {
				t.Error(result(t, b.disk.state, "g"))
			}
			if moved := b.disk.state.Settings.Mode == "code"; moved != (c.mode == "code") {
				t.Errorf("the task keeps %q", b.disk.state.Settings.Mode)
			}
		})
	}
}

// A mode's own model answers from the switch on, and the person is told before. When it
// cannot be had, the task keeps the one it has.
func TestAModesOwnModel(t *testing.T) {
	for _, broken := range []bool{false, true} {
		b := moded(t, "ask", turn{calls: []call{to("code")}}, finish("done"))
		other := &model{b: b, turns: b.model.turns}
		price := sonnet(t)
		b.agent.User.Setup = setup{serve: func(s task.Settings) (agent.ModeModel, bool, error) {
			if s.Mode != "code" {
				return agent.ModeModel{}, false, nil
			}
			if broken {
				return agent.ModeModel{}, true, fmt.Errorf("there is no key")
			}
			s.Provider, s.Model = "other", "its-model"
			return agent.ModeModel{Settings: s, Model: agent.Model{Provider: other, Entry: price}, Note: "in code mode its-model answers"}, true, nil
		}}
		b.hook = func(entry string) {
			if entry == "request 2" && !slices.Contains(b.notices, "in code mode its-model answers") && !broken {
				t.Error("the request goes out before the person is told")
			}
		}
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		s := b.disk.state
		if broken {
			if len(other.requests) != 0 || len(b.model.requests) != 2 || !strings.Contains(strings.Join(b.notices, "\n"), "the mode's own profile is not used: there is no key") {
				t.Errorf("%d and %d requests, told %q", len(b.model.requests), len(other.requests), b.notices)
			}
			continue
		}
		if len(b.model.requests) != 1 || len(other.requests) != 1 || other.requests[0].Model != "its-model" {
			t.Fatalf("%d requests here, %+v there", len(b.model.requests), other.requests)
		}
		if s.Settings.Model != "its-model" || s.Settings.Provider != "other" || s.Settings.Mode != "code" {
			t.Errorf("the task keeps %+v", s.Settings)
		}
		if !strings.HasPrefix(sent(other.requests[0]), strings.TrimSuffix(sent(b.model.requests[0]), "\n")) {
			t.Error("the new model is not sent the history of the old one")
		}
		checkHistories(t, s)
	}
}
