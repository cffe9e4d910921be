package chat

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"

	display "github.com/roost-dev/roost/cli/term"
)

// typist is a screen whose clock stands until the test moves it.
func typist(t *testing.T, d *desk) (m *model, c *chatting, pass func(time.Duration)) {
	t.Helper()
	m, c, _ = screened(t, d)
	now := time.Now()
	m.now = func() time.Time { return now }
	return m, c, func(by time.Duration) { now = now.Add(by) }
}

// atWork begins a task whose run works.
func atWork(t *testing.T, d *desk, m *model, c *chatting) {
	t.Helper()
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
}

// letters types a text key by key.
func (m *model) letters(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		m.types(t, string(r))
	}
}

// becomes waits until the editor holds a text.
func (m *model) becomes(t *testing.T, want string) {
	t.Helper()
	within(t, "an editor with "+want, func() bool {
		m.Update(wakeMsg{})
		return m.ed.String() == want
	})
}

func (m *model) asks(t *testing.T, asking bool) {
	t.Helper()
	within(t, "a question that comes or goes", func() bool {
		m.Update(wakeMsg{})
		return m.asking == asking
	})
}

func (d *desk) refuses(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = err
}

// A draft waits for the end of its question also when the editor holds something then,
// and another question comes.
func TestADraftOutlivesTwoQuestions(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	atWork(t, d, m, c)
	m.types(t, "the draft")
	pass(time.Minute)
	d.emit("t1", "question.opened", `"question":"q1","kind":"followup","text":"which?"`)
	m.asks(t, true)
	m.types(t, "an ans")
	d.emit("t1", "question.closed", `"question":"q1","by":"api"`)
	m.asks(t, false)
	if m.ed.String() != "an ans" {
		t.Fatalf("the editor holds %q", m.ed.String())
	}
	pass(time.Minute)
	d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"and which?"`)
	m.asks(t, true)
	m.types(t, "this", "enter")
	c.did("answer t1.q2", `"text":"this"`)
	pass(typing)
	m.becomes(t, "an ans")
	m.types(t, "enter")
	pass(typing)
	m.becomes(t, "the draft")
}

// An answer that comes too late by a moment is no prompt: Enter says so first.
func TestAnAnswerIsNoPrompt(t *testing.T) {
	d := newDesk(t)
	m, c, _ := typist(t, d)
	atWork(t, d, m, c)
	d.emit("t1", "question.opened", `"question":"q1","kind":"followup","text":"sure?"`)
	m.asks(t, true)
	m.types(t, "y")
	d.emit("t1", "question.closed", `"question":"q1","by":"api"`)
	c.when("gone", func(st state) bool { return !st.Asking })
	m.types(t, "enter")
	if m.ed.String() != "y" || !strings.Contains(m.seen(), "the question has closed") || m.s.state().Busy {
		t.Fatalf("got %q\n%s, want m.ed.String() = \"y\" and strings.Contains(m.seen(), \"the question has closed\") and not m.s.state().Busy",
			m.ed.String(), m.seen())
	}
	m.types(t, "enter")
	c.did("send t1", `"text":"y"`)
}

// Words that are being typed when an approval is asked for do not allow anything: neither
// their rest nor their Enter is for it. Who stops for a moment answers.
func TestWordsGoOnBesideAQuestion(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	atWork(t, d, m, c)
	m.letters(t, "look at")
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	pass(display.ArmAfter / 2)
	m.letters(t, " a filf")
	m.types(t, "backspace", "e", "enter")
	if !m.ed.empty() || !strings.Contains(m.seen(), "a question came") {
		t.Fatalf("got %q\n%s, want m.ed.empty() and strings.Contains(m.seen(), \"a question came\")",
			m.ed.String(), m.seen())
	}
	pass(display.ArmAfter)
	m.types(t, "n", "not it", "enter")
	c.did("answer t1.q1", `"approve":false`, `"text":"not it"`)
	pass(typing)
	m.becomes(t, "look at a file")

	d.emit("t1", "question.closed", `"question":"q1","by":"cli"`)
	m.types(t, "x")
	d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"which?"`)
	c.when("asking again", func(st state) bool { return st.Asking })
	pass(2 * typing)
	m.types(t, "red", "enter")
	c.did("answer t1.q2", `"text":"red"`)
	for _, call := range d.all() {
		if strings.Contains(call, "look at a file") {
			t.Errorf("half a line was sent: %s", call)
		}
	}
}

// An answer that did not get through leaves its question open: it is asked again, and the
// words stand in the editor. A letter alone is typed again.
func TestAnAnswerThatIsLostIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name, opened string
		typed        []string
		back         string
		again        []string
	}{
		{"words", `"question":"q1","kind":"followup","text":"which?"`, []string{"a long answer", "enter"}, "a long answer", []string{"enter"}},
		{"a reason", approval, []string{"n", "not that file", "enter"}, "not that file", []string{"enter"}},
		{"a letter", approval, []string{"y"}, "", []string{"y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			m, ch, pass := typist(t, d)
			atWork(t, d, m, ch)
			d.emit("t1", "question.opened", c.opened)
			m.asks(t, true)
			pass(time.Minute)
			d.refuses(&client.Unreachable{Base: "http://h", Err: errNotNow})
			m.types(t, c.typed...)
			ch.did("answer t1.q1")
			d.emit("t1", "message.added", `"history":"ui","message":9,"content":{"ts":1,"type":"say","say":"text","text":"meanwhile"}`)
			ch.when("asked again", func(st state) bool { return st.Asking })
			m.becomes(t, c.back)
			pass(time.Minute)
			m.types(t, c.again...)
			within(t, "a second answer", func() bool { return strings.Count(strings.Join(d.all(), "\n"), "answer t1.q1") == 2 })
			ch.when("answered", func(st state) bool { return !st.Asking && len(st.Back) == 0 && st.Retype == "" })
		})
	}
}

