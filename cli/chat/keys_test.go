package chat

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
)

func TestSearchingTheHistory(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	for _, text := range []string{"fix the fence", "paint the shed", "paint the fence"} {
		if err := m.ed.history.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	m.ed.clear()
	m.types(t, "a draft", "ctrl+r")
	for _, tt := range []struct{ key, text, prompt string }{
		{"p", "paint the fence", "(search: p) "},
		{"a", "paint the fence", "(search: pa) "},
		{"ctrl+r", "paint the shed", "(search: pa) "},
		{"ctrl+r", "paint the shed", "no older line contains that"},
		{"backspace", "paint the fence", "(search: p) "},
		{"zz", "a draft", "no older line"},
		{"backspace", "a draft", ""},
		{"backspace", "paint the fence", "(search: p) "},
	} {
		if m.types(t, tt.key); m.ed.String() != tt.text || !strings.Contains(m.seen(), tt.prompt) {
			t.Errorf("after %s: %q\n%s", tt.key, m.ed.String(), m.seen())
		}
	}
	m.types(t, "esc")
	if m.ed.String() != "a draft" || strings.Contains(m.seen(), "search") {
		t.Errorf("Esc gives %q", m.ed.String())
	}
	m.types(t, "ctrl+r", "shed", "enter", "!")
	if m.ed.String() != "paint the shed!" {
		t.Errorf("what was found can be edited: %q", m.ed.String())
	}
	m.types(t, "ctrl+r", "fix", "left", "?")
	if m.ed.String() != "fix the fenc?e" {
		t.Errorf("a key that edits ends the search: %q", m.ed.String())
	}
	m.types(t, "ctrl+r", "shed", "ctrl+g")
	if m.ed.String() != "fix the fenc?e" || m.away {
		t.Errorf("Ctrl-G in a search ends it: %q", m.ed.String())
	}
}

// What is searched for is a person's text, too: none of it drives the terminal.
func TestASearchIsHarmless(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "ctrl+r", "\x1b[2Jx\u202e")
	if got := m.seen(); strings.ContainsAny(got, "\x1b\u202e") || !strings.Contains(got, "(search: x)") {
		t.Errorf("the rows are %q", got)
	}
}

func TestAPasteStaysWhole(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "see: ")
	m.Update(tea.PasteMsg{Content: "one\r\ntwo\x1b[31m\tx\r/quit\r"})
	if got := m.ed.String(); got != "see: one\ntwo    x\n/quit\n" {
		t.Errorf("the editor holds %q", got)
	}
	if m.s.state().Busy || m.s.state().Over {
		t.Error("a paste was sent")
	}
	long := strings.Repeat("a line 日本語 of words\n", 5000)
	m.Update(tea.PasteMsg{Content: long})
	if !strings.HasSuffix(m.ed.String(), long) {
		t.Error("a long paste is cut")
	}
	if rows := strings.Count(m.seen(), "\n") + 1; rows > 12 {
		t.Errorf("%d rows on a screen of 12", rows)
	}
}

func TestMoreLinesBeforeTheyAreSent(t *testing.T) {
	d := newDesk(t)
	m, c, _ := screened(t, d)
	m.types(t, "one \\", "enter", "two", "enter")
	c.did("start one \ntwo ")
	c.when("begun", func(st state) bool { return !st.Busy })
	m.types(t, "```", "enter", "code \\", "enter", "```", "enter")
	c.did("send t1", "```\\ncode \\\\\\n```")
	m.types(t, "   ", "enter")
	if !m.ed.empty() {
		t.Errorf("blanks stay: %q", m.ed.String())
	}
}

