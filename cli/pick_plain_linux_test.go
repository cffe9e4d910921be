package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

func TestPlainPicker(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.env("TERM=dumb")
	s.foreign("older", "tidy the shed", 1776100000000)
	s.foreign("newer", "paint \x1b[2J\x1b]0;owned\x07the fence", 1776200000000)
	s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script(finish("the shed is tidy")))
	s.foreign("hollow", "", 1)
	must(t, os.WriteFile(filepath.Join(s.store, "tasks", "hollow", "ui_messages.json"), nil, 0o600))
	must(t, os.Remove(filepath.Join(s.store, "tasks", "hollow", "api_conversation_history.json")))
	x := s.onTerminal()
	x.expect("    2  store-")
	x.expect(s.store)
	x.expect("1 empty")
	x.expect("2 tasks in 1 source")
	x.expect("1. ")
	x.expect("paint the fence")
	x.expect("2. ")
	x.expect("tidy the shed")
	x.expect("resume which (number, or q) > ")
	x.press("\n") // Enter chooses nothing
	x.expect("resume which")
	x.press("99\n")
	x.expect("resume which")
	x.press("2\n")
	x.expect("the shed is tidy")
	screen := x.exits(failure.ExitDone)
	for _, hostile := range []string{"\x1b[2J", "\x1b]0;", "\a"} {
		if strings.Contains(screen, hostile) {
			t.Errorf("%q reached the terminal", hostile)
		}
	}
	if got := s.task("older"); got.Status != "completed" {
		t.Errorf("the task that was picked is %s", got.Status)
	}
	if _, err := os.Stat(filepath.Join(s.root, "adopted")); err != nil {
		t.Errorf("the run has no journal: %v", err)
	}
}

func TestPlainPickerLeavesWithoutChoosing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.env("TERM=dumb")
	s.foreign("one", "tidy the shed", 1776100000000)
	x := s.onTerminal("resume")
	x.expect("resume which")
	x.press("q\n")
	x.expect("none was chosen")
	x.exits(failure.ExitCancelled)

	s.env("TERM=xterm", "ROOST_PLAIN=1")
	x = s.onTerminal("resume")
	x.expect("resume which")
	x.press("\x04") // the end of the input
	x.exits(failure.ExitCancelled)

	x = s.onTerminal("resume", "--no-input")
	x.expect("no task was named")
	x.exits(failure.ExitUsage)
}

// The picker's reading of the terminal does not eat the answer to the run's first
// question.
func TestAnswerAfterThePlainPicker(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.env("TERM=dumb")
	s.foreign("one", "paint the fence", 1776100000000)
	s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script(call("ask_followup_question", `{question: "Which colour?", follow_up: [{text: red, mode: null}]}`)+
		"- expect: [bright green]\n  tools: [{name: attempt_completion, input: {result: it is green}}]\n"))
	x := s.onTerminal("-q", "resume")
	x.expect("1. ")
	x.press("1\n")
	x.expect("Which colour?")
	x.press("bright green\n")
	x.expect("it is green")
	x.exits(failure.ExitDone)
}
