package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// Whatever held words of the person's stands in the editor again when it failed, exactly
// as it was typed; a command without words does not.
func TestLinesThatFailComeBackAsTheyWereTyped(t *testing.T) {
	for _, c := range []struct {
		typed string
		back  bool
	}{
		{"words", true},
		{"//words with a slash", true},
		{"one \\\nand two", true},
		{"/steer look at the tests", true},
		{"/now stop that", true},
		{"/answer it is red", true},
		{"/reject because", true},
		{"/queue 7 other words", true},
		{"/edit #3 other words", true},
		{"/title other words", false}, // it is done
		{"/title", false},
		{"/nonsense with words", true},
		{"/diff c99", false},
		{"/limits turns=many", false},
		{"!!false", false},
	} {
		t.Run(strings.ReplaceAll(c.typed, "/", "_"), func(t *testing.T) {
			d := newDesk(t)
			d.says["checkpoint"] = Said{Code: 5, Err: "roost: there is none\n"}
			ch := newWorkingChat(t, d)
			d.refuses(errNotNow)
			ch.Session.Line(c.typed)
			ch.when("seen to", func(st state) bool { return !st.Busy })
			want := []string{c.typed}
			if !c.back {
				want = nil
			}
			if got := ch.state().Back; !slices.Equal(got, want) {
				t.Errorf("%q come back, want %q\n%s", got, want, ch.text())
			}
		})
	}
}

// Without a terminal nothing is sent behind a line that came to nothing: it was written
// for that line's success. The chat ends with why.
func TestAPipeEndsAtALineThatFails(t *testing.T) {
	unreachable := &client.Unreachable{Base: "http://h", Err: errNotNow}
	for _, c := range []struct {
		name, in string
		refuse   error
		line     string
		exit     int
		is       func(error) bool
	}{
		{"words that cannot be sent", "hello\nmore\n", unreachable, "hello", 0, func(err error) bool {
			var un *client.Unreachable
			return errors.As(err, &un)
		}},
		{"a command that nobody knows", "/nonsense\nmore\n", nil, "/nonsense", 0, func(err error) bool {
			var un *UnknownError
			return errors.As(err, &un) && un.Name == "nonsense"
		}},
		{"a command of roost", "/search x\nmore\n", nil, "/search x", 5, func(err error) bool { return strings.Contains(err.Error(), "no such thing") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.refuse = c.refuse
			d.says["search"] = Said{Code: 5, Err: "roost: no such thing\n"}
			ch, _, done := piped(t, d, strings.NewReader(c.in), false)
			var line *LineError
			if err := <-done; !errors.As(err, &line) || line.Line != c.line || line.Exit() != c.exit || !c.is(err) {
				t.Fatalf("it ended with %v", err)
			}
			for _, call := range d.all() {
				if strings.Contains(call, "more") {
					t.Errorf("it went on: %s", call)
				}
			}
			if strings.Contains(ch.text(), "✗") {
				t.Errorf("it is told twice: %q", ch.text())
			}
		})
	}
}

// Who names a task that is not there gets no new one instead.
func TestAPipeForATaskThatIsNotThere(t *testing.T) {
	d := newDesk(t)
	d.unknown = &client.Problem{Status: 404, Code: "task_not_found", Title: "There is no such task"}
	c := &chatting{t: t, backend: d}
	c.Session = New(context.Background(), d, Options{Task: "nothing"})
	t.Cleanup(c.Close)
	err := c.Plain(context.Background(), strings.NewReader("go on\n"), c, false)
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "task_not_found" {
		t.Errorf("it ended with %v", err)
	}
	if calls := d.all(); len(calls) > 0 {
		t.Errorf("it did %q", calls)
	}
}

// On a terminal a line that fails is told, and the next one is read.
func TestADumbTerminalGoesOnBehindALineThatFails(t *testing.T) {
	d := newDesk(t)
	c, _, done := piped(t, d, strings.NewReader("/nonsense\n/help new\n"), true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.shows("✗ there is no command /nonsense", "/new: begin another task")
}

// What a run's events have said counts, although the request that began it, or answered
// it, is told of only then: a pipe would wait for ever for a run that waits for it.
func TestEventsAreNewerThanWhatARequestGives(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d, func(o *Options) { o.Ask = false })
	d.emit("t1", "question.opened", approval)
	waits := func(st state) bool { return st.Waiting }
	c.when("waiting", waits)
	c.started("run1")
	if !c.state().Waiting {
		t.Fatal("it is told that the run was started, and the question is forgotten")
	}
	q := api.Question{ID: "t1.q1", Task: "t1"}
	q.QuestionOpened = api.QuestionOpened{Question: "q1", Kind: "approval"}
	d.mu.Lock()
	d.open = []api.Question{q}
	d.answering = func() {
		d.emit("t1", "question.closed", `"question":"q1","approve":true,"by":"cli"`)
		d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"and then?"`)
		c.shows("and then?")
		c.when("waiting again", waits)
	}
	d.mu.Unlock()
	c.Session.Line("/answer yes")
	c.when("seen to", func(st state) bool { return !st.Busy })
	if !c.state().Waiting {
		t.Error("the first answer is taken, and the second question is forgotten")
	}
}