func TestTheScreenIsGivenBackAndTakenAgain(t *testing.T) {
	m, c, out := screened(t, newDesk(t))
	raw := true
	m.cook, m.raw = func() { raw = false }, func() error { raw = true; return nil }
	m.types(t, "words")
	out.Reset()
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'z', Mod: tea.ModCtrl}); cmd == nil || raw {
		t.Fatal("Ctrl-Z does not give the terminal back")
	}
	if strings.Contains(out.String(), "words") {
		t.Errorf("it draws on a terminal that is the shell's: %q", out.String())
	}
	c.out.block("meanwhile")
	m.Update(wakeMsg{})
	if strings.Contains(out.String(), "meanwhile") {
		t.Error("it prints while it is stopped")
	}
	m.Update(tea.ResumeMsg{})
	if !raw || !strings.Contains(out.String(), "meanwhile") || !strings.Contains(out.String(), "› words") {
		t.Errorf("behind fg it shows %q", out.String())
	}
	m.raw = func() error { return errors.New("no terminal") }
	if _, cmd := m.Update(tea.ResumeMsg{}); cmd == nil || m.failed == nil {
		t.Error("it goes on without a terminal")
	}
}

func TestCtrlLDrawsAnew(t *testing.T) {
	m, _, out := screened(t, newDesk(t))
	m.types(t, "words")
	out.Reset()
	m.types(t, "ctrl+l")
	if got := out.String(); !strings.HasPrefix(got, "\x1b[2J\x1b[H") || !strings.Contains(got, "› words") {
		t.Errorf("it drew %q", got)
	}
}

// A mistake of ours ends the screen as any other end does: the reader of the terminal is
// not left behind.
func TestAPanicEndsTheScreen(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	var failed any
	g := &term.Guard{Screen: m, Failed: func(what any) { failed = what }}
	if g.Init() == nil {
		t.Error("nobody looks at the size")
	}
	m.size = func() (int, int) { panic("no size") }
	_, cmd := g.Update(sizeMsg{})
	if _, quits := cmd().(tea.QuitMsg); !quits || failed != "no size" {
		t.Errorf("failed is %v", failed)
	}
	m, _, _ = screened(t, newDesk(t))
	g = &term.Guard{Screen: m, Failed: func(what any) { failed = what }}
	got := m.crew.Do(func() tea.Msg { panic("no words") })()
	if _, cmd := g.Update(got); cmd == nil || failed != "no words" {
		t.Error("it goes on behind a command's panic")
	}
}

// An arrow that a slow line tears apart stops no run; an Esc with nothing behind it does.
func TestAnArrowInPiecesIsNoEsc(t *testing.T) {
	d := newDesk(t)
	m, c, out := screened(t, d)
	g := &term.Guard{Screen: m, Failed: func(what any) { t.Errorf("it fails: %v", what) }}
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	esc := tea.KeyPressMsg{Code: tea.KeyEscape}
	g.Update(esc)
	g.Update(tea.KeyPressMsg{Code: '[', Text: "["})
	g.Update(tea.KeyPressMsg{Code: 'A', Text: "A"})
	if got := m.ed.String(); got != "begin" {
		t.Errorf("Up in pieces gives %q, want the line before", got)
	}
	if got := out.String(); strings.Contains(got, "stopping") {
		t.Errorf("Up in pieces stops the run:\n%s", got)
	}
	_, cmd := g.Update(esc)
	g.Update(cmd()) // nothing comes behind it
	if got := out.String(); !strings.Contains(got, "stopping and saving") {
		t.Errorf("Esc does not stop it:\n%s", got)
	}
	c.did("cancel t1")
}

// The size of a terminal that nobody tells about is looked at again and again.
func TestANewSizeIsDrawnFor(t *testing.T) {
	m, _, out := screened(t, newDesk(t))
	m.types(t, strings.Repeat("word ", 6))
	wide := 40
	m.size = func() (int, int) { return wide, 12 }
	m.Update(sizeMsg{})
	out.Reset()
	if m.Update(sizeMsg{}); out.Len() > 0 {
		t.Errorf("nothing changed, and it drew %q", out.String())
	}
	wide = 16
	_, cmd := m.Update(sizeMsg{})
	if cmd == nil {
		t.Error("nobody looks again")
	}
	for line := range strings.SplitSeq(out.String(), "\r\n") {
		if row(line).columns() >= 16 {
			t.Errorf("row %q on a screen of 16", line)
		}
	}
}

