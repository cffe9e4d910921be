package chat

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// screened is a screen without a terminal.
func screened(t *testing.T, d *desk) (*model, *chatting, *bytes.Buffer) {
	t.Helper()
	c := &chatting{t: t, backend: d}
	c.Session = New(t.Context(), d, Options{Ask: true, Display: term.Options{Size: func() int { return 40 }}})
	c.Session.mu.Lock()
	c.st.echoes, c.st.byKey = true, true
	c.Session.mu.Unlock()
	t.Cleanup(c.Close)
	var out bytes.Buffer
	m := &model{s: c.Session, crew: term.NewCrew(t.Context()), ed: newEditor(&History{}), paint: painter{w: &out}, now: time.Now, size: func() (int, int) { return 40, 12 }, ticking: true}
	return m, c, &out
}

// seen are the rows below what is printed, without colours.
func (m *model) seen() string {
	_, tail := m.s.out.take()
	var lines []string
	for _, r := range m.rows(tail, 40, 12).list {
		lines = append(lines, string(r))
	}
	return strings.Join(lines, "\n")
}

func (m *model) types(t *testing.T, keys ...string) (quit bool) {
	t.Helper()
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "left":
			msg = tea.KeyPressMsg{Code: tea.KeyLeft}
		case "backspace":
			msg = tea.KeyPressMsg{Code: tea.KeyBackspace}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "shift+tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
		case "ctrl+c", "ctrl+d", "ctrl+r", "ctrl+g", "ctrl+l", "ctrl+z":
			msg = tea.KeyPressMsg{Code: rune(k[5]), Mod: tea.ModCtrl}
		}
		_, cmd := m.Update(msg)
		if cmd == nil {
			continue
		}
		quit = m.gets(cmd()) || quit
	}
	return quit
}

// gets gives the screen what a command brought.
func (m *model) gets(msg tea.Msg) (quit bool) {
	switch msg := msg.(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		for _, cmd := range msg {
			quit = m.gets(cmd()) || quit
		}
	case wordsMsg, imageMsg:
		if _, cmd := m.Update(msg); cmd != nil {
			return m.gets(cmd())
		}
	}
	return quit
}

func TestLeavingTakesTwo(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	now := time.Now()
	m.now = func() time.Time { return now }
	if m.types(t, "some words", "ctrl+d") {
		t.Fatal("Ctrl-D left although something was typed")
	}
	if m.types(t, "ctrl+c") || !m.ed.empty() || !strings.Contains(m.seen(), "Ctrl-C again leaves") {
		t.Fatalf("after one Ctrl-C: %q", m.seen())
	}
	now = now.Add(twice + time.Second)
	if m.types(t, "ctrl+c") {
		t.Fatal("the second one came long after")
	}
	if !m.types(t, "ctrl+c") {
		t.Error("two at once do not leave")
	}
	if !m.types(t, "ctrl+d") {
		t.Error("Ctrl-D does not leave")
	}
}

// What was being typed when a question came is no answer, and comes back behind it.
func TestAHalfLineIsNoAnswer(t *testing.T) {
	d := newDesk(t)
	m, c, out := screened(t, d)
	now := time.Now()
	m.now = func() time.Time { now = now.Add(time.Second); return now } // somebody who reads
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	m.types(t, "and y")
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	m.types(t, "enter")
	within(t, "told", func() bool {
		m.Update(wakeMsg{})
		_, behind, told := strings.Cut(out.String(), "Enter alone is not an answer")
		return told && strings.Contains(behind, "q stop")
	})
	if got := m.seen(); !strings.Contains(strings.ReplaceAll(got, "\n", " "), "y once, a always, n no (reason), d diff, q stop") {
		t.Errorf("the rows are %q", got)
	}
	m.types(t, "y")
	c.did("answer t1.q1", `"approve":true`)
	c.when("answered", func(st state) bool { return !st.Asking })
	m.Update(wakeMsg{})
	if got := m.ed.String(); got != "and y" {
		t.Errorf("the editor holds %q", got)
	}
}

