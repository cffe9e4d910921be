package chat

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	display "github.com/roost-dev/roost/cli/term"
)

// writes is a composer with an editor of a shell's line; "$1" is the file.
func writes(t *testing.T, text, line string) (*composer, *[]string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no screen on Windows")
	}
	t.Setenv("TMPDIR", t.TempDir())
	script := filepath.Join(t.TempDir(), "my editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+line+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var said []string
	note := func(what string) func() { return func() { said = append(said, what) } }
	return &composer{
		ctx: t.Context(), editor: "'" + script + "'", in: strings.NewReader(""), out: &bytes.Buffer{}, text: text, before: note("before"), after: note("after"),
	}, &said
}

func TestTheEditorGetsTheWordsAndGivesOthers(t *testing.T) {
	c, said := writes(t, "begun", `stat -c '%a' "$1" "$(dirname "$1")"; cat "$1"; printf ' and done \n\n' >> "$1"; touch "$1~"`)
	if runtime.GOOS == "darwin" {
		t.Skip("stat has other flags")
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if c.text != "begun and done" {
		t.Errorf("it wrote %q", c.text)
	}
	if got := c.out.(*bytes.Buffer).String(); got != "600\n700\nbegun" {
		t.Errorf("the file: %q", got)
	}
	if strings.Join(*said, " ") != "before after" {
		t.Errorf("the terminal was given %v", *said)
	}
	empty(t)
}

// empty: no file is left behind.
func empty(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// An editor with arguments is one of the shell's words, as for git.
func TestAnEditorWithArguments(t *testing.T) {
	c, _ := writes(t, "", `echo "$1 $2 $WORDS" > "$3"`)
	c.editor = "WORDS=more " + c.editor + " --wait 'a b'"
	if err := c.Run(); err != nil || c.text != "--wait a b more" {
		t.Errorf("it wrote %q, %v", c.text, err)
	}
}

func TestAnEditorThatFailsChangesNothing(t *testing.T) {
	for line, why := range map[string]string{
		`echo other > "$1"; exit 1`:                  "exit status 1",
		`rm "$1"`:                                    "the editor removed the file",
		`rm "$1"; mkfifo "$1"`:                       "the editor removed the file",
		`head -c 5000000 /dev/zero > "$1"`:           "longer than 4 MB",
		`rm -r "$(dirname "$1")"`:                    "the editor removed the file",
		`kill -9 $$`:                                 "signal: killed",
		`echo x > "$1"; exec /nowhere/is/no/program`: "exit status",
	} {
		c, said := writes(t, "as it was", line)
		err := c.Run()
		if err == nil || !strings.Contains(err.Error(), why) || c.text != "as it was" {
			t.Errorf("%s: got %q, %v, want an error and strings.Contains(err.Error(), why) and c.text = \"as it was\"",
				line, c.text, err)
		}
		if len(*said) != 2 {
			t.Errorf("%s: the terminal was given %v", line, *said)
		}
		empty(t)
	}
}

// The end of the chat is the editor's.
func TestTheEndOfTheChatEndsTheEditor(t *testing.T) {
	c, _ := writes(t, "as it was", `trap 'exit 9' TERM; echo ready > "$TMPDIR/ready"; while :; do sleep 0.02; done`)
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx = ctx
	done := make(chan error, 1)
	go func() { done <- c.Run() }()
	within(t, "the editor runs", func() bool {
		_, err := os.Stat(filepath.Join(os.Getenv("TMPDIR"), "ready"))
		return err == nil
	})
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "exit status 9") {
		t.Errorf("it had no time to end: %v", err)
	}
}

func TestWhatIsWrittenStandsInTheEditorAndIsNotSent(t *testing.T) {
	d := newDesk(t)
	m, c, out := screened(t, d)
	cooked := 0
	m.cook, m.raw = func() { cooked++ }, func() error { cooked--; return nil }
	if m.types(t, "ctrl+g"); !strings.Contains(m.seen(), "set $VISUAL or $EDITOR") {
		t.Errorf("without an editor: %q", m.seen())
	}
	script := filepath.Join(t.TempDir(), "ed")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf 'one\\n\\ttwo\\033[2J\\n' > \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.o.Editor = script
	away := 0
	c.o.Away = func() func() { away++; return func() { away-- } }
	m.types(t, "a draft")
	out.Reset()
	_, cmd := m.Update(tea.KeyPressMsg{Code: 'g', Mod: tea.ModCtrl})
	if cmd == nil || !m.away {
		t.Fatal("no editor is begun")
	}
	c.out.block("said meanwhile")
	m.Update(wakeMsg{})
	if strings.Contains(out.String(), "said meanwhile") {
		t.Error("something was drawn while the editor has the terminal")
	}
	// bubbletea runs it; here the test does.
	co := &composer{ctx: t.Context(), editor: script, in: strings.NewReader(""), out: out, text: m.ed.String()}
	co.before = func() { m.cook() }
	co.after = func() { _ = m.raw() }
	err := co.Run()
	m.Update(composedMsg{text: co.text, err: err})
	if got := m.ed.String(); got != "one\n    two" {
		t.Errorf("the editor holds %q", got)
	}
	if !strings.Contains(out.String(), "said meanwhile") || cooked != 0 || away != 0 {
		t.Errorf("cooked %d, away %d, drawn %q", cooked, away, out.String())
	}
	for _, call := range d.all() {
		t.Errorf("it did %s", call)
	}
	m.types(t, "enter")
	c.did("start one\n    two")
}

func TestAQuestionThatComesWhileSomebodyWrites(t *testing.T) {
	d := newDesk(t)
	m, c, pass := typist(t, d)
	m.raw = func() error { return nil }
	m.types(t, "begin", "enter")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	m.away = true
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	m.Update(composedMsg{text: "y"})
	if got := m.ed.String(); got != "" || !strings.Contains(m.seen(), "a question came") {
		t.Errorf("the answer would be %q\n%s", got, m.seen())
	}
	pass(display.ArmAfter)
	m.types(t, "n", "no", "enter")
	c.did("answer t1.q1", `"approve":false`)
	d.emit("t1", "question.closed", `"question":"q1","by":"cli"`)
	c.when("answered", func(st state) bool { return !st.Asking })
	pass(typing)
	m.Update(wakeMsg{})
	if got := m.ed.String(); got != "y" {
		t.Errorf("the words are %q", got)
	}
	m.Update(composedMsg{text: "for it", asking: true})
	if !strings.Contains(m.seen(), "the question is answered") || m.ed.String() != "for it" {
		t.Errorf("words for a question that is gone:\n%s", m.seen())
	}
}

func TestTheTerminalIsGoneBehindTheEditor(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	if _, cmd := m.Update(composedMsg{gone: errors.New("no terminal")}); cmd == nil || m.failed == nil {
		t.Error("the chat goes on without one")
	}
	m, _, _ = screened(t, newDesk(t))
	m.ed.insert("a draft")
	m.Update(composedMsg{text: "other", err: errors.New("write in vi: exit status 1")})
	if m.ed.String() != "a draft" || !strings.Contains(m.seen(), "vi: exit status 1") {
		t.Errorf("behind a failure it is %q\n%s", m.ed.String(), m.seen())
	}
}
