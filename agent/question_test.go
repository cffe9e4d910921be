package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/tool"
)

// asking is a bench whose commands need consent.
func asking(t *testing.T, turns ...turn) *bench {
	b := newBench(t, turns...)
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeEdits}
	return b
}

var (
	actOnce  = turn{calls: []call{use("c1", "act", "make test")}}
	askWhich = turn{calls: []call{{"q1", "ask_followup_question", `{"question":"which?","follow_up":[{"text":"this","mode":null},{"text":"that","mode":"code"}]}`}}}
)

func TestApprovals(t *testing.T) {
	for name, c := range map[string]struct {
		answer  agent.Answer
		outcome string
		says    []string
	}{
		"yes":            {agent.Answer{Approve: yes(), By: "terminal"}, "ok", []string{"did act make test"}},
		"yes, and":       {agent.Answer{Approve: yes(), Text: "but quietly"}, "ok", []string{`\"status\":\"approved\",\"feedback\":\"but quietly\"`, "did act make test"}},
		"no":             {agent.Answer{Approve: no()}, "denied", []string{"The user denied this operation."}},
		"no, because":    {agent.Answer{Approve: no(), Text: "not today"}, "denied", []string{`\"feedback\":\"not today\"`}},
		"words only":     {agent.Answer{Text: "why?"}, "denied", []string{"why?"}},
		"nothing at all": {agent.Answer{}, "denied", []string{"The user denied this operation."}},
	} {
		t.Run(name, func(t *testing.T) {
			b := asking(t, actOnce, finish("done"))
			b.agent.User.Asker = b.person(c.answer, nil)
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			s := b.disk.state
			f := s.Call("c1").Finished
			if f.Outcome != c.outcome || f.Approval.By != "user" || f.Approval.Feedback != c.answer.Text && c.outcome == "ok" {
				t.Errorf(`got %+v %+v, want f.Outcome = c.outcome and f.Approval.By = "user" and (f.Approval.Feedback = c.answer.Text or c.outcome != "ok")`,
					f, f.Approval)
			}
			for _, part := range c.says {
				if !strings.Contains(result(t, s, "c1"), part) {
					t.Errorf("%q is not in %s", part, result(t, s, "c1"))
				}
			}
			if c.answer.Text != "" && !shows(s, c.answer.Text) {
				t.Error("the person's words are not shown")
			}
			if len(b.asked) != 1 || b.asked[0].Text != "act make test" || b.asked[0].Call != "c1" || len(s.Questions) != 0 || len(s.Answered) != 0 {
				t.Errorf("asked %+v, open %v, unused %v", b.asked, s.Questions, s.Answered)
			}
			checkHistories(t, s)
		})
	}
}

// A refusal ends the reply: what stands behind the refused call is skipped. That
// holds too when the program ends in between.
func TestARefusalSkipsTheRest(t *testing.T) {
	b := asking(t, turn{calls: []call{use("r1", "look", "a"), use("c1", "act", "x"), use("w1", "edit", "b"), use("r2", "look", "c")}}, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Approve: no()}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	wanted := []string{"r1 ok", "c1 denied", "w1 denied", "r2 denied"}
	if d := cmp.Diff(wanted, outcomes(b.disk.state)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(result(t, b.disk.state, "w1"), "Skipping tool [edit]") {
		t.Error(result(t, b.disk.state, "w1"))
	}
	for n := range b.disk.commits {
		left := b.after(n+1, b.disk.ranAt[n])
		if c := left.disk.state.Call("c1"); c == nil || c.Finished == nil {
			continue
		}
		left.start(agent.Input{Yes: true})
		if d := cmp.Diff(wanted, outcomes(left.disk.state)); d != "" {
			t.Errorf("killed after commit %d: %s", n+1, d)
		}
	}
}

// The question is in the log before the person sees it, with what is asked about.
func TestAQuestionIsSavedBeforeItIsAsked(t *testing.T) {
	b := asking(t, actOnce, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes()}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	at := slices.Index(b.trace, "ask approval")
	wanted := []string{"commit +ui question.opened", "saved", "ask approval", "commit question.closed", "saved", "commit started:c1 tool.process", "saved", "run act make test"}
	if d := cmp.Diff(wanted, b.trace[at-2:at+6]); d != "" {
		t.Error(d)
	}
}

// "Always" holds for the rest of the task, across runs, for what it was said of.
func TestAlways(t *testing.T) {
	turns := []turn{
		{calls: []call{use("c1", "act", "make test"), use("c2", "act", "make test fast"), use("c3", "act", "make clean")}},
		{calls: []call{use("w1", "edit", "a"), use("w2", "edit", "b")}},
		finish("done"),
		{calls: []call{use("c4", "act", "make test"), use("w3", "edit", "c")}},
		finish("done again"),
	}
	b := newBench(t, turns...)
	b.agent.Task.Policy = approval.Policy{}
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), Always: true}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	var asked []string
	for _, q := range b.asked {
		asked = append(asked, q.Text)
	}
	if d := cmp.Diff([]string{"act make test", "act make clean", "edit a"}, asked); d != "" {
		t.Error(d)
	}
	kept := b.disk.state.Settings
	if !slices.Equal(kept.Allow, []string{"make test", "make clean"}) || !slices.Equal(kept.Tools, []string{"edit"}) {
		t.Errorf(`got %+v, want slices.Equal(kept.Allow, []string{"make test", "make clean"}) and slices.Equal(kept.Tools, []string{"edit"})`,
			kept)
	}
	b.agent.Task.Policy = approval.Policy{Allow: kept.Allow, AllowTools: kept.Tools}
	b.agent.User.Asker = nil
	want(t, b.start(agent.Input{Text: "more"}), "completed", "")
}

