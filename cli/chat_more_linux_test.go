package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command of the person's own, an editor of theirs, and the key for the policy, as a
// person uses them: the model gets what was written and what was printed.
func TestChatWithTheShellAndTheEditor(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	editor := filepath.Join(s.dir, "my editor")
	must(t, os.WriteFile(editor, []byte("#!/bin/sh\n[ \"$(cat \"$2\")\" = draft ] && printf 'from the\\neditor' > \"$2\"\n"), 0o700))
	s.env("VISUAL='"+editor+"' --wait", "EDITOR=false")
	model := s.script("- expect: [\"from the\\neditor\", \"$ printf\", \"harmless\", \"(exit code 3)\"]\n" +
		"  tools: [{name: write_to_file, input: {path: note.txt, content: \"one\\n\"}}]\n" + finish("got it"))
	x := s.chats("--provider", "script", "--model", model)
	x.press("!printf 'harm\\033[2Jless\\n'; exit 3\r")
	x.until("harmless", "exit code 3, goes along with your next words", "one output goes along")
	x.press("draft\x07")
	x.until("› from the\n  editor")
	x.press("\x1b[Z\x1b[Z")
	x.until("unasked: edits")
	x.press("\r")
	x.until("got it", "completed", "!Which", "!output goes along with your next words\n›")
	if data, err := os.ReadFile(filepath.Join(s.ws, "note.txt")); err != nil || string(data) != "one\n" {
		t.Errorf("note.txt: %q, %v", data, err) // written unasked
	}
	x.quits()
	x.left()
}

// What the process says beside the chat is no part of the drawn rows.
func TestAVoiceIsHeardWhereItBelongs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var said []string
	v := &chatOutput{out: &out}
	a := &App{Err: v}
	a.say("before")
	v.through(func(text string) { said = append(said, text) })
	a.say("the server is lost")
	a.warn("and \x1b[2J more")
	a.stopping()
	v.through(nil)
	a.say("behind")
	if out.String() != "before\nbehind\n" {
		t.Errorf("beside the chat: %q", out.String())
	}
	if got := strings.Join(said, ""); len(said) != 3 || !strings.Contains(got, "the server is lost") || !strings.Contains(got, "stopping and saving") {
		t.Errorf("in the chat: %q", said)
	}
}

// Ctrl-C in an editor is the editor's; what ends programs ends the chat all the same.
func TestCtrlCInAnEditorStopsNothing(t *testing.T) {
	t.Parallel()
	s := newStopper(t.Context(), func() {})
	back := s.releaseInterrupt()
	if got := s.take(ExitInterrupt); got != doNothing || s.ctx.Err() != nil {
		t.Errorf("Ctrl-C does %v, %v", got, s.ctx.Err())
	}
	back()
	if got := s.take(ExitInterrupt); got != stopAll || s.ctx.Err() == nil {
		t.Errorf("behind the editor Ctrl-C does %v", got)
	}
	s = newStopper(t.Context(), func() {})
	s.releaseInterrupt()
	if got := s.take(ExitTerminated); got != stopAll || s.ctx.Err() == nil {
		t.Errorf("SIGTERM does %v", got)
	}
}
