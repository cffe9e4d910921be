package cli

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

const richModel = `- text: |
    ## Plan

    I will **write** a note, and the words of this sentence are so many that they need a second row of the terminal.

    | file | why |
    |------|-----|
    | note.txt | because ` + "`it`" + ` is asked for |
  tools: [{name: write_to_file, input: {path: note.txt, content: "one\n"}}]
- tools: [{name: attempt_completion, input: {result: "The **note** is written."}}]
`

// A person sees Markdown as it is meant, wrapped at words, rows of calls apart from it, and what the run took.
func TestMarkdownOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	cmd := s.command("run", "--yes", "--provider", "script", "--model", s.script(richModel), "-C", s.ws, "go")
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "NO_COLOR=", "COLORFGBG=15;0")
	x := s.attach(cmd)
	raw := x.exits(failure.ExitDone)
	screen := x.Picture().Text()
	_, screen, _ = strings.Cut(screen, "tokens\n")
	screen, rest, _ := strings.Cut(screen, "completed · 2 turns · ")
	screen = callTook.ReplaceAllString(screen, "$1")
	const want = `
Plan

I will write a note, and the words of this sentence are so many that they need a second row of the
terminal.

file     │ why
─────────┼────────────────────────
note.txt │ because it is asked for

✓ write_to_file note.txt (+1 -0)
`
	if screen != want {
		t.Errorf("got\n%s\nwant\n%s", screen, want)
	}
	if !strings.Contains(rest, "\nThe note is written.\n") {
		t.Errorf("the result: got\n%s", rest)
	}
	if !strings.Contains(raw, "\x1b[1;38;5;117mPlan\x1b[0m") {
		t.Errorf("the heading has not the colour of the dark theme: %q", raw)
	}
}

// Where only plain text is wanted the words come as the model wrote them.
func TestPlainTextOnATerminal(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"TERM=dumb", "NO_COLOR=1"} {
		s := newSandbox(t)
		cmd := s.command("run", "--yes", "--provider", "script", "--model", s.script(richModel), "-C", s.ws, "go")
		cmd.Env = append(cmd.Env, "TERM=xterm-256color", env)
		screen := s.attach(cmd).exits(failure.ExitDone)
		for _, want := range []string{"\n## Plan\n\nI will **write** a note", "\n| note.txt | because `it` is asked for |\n", "\nThe **note** is written.\n"} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: got %q, want %q in it", env, screen, want)
			}
		}
		if strings.Contains(screen, "\x1b") {
			t.Errorf("%s: an escape sequence in %q", env, screen)
		}
	}
}
