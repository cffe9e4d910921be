package cli

import (
	"os"
	"path/filepath"
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
