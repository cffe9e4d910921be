package chat

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	display "github.com/roost-dev/roost/cli/term"
)

// One key answers once the question is armed, and no key before does.
func TestOneKeyAnswers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		keys  func(t *testing.T, m *model, pass func(time.Duration))
		want  []string // the call; nil = none
		draft string   // what comes back
	}{
		{"y", func(t *testing.T, m *model, pass func(time.Duration)) { pass(display.ArmAfter); m.types(t, "y") },
			[]string{"answer t1.q1", `"approve":true`}, ""},
		{"a", func(t *testing.T, m *model, pass func(time.Duration)) { pass(display.ArmAfter); m.types(t, "a") },
			[]string{"answer t1.q1", `"always":true`}, ""},
		{"q", func(t *testing.T, m *model, pass func(time.Duration)) { pass(display.ArmAfter); m.types(t, "q") },
			[]string{"cancel t1"}, ""},
		{"n with a reason", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.types(t, "n", "a", "y", "enter")
		}, []string{"answer t1.q1", `"approve":false`, `"text":"ay"`}, ""},
		{"n without one", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.types(t, "n", "enter")
		}, []string{"answer t1.q1", `"approve":false`}, ""},
		{"Esc goes back", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.types(t, "n", "because", "esc")
			pass(display.ArmAfter)
			m.types(t, "y")
		}, []string{"answer t1.q1", `"approve":true`}, ""},
		{"too early", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter - 1)
			m.types(t, "y")
		}, nil, "y"},
		{"typing goes on", func(t *testing.T, m *model, pass func(time.Duration)) {
			for range 9 {
				pass(display.ArmAfter / 2)
				m.types(t, "a")
			}
			m.types(t, "enter")
		}, nil, "aaaaaaaaa"},
		{"Enter is never yes", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.types(t, "enter")
			pass(display.ArmAfter)
			m.types(t, "enter")
		}, nil, ""},
		{"words are no answer", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.types(t, "s", "a", "y", "enter")
			if !strings.Contains(m.seen(), "a question waits") {
				t.Errorf("Enter says nothing:\n%s", m.seen())
			}
		}, nil, ""},
		{"a paste is no answer", func(t *testing.T, m *model, pass func(time.Duration)) {
			pass(display.ArmAfter)
			m.Update(tea.PasteMsg{Content: "y"})
			pass(display.ArmAfter)
			m.types(t, "y")
		}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			m, c, pass := typist(t, d)
			atWork(t, d, m, c)
			pass(time.Minute)
			d.emit("t1", "question.opened", approval)
			m.asks(t, true)
			tt.keys(t, m, pass)
			if tt.want != nil {
				c.did(tt.want...)
				return
			}
			d.emit("t1", "question.closed", `"question":"q1","approve":false,"by":"api"`)
			m.asks(t, false)
			for _, call := range d.all() {
				if strings.HasPrefix(call, "answer") || strings.HasPrefix(call, "cancel") {
					t.Errorf("it was answered: %s", call)
				}
			}
			if tt.draft != "" {
				pass(time.Minute)
				m.becomes(t, tt.draft)
			}
		})
	}
}

// "always" is no key where no pattern can be kept.
func TestAlwaysIsNoKeyWithoutAPattern(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	atWork(t, d, m, c)
	d.emit("t1", "question.opened", `"question":"q1","kind":"approval","text":"run a && b","command":"a && b"`)
	m.asks(t, true)
	pass(time.Minute)
	m.types(t, "a")
	if got := m.ed.String(); got != "a" || strings.Contains(m.seen(), "a always") {
		t.Errorf("the key is %q\n%s", got, m.seen())
	}
}

// Words that are given twice at a question go to the run, and answer nothing.
func TestWordsBesideAQuestion(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	atWork(t, d, m, c)
	d.emit("t1", "question.opened", approval)
	m.asks(t, true)
	pass(time.Minute)
	m.types(t, "so be it", "enter", "enter")
	c.did("send t1", `"delivery":"queue"`, "so be it")
}