func TestRowsWhileItWorks(t *testing.T) {
	d := newDesk(t)
	m, c, _ := screened(t, d)
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	for _, w := range []string{"one", "two", "three", "four", "five", "six", "seven"} {
		d.emit("t1", "input.queued", `"input":%q,"text":"%s \u001b[2J and a line that is much longer than the screen","by":"api"`, w, w)
	}
	c.when("queued", func(st state) bool { return len(st.Queue) == 7 && !st.Busy })
	got := m.seen()
	for _, want := range []string{"queued 1: one", "queued 5: five", "and 2 more", "working; Esc stops it"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for line := range strings.SplitSeq(got, "\n") {
		if row(line).columns() >= 40 || strings.Contains(line, "\x1b") {
			t.Errorf("row %q", line)
		}
	}
	m.types(t, "esc")
	c.did("cancel t1")
}

func TestTabOffersAndKeysBehindItWait(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "/mod")
	if got := m.seen(); !strings.Contains(got, "/mode ") || !strings.Contains(got, "/model") {
		t.Errorf("offered:\n%s", got)
	}
	m.types(t, "tab")
	if m.ed.String() != "/mode " {
		t.Errorf("after Tab: %q\n%s", m.ed.String(), m.seen())
	}
	m.types(t, "esc")
	m.ed.set("/rewi")
	_, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	m.types(t, "~", "2") // faster than what Tab looks for
	if m.ed.String() != "/rewi" {
		t.Errorf("they did not wait: %q", m.ed.String())
	}
	m.Update(cmd())
	if m.ed.String() != "/rewind ~2" {
		t.Errorf("it is %q", m.ed.String())
	}
	m.crew.Close()
	if _, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyTab}); cmd != nil && cmd() != nil {
		t.Error("something was begun after the end")
	}
}

// A line that was refused never comes back by itself; Up brings it back, whatever it was.
func TestUpBringsARefusedLineBack(t *testing.T) {
	for _, line := range []string{"hello", "/nonsense", " /not kept in the file", "/steer later"} {
		d := newDesk(t)
		m, c, pass := typist(t, d)
		d.refuses(errNotNow)
		m.types(t, line, "enter")
		c.when("refused", func(st state) bool { return !st.Busy && c.failure() != nil })
		for range 3 {
			pass(time.Minute)
			m.Update(sizeMsg{})
		}
		if !m.ed.empty() {
			t.Errorf("%q came back by itself: %q", line, m.ed.String())
		}
		m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
		if got := m.ed.String(); got != line {
			t.Errorf("Up gives %q, want %q", got, line)
		}
	}
}

// Lines are printed once and whole; what is drawn below is taken away first.
func TestPainting(t *testing.T) {
	var out bytes.Buffer
	p := painter{w: &out}
	p.draw("", rows{list: []row{"one", "two"}, y: 1, x: 3}, 40)
	out.Reset()
	p.draw("", rows{list: []row{"one", "two"}, y: 1, x: 3}, 40)
	if out.Len() > 0 {
		t.Errorf("nothing changed, and it drew %q", out.String())
	}
	p.draw("printed\n", rows{list: []row{"one"}, y: 0, x: 0}, 40)
	if want := "\x1b[?2026h\x1b[?25l\x1b[1A\r\x1b[K\x1b[B\x1b[J\x1b[Aprinted\r\none\r\x1b[?25h\x1b[?2026l"; out.String() != want {
		t.Errorf("it drew %q, want %q", out.String(), want)
	}
	out.Reset()
	p.draw("", rows{list: []row{row(strings.Repeat("x", 39)), "y"}, y: 1, x: 1}, 40)
	out.Reset()
	p.draw("", rows{list: []row{"z"}}, 20) // the terminal has wrapped the first row
	if !strings.Contains(out.String(), "\x1b[2A\r\x1b[J") {
		t.Errorf("it drew %q", out.String())
	}
	out.Reset()
	p.leave(20)
	if out.String() != "\r\x1b[K" {
		t.Errorf("leaving it wrote %q", out.String())
	}
}

func TestScroll(t *testing.T) {
	s := newScroll()
	write := func(text string) {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntw")
	s.block("a block\nof two")
	write("o\ncount 3")
	write("\r       \rcount 2")
	if above, tail := s.take(); above != "one\na block\nof two\ntwo\n" || tail != "count 2" {
		t.Errorf("above %q, tail %q", above, tail)
	}
	var out bytes.Buffer
	s.through(&out)
	s.block("last")
	s.block("")
	if out.String() != "count 2\nlast\n" {
		t.Errorf("written through: %q", out.String())
	}
	if got := hard("\x1b[2mabcdef\x1b[0m", 5); len(got) != 2 || got[0].columns() != 4 || !strings.HasSuffix(string(got[0]), "\x1b[0m") {
		t.Errorf("broken into %q", got)
	}
	if got := cut(term.Style{}, view.Dim, "  a\nb\x1b[2J "+strings.Repeat("日", 20), 20); got.columns() >= 20 || strings.ContainsAny(string(got), "\n\x1b") {
		t.Errorf("cut to %q", got)
	}
}