// Keys that are no text put nothing in.
func TestKeysWithoutText(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	for _, k := range []tea.KeyPressMsg{{Code: tea.KeyF5}, {Code: tea.KeyPgUp}, {Code: 'x', Mod: tea.ModAlt}, {Code: tea.KeyTab, Mod: tea.ModCtrl}} {
		m.Update(k)
	}
	if !m.ed.empty() {
		t.Errorf("they put in %q", m.ed.String())
	}
}

func TestOffersGoAway(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "@")
	if !strings.Contains(m.seen(), "main_test.go") {
		t.Fatalf("offered:\n%s", m.seen())
	}
	m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
	if !strings.Contains(m.seen(), `> @/my\ file`) || m.s.state().Policy != "ask" {
		t.Errorf("Up goes to the last:\n%s", m.seen())
	}
	m.types(t, " ", "x")
	if strings.Contains(m.seen(), "main_test.go") {
		t.Errorf("behind other keys it still offers\n%s", m.seen())
	}
	m.types(t, "ctrl+c", "zzz", "tab")
	if m.looking {
		t.Error("it looks for what nobody can complete")
	}
	m.ed.set("#9")
	m.types(t, "tab")
	if !strings.Contains(m.seen(), "no completion fits that") {
		t.Errorf("it says nothing:\n%s", m.seen())
	}
}

// Esc and Ctrl-C do not wait for what Tab looks for; what it finds then is too late.
func TestEscDoesNotWaitForTab(t *testing.T) {
	d := newDesk(t)
	m, c, _ := screened(t, d)
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	m.ed.set("/rewi")
	_, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	m.types(t, "x", "esc")
	c.did("cancel t1")
	m.Update(cmd())
	if m.ed.String() != "/rewi" {
		t.Errorf("it is %q", m.ed.String())
	}
}

func TestCtrlCSaysWhatStopsARun(t *testing.T) {
	d := newDesk(t)
	m, c, _ := screened(t, d)
	now := time.Now()
	m.now = func() time.Time { return now }
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	if m.types(t, "ctrl+c") || !strings.Contains(m.seen(), "Ctrl-C again leaves; Esc stops") {
		t.Errorf("it says\n%s", m.seen())
	}
	for _, call := range d.all() {
		if strings.HasPrefix(call, "cancel") {
			t.Error("one Ctrl-C stops the run")
		}
	}
}

func TestRowsOfACommandAndOfOutputs(t *testing.T) {
	d := newDesk(t)
	d.says["!wait"] = Said{Code: -1}
	d.says["!ls"] = Said{Out: "a\n"}
	m, c, out := screened(t, d)
	c.o.New.Workspace = "/w"
	m.types(t, "!wait", "enter")
	c.when("at the command", func(st state) bool { return st.Command })
	if got := m.seen(); !strings.Contains(got, "· your command runs; Esc stops it") {
		t.Errorf("the rows are\n%s", got)
	}
	m.types(t, "esc")
	c.when("stopped", func(st state) bool { return !st.Busy })
	if got := m.seen(); !strings.Contains(got, "· 1 output goes along with your next") {
		t.Errorf("the rows are\n%s", got)
	}
	m.types(t, "!ls", "enter")
	c.did("shell /w ls")
	c.when("done", func(st state) bool { return !st.Busy })
	if got := m.seen(); !strings.Contains(got, "· 2 outputs go along with your next") {
		t.Errorf("the rows are\n%s", got)
	}
	m.Update(wakeMsg{})
	if !strings.Contains(out.String(), "› !ls") {
		t.Errorf("it shows %q", out.String())
	}
}
