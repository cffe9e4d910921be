package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// calls is a reply a call.
func calls(list ...call) (turns []turn) {
	for _, c := range list {
		turns = append(turns, turn{calls: []call{c}})
	}
	return turns
}

// same is n calls that are the same but for their ids.
func same(n int, name, input string) (list []call) {
	for i := range n {
		list = append(list, call{fmt.Sprintf("%s%d", name, i+1), name, input})
	}
	return list
}

// With nobody there the fourth equal call fails, and says why; a model that takes
// another way goes on, and one that does not is stopped.
func TestEqualCallsAreNotRunForEver(t *testing.T) {
	b := newBench(t, calls(append(same(4, "look", `{"what":"a"}`), use("x", "look", "b"))...)...)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if d := cmp.Diff([]string{"look1 ok", "look2 ok", "look3 ok", "look4 error", "x ok"}, outcomes(b.disk.state)); d != "" {
		t.Error(d)
	}
	if got := result(t, b.disk.state, "look4"); !strings.Contains(got, "Tool call repetition limit reached for look. Please try a different approach.") || !strings.Contains(got, `"is_error":true`) {
		t.Error(got)
	}
	checkHistories(t, b.disk.state)

	b = newBench(t, calls(same(9, "look", `{"what":"a"}`)...)...)
	want(t, b.start(agent.Input{Text: "go"}), "limit", "mistakes")
	if len(b.ran) != 3 || len(b.model.requests) != 6 || len(b.disk.state.Questions) != 0 {
		t.Errorf("ran %d times in %d requests, questions %v", len(b.ran), len(b.model.requests), b.disk.state.Questions)
	}
	// A new run counts what the old ones did.
	want(t, b.start(agent.Input{Text: "go on"}), "limit", "mistakes")
	if len(b.ran) != 3 {
		t.Errorf("a new run ran it again: %q", b.ran)
	}
}

// What is the same and what is not.
func TestWhichCallsAreEqual(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []string
		ran    int
	}{
		"other order":     {[]string{`{"what":"a","n":1}`, `{"n":1,"what":"a"}`, `{"what":"a","n":1}`, `{"n":1,"what":"a"}`}, 3},
		"deep order":      {[]string{`{"what":"a","o":{"p":1,"q":2}}`, `{"what":"a","o":{"q":2,"p":1}}`, `{"what":"a","o":{"p":1,"q":2}}`, `{"what":"a","o":{"p":1,"q":2}}`}, 3},
		"other value":     {[]string{`{"what":"a","n":1}`, `{"what":"a","n":1}`, `{"what":"a","n":1}`, `{"what":"a","n":2}`}, 4},
		"other name":      {[]string{`{"what":"a","n":1}`, `{"what":"a","n":1}`, `{"what":"a","n":1}`, `{"what":"a","m":1}`}, 4},
		"one in between":  {[]string{`{"what":"a"}`, `{"what":"a"}`, `{"what":"b"}`, `{"what":"a"}`, `{"what":"a"}`, `{"what":"a"}`}, 6},
		"other list":      {[]string{`{"what":"a","l":[1,2]}`, `{"what":"a","l":[2,1]}`, `{"what":"a","l":[1,2]}`, `{"what":"a","l":[2,1]}`}, 4},
		"large and equal": {slices.Repeat([]string{`{"what":"` + strings.Repeat("x", 100<<10) + `"}`}, 4), 3},
	} {
		t.Run(name, func(t *testing.T) {
			var list []call
			for i, in := range c.inputs {
				list = append(list, call{fmt.Sprint("c", i), "look", in})
			}
			oneByOne := newBench(t, calls(list...)...)
			want(t, oneByOne.start(agent.Input{Text: "go"}), "completed", "")
			atOnce := newBench(t, turn{calls: list}, finish("done"))
			want(t, atOnce.start(agent.Input{Text: "go"}), "completed", "")
			if len(oneByOne.ran) != c.ran || len(atOnce.ran) != c.ran {
				t.Errorf("ran %d and %d times, want %d", len(oneByOne.ran), len(atOnce.ran), c.ran)
			}
		})
	}
}

