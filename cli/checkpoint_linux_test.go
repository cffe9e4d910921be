package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// edited makes a task that wrote two files, one named as a model may name it, and gives
// its id.
func (s *sandbox) edited() string {
	s.t.Helper()
	r := s.roost("run", "--yes", "--provider", "script", "-C", s.ws, "--model", s.script(`
- text: I write.
  tools:
    - name: write_to_file
      input: {path: a.txt, content: "one\n"}
    - name: execute_command
      input: {command: "touch \"$(printf 'x\\033[2Jy')\""}
`+finish("done")), "write")
	if r.code != failure.ExitDone {
		s.t.Fatal(r.err)
	}
	return s.list()[0].ID
}

// On a terminal a restore is shown and asked for, and Enter is no yes.
func TestRestoreOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	id := s.edited()
	path := filepath.Join(s.ws, "a.txt")
	for want, args := range map[string][]string{
		"\x1b[1mc1\x1b[0m  ":         {"checkpoint", id},
		"\x1b[32m+\x1b[0m":           {"checkpoint", "diff", id, "0", "now", "--stat"},
		"\x1b[31mdeleted \x1b[0m  a": {"checkpoint", "restore", id, "0", "--dry-run"},
	} {
		if screen := s.onTerminal(args...).exits(failure.ExitDone); !strings.Contains(screen, want) || strings.Contains(screen, "\x1b[2J") {
			t.Errorf("%q: got %q, want the colours of %q, and no sequence of a file's name", args, screen, want)
		}
	}
	for _, answer := range []string{"\n", "n\n", "yep\n", "\x04"} {
		x := s.onTerminal("checkpoint", "restore", id, "0")
		x.expect("put 2 files back?")
		x.press(answer)
		screen := x.exits(failure.ExitCancelled)
		if _, err := os.Stat(path); err != nil || !strings.Contains(screen, "nothing was changed") || !strings.Contains(screen, "deleted") || strings.Contains(screen, "\x1b[2J") {
			t.Fatalf("%q: got %v\n%s, want no error and strings.Contains(screen, \"nothing was changed\") and strings.Contains(screen, \"deleted\") and not strings.Contains(screen, \"\\x1b[2J\")",
				answer, err, screen)
		}
	}
	x := s.onTerminal("checkpoint", "restore", id, "0")
	x.expect("put 2 files back?")
	x.press("y\n")
	if screen := x.exits(failure.ExitDone); !strings.Contains(screen, "roost undo "+id) {
		t.Errorf("got %q, want strings.Contains(screen, \"roost undo \"+id)", screen)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the file is still there: ", err)
	}
	s.onTerminal("undo", id).exits(failure.ExitDone)
	x = s.onTerminal("rewind", id, "--to", "~2", "--files")
	x.expect("put 2 files back?")
	x.press("\n")
	x.exits(failure.ExitCancelled)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	s.onTerminal("rewind", id, "--to", "~2", "--files", "--yes").exits(failure.ExitDone)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the file is still there: ", err)
	}
}

// What somebody does while the person reads the preview is not overrun.
func TestRestoreOfWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	id := s.edited()
	x := s.onTerminal("checkpoint", "restore", id, "0")
	x.expect("put 2 files back?")
	if err := os.WriteFile(filepath.Join(s.ws, "a.txt"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.press("y\n")
	if screen := x.exits(failure.ExitBusy); !strings.Contains(screen, "nothing was changed") {
		t.Errorf("got %q, want strings.Contains(screen, \"nothing was changed\")", screen)
	}
	if text, err := os.ReadFile(filepath.Join(s.ws, "a.txt")); err != nil || string(text) != "mine\n" {
		t.Errorf("got %q, %v, want no error and string(text) = \"mine\\n\"", text, err)
	}
}

// Checkpoints complete behind a task, the newest first, with what they are of.
func TestCheckpointCompletion(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	id := s.edited()
	got, directive := s.complete("checkpoint", "restore", id, "")
	if len(got) != 3 || !strings.HasPrefix(got[0], "c3\t") || got[2] != "c1\tbefore a.txt" || directive != inOrder {
		t.Errorf(`got %q %s, want len(got) = 3 and strings.HasPrefix(got[0], "c3\t") and got[2] = "c1\tbefore a.txt" and directive = inOrder`,
			got, directive)
	}
	if strings.Contains(strings.Join(got, ""), "\x1b") {
		t.Errorf("a model's name gets into the shell raw: %q", got)
	}
	if got, _ := s.complete("checkpoint", "diff", id, "c1", ""); len(got) != 4 || got[3] != "now" {
		t.Errorf("got %q, want len(got) = 4 and got[3] = \"now\"", got)
	}
	if got, _ := s.complete("checkpoint", "restore", "1234", ""); len(got) != 0 {
		t.Errorf("of a task that is none: %q", got)
	}
	if got, _ := s.complete("checkpoint", "list", ""); len(got) != 1 || !strings.HasPrefix(got[0], id) {
		t.Errorf("got %q, want len(got) = 1 and strings.HasPrefix(got[0], id)", got)
	}
}