// Of an answer that was refused it is looked whether its question is open still.
func TestARefusedAnswer(t *testing.T) {
	for _, open := range []bool{true, false} {
		d := newDesk(t)
		m, c, pass := typist(t, d)
		atWork(t, d, m, c)
		d.emit("t1", "question.opened", approval)
		m.asks(t, true)
		pass(time.Minute)
		if open {
			q := api.Question{ID: "t1.q1", Task: "t1"}
			q.QuestionOpened = api.QuestionOpened{Question: "q1", Kind: "approval"}
			d.mu.Lock()
			d.open = []api.Question{q}
			d.mu.Unlock()
		}
		d.refuses(&client.Problem{Status: 409, Code: "stale", Title: "Something happened since"})
		m.types(t, "n", "too many", "enter")
		c.did("answer t1.q1")
		if open {
			m.becomes(t, "too many")
			m.asks(t, true)
			continue
		}
		c.when("over", func(st state) bool { return !st.Asking })
		d.emit("t1", "question.closed", `"question":"q1","by":"api"`)
		m.letters(t, "z")
		if got := m.ed.String(); got != "z" {
			t.Errorf("words for a question that is gone came back: %q", got)
		}
	}
}

// The end of a run may be told before the answer that let it end is: it is over.
func TestARunThatEndsWithTheAnswerIsOver(t *testing.T) {
	for _, of := range []string{"t1", "t2"} {
		d := newDesk(t)
		c := newWorkingChat(t, d)
		d.emit("t1", "subtask.started", `"child":"t2"`)
		d.emit(of, "question.opened", approval)
		c.when("asking", func(st state) bool { return st.Asking })
		d.mu.Lock()
		d.answering = func() {
			if of == "t1" { // what is told of a subtask comes by another way, and later
				d.emit(of, "question.closed", `"question":"q1","by":"cli"`)
				d.emit("t1", "run.ended", `"run":"run9","outcome":"completed"`)
			}
			d.emit("t1", "run.ended", `"run":"run1","outcome":"completed"`)
			c.when("its end is heard", func(st state) bool { return !st.Working })
		}
		d.mu.Unlock()
		c.Line("y")
		c.did("answer " + of + ".q1")
		c.shows("completed")
		c.when("over", func(st state) bool { return !st.Asking })
		d.emit("t1", "notice", `"kind":"warning","text":"behind all"`)
		c.shows("behind all")
		if st := c.state(); st.Working || st.Waiting {
			t.Errorf("question of %s: working %t, waiting %t", of, st.Working, st.Waiting)
		}
	}
}

// What stood in the editor before the history was searched is one step below what was
// found.
func TestASearchKeepsTheDraft(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	for _, line := range []string{"make the tests", "something"} {
		if err := m.ed.history.Add(line); err != nil {
			t.Fatal(err)
		}
	}
	m.ed.clear()
	m.types(t, "half a line", "ctrl+r", "tests", "enter")
	if m.ed.String() != "make the tests" {
		t.Fatalf("found %q", m.ed.String())
	}
	var seen []string
	for range 2 {
		m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		seen = append(seen, m.ed.String())
	}
	if diff := cmp.Diff([]string{"something", "half a line"}, seen); diff != "" {
		t.Error(diff)
	}
}

// What comes back while the person writes in an editor of their own waits, too, and what
// they wrote stands there once.
func TestWordsComeBackBehindTheEditor(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	atWork(t, d, m, c)
	m.types(t, "begun")
	m.away = true // as Ctrl-G has it
	pass(time.Minute)
	d.emit("t1", "question.opened", `"question":"q1","kind":"followup","text":"which?"`)
	m.asks(t, true)
	d.emit("t1", "question.closed", `"question":"q1","by":"api"`)
	m.asks(t, false)
	c.change(func(st *state) { st.keep("not sent") })
	m.Update(wakeMsg{})
	if !m.ed.empty() {
		t.Errorf("under the editor stands %q", m.ed.String())
	}
	m.Update(composedMsg{text: "begun and ended"})
	if m.ed.String() != "begun and ended" {
		t.Fatalf("it is %q", m.ed.String())
	}
	m.types(t, "enter")
	pass(typing)
	m.Update(sizeMsg{})
	if m.ed.String() != "" {
		t.Errorf("behind it stands %q", m.ed.String())
	}
	m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
	m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
	if m.ed.String() != "not sent" {
		t.Errorf("Up twice gives %q", m.ed.String())
	}
}