// Where a person is there they are asked, the model hears what they say in Roo's shape,
// and the count begins anew: every fourth call is one too many.
func TestAPersonIsAskedAboutEqualCalls(t *testing.T) {
	b := newBench(t, calls(same(9, "look", `{"what":"a"}`)...)...)
	b.agent.User.Attended, b.agent.User.Asker = true, b.person(agent.Answer{Text: "look at b", By: "terminal"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	s := b.disk.state
	if len(b.asked) != 2 || len(b.ran) != 7 || b.asked[0].Kind != "mistake_limit" || !strings.Contains(b.asked[0].Text, "call of look 4 times") {
		t.Fatalf("asked %+v, ran %d times", b.asked, len(b.ran))
	}
	for _, id := range []string{"look4", "look8"} {
		f := s.Call(id).Finished
		if got := result(t, s, id); !strings.Contains(got, `{\"status\":\"guidance\",\"feedback\":\"look at b\"}`) || f.Outcome != "error" || f.Approval == nil || f.Approval.Via != "terminal" {
			t.Errorf("%s: got %+v %s, want strings.Contains(got, `{\\\"status\\\":\\\"guidance\\\",\\\"feedback\\\":\\\"look at b\\\"}`) and f.Outcome = \"error\" and f.Approval != nil and f.Approval.Via = \"terminal\"",
				id, f, got)
		}
	}
	if rows := uiOf(b, "ask:mistake_limit_reached"); len(rows) != 2 {
		t.Errorf("got %q, want len(rows) = 2", rows)
	}
	if !shows(s, "look at b") || len(s.Questions)+len(s.Answered) != 0 {
		t.Errorf("questions %v, answered %v", s.Questions, s.Answered)
	}
	checkHistories(t, s)
	// The one that nobody answers any more fails as with nobody there.
	b = newBench(t, calls(same(4, "look", `{"what":"a"}`)...)...)
	b.agent.User.Attended, b.agent.User.Asker = true, b.person(agent.Answer{}, agent.ErrUnattended)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if len(b.disk.state.Questions) != 0 || outcomes(b.disk.state)[3] != "look4 error" {
		t.Errorf("got %v %v, want len(b.disk.state.Questions) = 0 and outcomes(b.disk.state)[3] = \"look4 error\"",
			outcomes(b.disk.state), b.disk.state.Questions)
	}
}

// What a person is in between of, and what is refused anyway, is not counted as this.
func TestWhatMayBeSaidAgain(t *testing.T) {
	ask := `{"question":"which?","follow_up":[{"text":"a","mode":null}]}`
	b := newBench(t, calls(same(6, "ask_followup_question", ask)...)...)
	b.agent.User.Attended, b.agent.User.Asker = true, b.person(agent.Answer{Text: "a"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if len(b.asked) != 6 || b.asked[5].Kind != "followup" {
		t.Errorf("asked %d times", len(b.asked))
	}
	b = newBench(t, slices.Repeat([]turn{{calls: []call{{"d", "attempt_completion", `{"result":"done"}`}}}}, 8)...)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for range 6 {
		want(t, b.start(agent.Input{Text: "and again"}), "completed", "")
	}
	b = moded(t, "code", calls(append(same(3, "look", `{"what":"a"}`), same(4, "update_todo_list", `{"todos":"[ ] a"}`)...)...)...)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if got := outcomes(b.disk.state); got[6] != "update_todo_list4 error" {
		t.Errorf("got %q, want got[6] = \"update_todo_list4 error\"", got)
	}
}

// A rewound call is none: what a person took back is not held against the model.
func TestRewoundCallsDoNotCount(t *testing.T) {
	b := newBench(t, calls(append(same(3, "look", `{"what":"a"}`), use("z", "look", "a"))...)...)
	b.hook = func(entry string) {
		if entry != "request 4" {
			return
		}
		b.hook = nil
		var hide []uint64
		for _, m := range b.disk.state.API() {
			if m.Kind() == "assistant" {
				hide = append(hide, m.ID)
			}
		}
		b.must(b.disk.Commit(context.Background(), task.MessageHidden{Messages: hide[:1], Reason: "rewind"}))
	}
	b.start(agent.Input{Text: "go"})
	if c := b.disk.state.Call("z"); c == nil || c.Finished.Outcome != "ok" {
		t.Errorf("got %+v, want c != nil and c.Finished.Outcome = \"ok\"", c)
	}
}

// However the run is cut, the same calls are run, and none is run once more for it.
func TestEqualCallsOverKills(t *testing.T) {
	b := newBench(t, calls(append(same(4, "act", `{"what":"a"}`), use("x", "act", "b"))...)...)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for n := 3; n < len(b.disk.commits); n++ {
		left := b.after(n, b.disk.ranAt[n-1])
		left.agent.Task.Policy = approval.Policy{Mode: approval.ModeAll}
		want(t, left.start(agent.Input{Yes: true}), "completed", "")
		s := left.disk.state
		if len(left.ran) > 4 || slices.Index(outcomes(s), "act4 error") != 3 {
			t.Fatalf("after commit %d: ran %q, %q", n, left.ran, outcomes(s))
		}
	}
}

// The kinds of mistakes: on a terminal the person is asked before the run ends, and the
// model hears their words in the turn that goes out next.
func TestAPersonIsAskedAboutMistakes(t *testing.T) {
	wrong := turn{calls: []call{{"w", "look", `{}`}}}
	for name, c := range map[string]struct {
		answer agent.Answer
		err    error
		turns  []turn
		state  string
		code   string
		sent   bool
	}{
		"words":      {agent.Answer{Text: "name what", By: "terminal"}, nil, []turn{wrong, wrong, wrong}, "completed", "", true},
		"no tools":   {agent.Answer{Text: "name what"}, nil, []turn{{text: "hm"}, {text: "hm"}, {text: "hm"}}, "completed", "", true},
		"go on":      {agent.Answer{Approve: yes()}, nil, []turn{wrong, wrong, wrong}, "completed", "", false},
		"enough":     {agent.Answer{Approve: no()}, nil, []turn{wrong, wrong, wrong}, "limit", "mistakes", false},
		"gone":       {agent.Answer{}, agent.ErrUnattended, []turn{wrong, wrong, wrong}, "limit", "mistakes", false},
		"over again": {agent.Answer{Text: "name what"}, nil, slices.Repeat([]turn{wrong}, 5), "completed", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.turns...)
			b.agent.User.Attended, b.agent.User.Asker = true, b.person(c.answer, c.err)
			want(t, b.start(agent.Input{Text: "go"}), c.state, c.code)
			if len(b.asked) != 1 || b.asked[0].Kind != "mistake_limit" || !strings.Contains(b.asked[0].Text, "wrong 3 times in a row") {
				t.Errorf("asked %+v", b.asked)
			}
			if len(b.model.requests) > 3 {
				if got := slices.Contains(texts(t, b.model.requests[3]), `{"status":"guidance","feedback":"name what"}`); got != c.sent {
					t.Errorf("got %q, want got = c.sent", texts(t, b.model.requests[3]))
				}
			}
			if shows(b.disk.state, "name what") != c.sent || len(uiOf(b, "ask:mistake_limit_reached")) != 1 {
				t.Errorf("the rows show other than was said")
			}
			checkHistories(t, b.disk.state)
		})
	}
	// With nobody there nobody is asked.
	b := newBench(t, wrong, wrong, wrong)
	b.agent.User.Asker = b.person(agent.Answer{Text: "x"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "limit", "mistakes")
	if len(b.asked) != 0 {
		t.Errorf("asked %+v", b.asked)
	}
}

// Killed at any moment while it is asked, the task goes on with what is said then, the
// question is open no more, and words that were acknowledged reach the model.
func TestAdviceOutlivesAKill(t *testing.T) {
	wrong := turn{calls: []call{{"w", "look", `{}`}}}
	for _, turns := range [][]turn{{wrong, wrong, wrong}, calls(same(4, "look", `{"what":"a"}`)...)} {
		b := newBench(t, turns...)
		b.agent.User.Attended, b.agent.User.Asker = true, b.person(agent.Answer{Text: "name what"}, nil)
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		for n := 2; n < len(b.disk.commits); n++ {
			left := b.after(n, b.disk.ranAt[n-1])
			left.agent.User.Attended, left.agent.User.Asker = true, left.person(agent.Answer{Text: "name what"}, nil)
			heard := shows(left.disk.state, "name what")
			want(t, left.start(agent.Input{Text: "go on then"}), "completed", "")
			s := left.disk.state
			if len(s.Questions) != 0 {
				t.Fatalf("after commit %d a question is open: %+v", n, s.Questions[0])
			}
			if len(left.model.requests) > 0 && !strings.Contains(left.model.last(), "go on then") {
				t.Errorf("after commit %d the model does not hear the person: %s", n, left.model.last())
			}
			if c := s.Call("look4"); heard && c != nil && len(left.model.requests) > 0 && !strings.Contains(left.model.last(), "name what") {
				t.Errorf("after commit %d the words are lost: %s", n, left.model.last())
			}
			checkHistories(t, s)
		}
	}
}

// Any number of calls in any order: a call runs exactly if at most two equal ones stand
// right before it.
func TestRepetitionAgainstAModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		whats := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 14).Draw(r, "calls")
		var list []call
		var ran []string
		row := 0
		for i, w := range whats {
			list = append(list, use(fmt.Sprint("c", i), "look", w))
			if i == 0 || whats[i-1] != w {
				row = 0
			}
			if row++; row <= 3 {
				ran = append(ran, "look "+w)
			}
		}
		b := newBench(t, turn{calls: list}, finish("done"))
		b.start(agent.Input{Text: "go"})
		if d := cmp.Diff(ran, b.ran); d != "" {
			r.Fatalf("%v: got %s, want d = \"\"", whats, d)
		}
	})
}

// Calls of tools that are elsewhere end in a result that says what can be used here,
// whether this program made them or another one did.
func TestToolsOfElsewhere(t *testing.T) {
	for name, says := range map[string]string{
		"codebase_search": "use search_files", "generate_image": "no tool makes images", "browser_action": "no browser",
		"mcp--github--issue": "its server is not set up", "frobnicate": "There are look, edit, act, ask_followup_question",
	} {
		b := newBench(t, turn{calls: []call{{"c1", name, `{"query":"x"}`}}}, finish("done"))
		b.tools = slices.DeleteFunc(b.tools, func(t tool.Tool) bool { return t.Spec().Name == name })
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if got := result(t, b.disk.state, "c1"); !strings.Contains(got, says) || !strings.Contains(got, fmt.Sprintf("no tool named \\\\\\\"%s\\\\\\\"", name)) {
			t.Errorf(`%s: got %s, want strings.Contains(got, says) and strings.Contains(got, fmt.Sprintf("no tool named \\\\\\\"%%s\\\\\\\"", name))`,
				name, got)
		}
		if !strings.Contains(b.model.last(), name) {
			t.Error("the call is not in the history any more")
		}
		checkHistories(t, b.disk.state)
	}
}