// A line that no pattern can stand for is asked for again, whatever was said.
func TestAlwaysOfAChain(t *testing.T) {
	b := asking(t, turn{calls: []call{use("c1", "act", "ls; rm -r x"), use("c2", "act", "ls; rm -r x")}}, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), Always: true}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if len(b.asked) != 2 || len(b.disk.state.Settings.Allow) != 0 {
		t.Errorf("asked %d times, allowed %q", len(b.asked), b.disk.state.Settings.Allow)
	}
}

// "Always" for a page is about its site: other pages of it run unasked, other sites and other ports of it do not.
func TestAlwaysOfASite(t *testing.T) {
	b := newBench(t, turn{calls: []call{
		use("c1", "web_fetch", "docs.test"), use("c2", "web_fetch", "docs.test"), use("c3", "web_fetch", "docs.test:81"),
		use("c4", "web_fetch", "www.docs.test"),
	}}, finish("done"))
	web := b.fake("web_fetch", tool.Web, tool.Again)
	web.ask = func(ask *tool.Ask) {
		host, _, _ := strings.Cut(ask.Text, ":")
		if ask.Paths = []string{ask.Text}; host != ask.Text {
			ask.Paths = append(ask.Paths, host)
		}
	}
	b.tools = append(b.tools, web)
	b.prepare()
	b.agent.Task.Policy = approval.Policy{}
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), Always: true}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	var asked []string
	for _, q := range b.asked {
		asked = append(asked, q.Text+"; always: "+q.Always)
	}
	if d := cmp.Diff([]string{
		"web_fetch docs.test; always: all calls of web_fetch to docs.test in this task",
		"web_fetch docs.test:81; always: all calls of web_fetch to docs.test:81 in this task",
		"web_fetch www.docs.test; always: all calls of web_fetch to www.docs.test in this task",
	}, asked); d != "" {
		t.Error(d)
	}
	kept := []string{"web_fetch(docs.test)", "web_fetch(docs.test:81)", "web_fetch(www.docs.test)"}
	if d := cmp.Diff(kept, b.disk.state.Settings.Tools); d != "" {
		t.Error(d)
	}
}

