package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
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
	x.until("harmless", "exit code 3, goes along with your next words", "1 output goes along")
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

// Without a model the chat leads through setting one up. Nothing is sent unasked.
func TestChatSetsAModelUp(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	x := s.onTerminal("chat")
	x.expect("1. anthropic")
	x.expect("a number (q goes on without) > ")
	x.press("\n")
	x.expect("Enter alone is not an answer")
	x.press("1\n")
	x.expect("key for anthropic (not shown): ")
	x.press("sk-ant-0123456789abcdef\n")
	x.expect("the key for anthropic is kept in ")
	x.expect("try the key? it costs less than a cent (y, or anything else) > ")
	x.press("no\n")
	x.expect("of anthropic at api.anthropic.com; key from") // where it is may be on the next row
	x.expect("Ctrl-D leaves")
	x.until("›")
	x.press("/status\r")
	x.until("key from")
	x.empty()
	x.press("\x04")
	end := x.exits(failure.ExitDone)
	x.left()
	if strings.Contains(end, "sk-ant") {
		t.Errorf("the key is shown:\n%s", end)
	}
	if items := s.list(); len(items) != 0 {
		t.Errorf("it began tasks: %+v", items)
	}
}

// What a chat cannot do is refused with the reason; `roost run` can.
func TestChatRefusesFlags(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, args := range [][]string{{"--detach"}, {"--output", "json"}, {"--stream"}, {"--task", "a1"}} {
		r := s.roost(append([]string{"chat"}, args...)...)
		if r.code != failure.ExitUsage || !strings.Contains(r.err, "roost chat "+args[0]) || !strings.Contains(r.err, "try: roost ") {
			t.Errorf("%s: exit %d\n%s", args[0], r.code, r.err)
		}
	}
}