func TestFollowup(t *testing.T) {
	b := newBench(t, askWhich, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Text: "the third"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	s := b.disk.state
	if !strings.Contains(result(t, s, "q1"), `<user_message>\nthe third\n</user_message>`) || !shows(s, "the third") {
		t.Error(result(t, s, "q1"))
	}
	if d := cmp.Diff([]string{"this", "that"}, b.asked[0].Choices); d != "" {
		t.Error(d)
	}
	for _, m := range s.UI() {
		if m.Kind() == "ask:followup" && !strings.Contains(string(m.Raw()), `"isAnswered":true`) {
			t.Errorf("got %s, want m.Kind() != \"ask:followup\" or strings.Contains(string(m.Raw()), `\"isAnswered\":true`)",
				m.Raw())
		}
	}
	checkHistories(t, s)
}

// Without anybody to ask the run waits, and the answer that comes with a resume is
// used once, for the question that was open.
func TestWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		turn    turn
		in      agent.Input
		state   string // of the second run
		outcome string
		says    string
	}{
		"yes":                      {actOnce, agent.Input{Text: "yes"}, "completed", "c1 ok", ""},
		"Y with space":             {actOnce, agent.Input{Text: " Y\n"}, "completed", "c1 ok", ""},
		"the flag":                 {actOnce, agent.Input{Yes: true}, "completed", "c1 ok", ""},
		"no":                       {actOnce, agent.Input{Text: "no"}, "completed", "c1 denied", "The user denied"},
		"no beats the flag":        {actOnce, agent.Input{Text: "no", Yes: true}, "completed", "c1 denied", "The user denied"},
		"other words":              {actOnce, agent.Input{Text: "use go test"}, "completed", "c1 denied", "use go test"},
		"words and a picture":      {actOnce, agent.Input{Text: "like this", Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}, "completed", "c1 denied", "like this"},
		"an answer":                {askWhich, agent.Input{Text: "that"}, "completed", "q1 ok", "that"},
		"the flag is no answer":    {askWhich, agent.Input{Yes: true}, "waiting", "q1 open", ""},
		"nothing is no consent":    {actOnce, agent.Input{}, "waiting", "c1 open", ""},
		"a picture is no consent":  {actOnce, agent.Input{Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}, "waiting", "c1 open", ""},
		"an answer with a picture": {askWhich, agent.Input{Text: "that", Images: []string{"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}, "completed", "q1 ok", "that"},
	} {
		t.Run(name, func(t *testing.T) {
			b := asking(t, c.turn, finish("done"))
			out := b.start(agent.Input{Text: "go"})
			want(t, out, "waiting", "")
			if s := b.disk.state; len(s.Questions) != 1 || s.Questions[0].Question != out.Question || s.Run.Waiting != out.Question || len(b.ran) > 0 {
				t.Fatalf("%+v, open %v", out, s.Questions)
			}
			want(t, b.start(c.in), c.state, "")
			s := b.disk.state
			if d := cmp.Diff([]string{c.outcome}, outcomes(s)); d != "" {
				t.Error(d)
			}
			if c.says != "" && !strings.Contains(result(t, s, s.Calls()[0].ID), c.says) {
				t.Error(result(t, s, s.Calls()[0].ID))
			}
			if c.state == "completed" {
				checkHistories(t, s)
			}
			if len(c.in.Images) > 0 && c.state == "completed" && !strings.Contains(history(s), `"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="`) {
				t.Error("the picture is lost")
			}
		})
	}
}

// Consent is given to what a person has seen. A resume's words never allow a call
// that was not asked about before they came; they are kept for the model.
func TestWordsDoNotAllowWhatWasNotAsked(t *testing.T) {
	for name, in := range map[string]agent.Input{"yes": {Text: "yes"}, "y and the flag": {Text: "y", Yes: true}, "the flag": {Yes: true}} {
		t.Run(name, func(t *testing.T) {
			b := asking(t, actOnce, finish("done"))
			want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
			for n, c := range b.disk.commits {
				if !strings.Contains(string(c.Events[len(c.Events)-1]), `"role":"assistant"`) {
					continue
				}
				left := b.after(n+1, 0) // the reply is stored, and nobody has seen its call
				left.agent.User.Asker = nil
				want(t, left.start(in), "waiting", "")
				if len(left.ran) > 0 {
					t.Fatalf("ran %q", left.ran)
				}
				want(t, left.start(agent.Input{Text: "yes"}), "completed", "")
				if !slices.Equal(left.ran, []string{"act make test"}) || in.Text != "" && !strings.Contains(left.model.last(), `<user_message>\n`+in.Text) {
					t.Errorf("ran %q, sent %s", left.ran, left.model.last())
				}
				return
			}
			t.Fatal("no reply in the log")
		})
	}
}

// A change of what a waiting call would do is a new question: an answer to the old
// one allows nothing, while a no stays a no. The row shows what is asked now.
func TestAnswerToAnotherChange(t *testing.T) {
	diff := func(d string) func(*tool.Ask) { return func(a *tool.Ask) { a.Diff = d } }
	title := func(d string) func(*tool.Ask) { return func(a *tool.Ask) { a.Title, a.Text = d, d } }
	for name, c := range map[string]struct {
		before, now func(*tool.Ask)
		answer      string
		state       string
		open        string
	}{
		"yes to a diff":   {diff("-a"), diff("-all"), "yes", "waiting", "w1 open"},
		"yes to a title":  {title("a"), title("all"), "yes", "waiting", "w1 open"},
		"yes to the same": {diff("-a"), diff("-a"), "yes", "completed", "w1 ok"},
		"no":              {diff("-a"), diff("-all"), "no", "completed", "w1 denied"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("w1", "edit", "x")}}, finish("done"))
			b.agent.Task.Policy = approval.Policy{}
			b.tool("edit").ask = c.before
			want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
			b.tool("edit").ask = c.now
			want(t, b.start(agent.Input{Text: c.answer}), c.state, "")
			s := b.disk.state
			if d := cmp.Diff([]string{c.open}, outcomes(s)); d != "" {
				t.Error(d)
			}
			if ok := slices.Equal(b.ran, []string{"edit x"}); ok != (c.open == "w1 ok") {
				t.Errorf("ran %q", b.ran)
			}
			var ask tool.Ask
			ask.Title, ask.Text = "edit x", "x"
			c.now(&ask)
			if c.state == "waiting" && (len(s.Questions) != 1 || s.Questions[0].Diff != ask.Diff || s.Questions[0].Text != ask.Title || !shows(s, ask.Text)) {
				t.Errorf("open %+v, rows %v", s.Questions[0], kinds(s))
			}
			if count(kinds(s), "ask:tool") != 1 {
				t.Errorf("rows %v", kinds(s))
			}
		})
	}
}

// A no that was given before a kill holds, even if the policy would now allow the
// call.
func TestANoOutlivesAChangeOfPolicy(t *testing.T) {
	b := asking(t, actOnce, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeAll}
	want(t, b.start(agent.Input{Text: "never do that"}), "completed", "")
	if len(b.ran) > 0 || !strings.Contains(result(t, b.disk.state, "c1"), "never do that") {
		t.Errorf("ran %q, %s", b.ran, result(t, b.disk.state, "c1"))
	}
}

func TestStopAtAQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		state, code string
	}{
		"nobody": {agent.ErrUnattended, "waiting", ""},
		"broken": {errors.New("the terminal is gone"), "failed", "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			b := asking(t, actOnce, finish("done"))
			b.agent.User.Asker = b.person(agent.Answer{}, c.err)
			want(t, b.start(agent.Input{Text: "go"}), c.state, c.code)
			if len(b.disk.state.Questions) != 1 {
				t.Error("the question is gone")
			}
			b.agent.User.Asker = nil
			want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
			if !slices.Equal(b.ran, []string{"act make test"}) {
				t.Error(b.ran)
			}
		})
	}
}

// A question whose call comes to an end in another way does not stay open.
func TestAQuestionIsNotLeftBehind(t *testing.T) {
	b := asking(t, actOnce, finish("done"))
	want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
	b.agent.Task.Policy = approval.Policy{Mode: approval.ModeAll, Deny: []string{"make"}}
	want(t, b.start(agent.Input{}), "completed", "")
	if s := b.disk.state; len(s.Questions) != 0 || s.Call("c1").Finished.Outcome != "denied" {
		t.Errorf("open %+v, %v", s.Questions, outcomes(s))
	}
	if got := kinds(b.disk.state); count(got, "ask:command") != 1 {
		t.Errorf("the call is shown more than once: %v", got)
	}
}

// An answer that was given in a run that ended before using it is used by the next.
func TestAnswerOfAKilledRun(t *testing.T) {
	b := asking(t, actOnce, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Approve: yes(), By: "terminal"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	for n, c := range b.disk.commits {
		if !strings.Contains(string(c.Events[0]), "question.closed") {
			continue
		}
		left := b.after(n+1, b.disk.ranAt[n])
		left.agent.User.Asker = nil
		want(t, left.start(agent.Input{Yes: true}), "completed", "")
		if f := left.disk.state.Call("c1").Finished; f.Outcome != "ok" || f.Approval.By != "user" {
			t.Errorf(`got %+v, want f.Outcome = "ok" and f.Approval.By = "user"`, f)
		}
		return
	}
	t.Fatal("no answer in the log")
}

// A question that was open while the change it asks about became another one asks
// about that one from then on.
func TestAnOpenQuestionFollowsTheChange(t *testing.T) {
	for name, now := range map[string]func(*tool.Ask){
		"another diff":  func(a *tool.Ask) { a.Diff = "-all" },
		"another title": func(a *tool.Ask) { a.Title = "edit all" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("w1", "edit", "x")}}, finish("done"))
			b.agent.Task.Policy = approval.Policy{}
			want(t, b.start(agent.Input{Text: "go"}), "waiting", "")
			b.tool("edit").ask = now
			want(t, b.start(agent.Input{}), "waiting", "") // nobody answers; it looks again
			ask := tool.Ask{Title: "edit x"}
			now(&ask)
			if q := b.disk.state.Questions; len(q) != 1 || q[0].Diff != ask.Diff || q[0].Text != ask.Title {
				t.Fatalf("open: %+v", q[0])
			}
			want(t, b.start(agent.Input{Text: "yes"}), "completed", "")
			if !slices.Equal(b.ran, []string{"edit x"}) {
				t.Error(b.ran)
			}
		})
	}
}
