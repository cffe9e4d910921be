package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// A purge is confirmed with a whole yes, and nothing else is one.
func TestPurgeOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.roost("run", "--yes", "--provider", "script", "--model", s.script(finish("ok")), "-C", s.ws, "paint \x1b[2J the fence")
	id := s.list()[0].ID
	folder := filepath.Join(s.root, "trash", id)
	if screen := s.onTerminal("delete", id).exits(failure.ExitDone); !strings.Contains(screen, "roost trash restore "+id) || strings.Contains(screen, "\x1b[2J") {
		t.Errorf(`got %q, want strings.Contains(screen, "roost trash restore "+id) and not strings.Contains(screen, "\x1b[2J")`,
			screen)
	}
	for _, answer := range []string{"\n", "y\n", "no\n", "YES\n", "\x04"} {
		x := s.onTerminal("trash", "purge", id)
		x.expect("remove 1 task for good?")
		x.press(answer)
		screen := x.exits(failure.ExitCancelled)
		if _, err := os.Stat(folder); err != nil || !strings.Contains(screen, "nothing was removed") || strings.Contains(screen, "\x1b[2J") {
			t.Fatalf("%q: got %v\n%s, want no error and strings.Contains(screen, \"nothing was removed\") and not strings.Contains(screen, \"\\x1b[2J\")",
				answer, err, screen)
		}
	}
	s.onTerminal("trash", "purge", id, "--no-input").exits(failure.ExitInput)
	x := s.onTerminal("trash", "purge", "--all")
	x.expect("remove 1 task for good?")
	x.press("yes\n")
	x.exits(failure.ExitDone)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Error("it is still there: ", err)
	}
}

// A task that runs is not deleted, nor filed: the run goes on.
func TestOrganisingARunningTask(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	b, _ := s.busy("")
	id := s.list()[0].ID
	for _, args := range [][]string{{"delete", id}, {"rename", id, "x"}, {"tag", id, "+x"}, {"pin", id}} {
		if r := s.roost(args...); r.code != failure.ExitBusy || !strings.Contains(r.err, "A run works on the task") {
			t.Errorf("%v: got exit %d, want %d and that a run works on it\n%s", args, r.code, failure.ExitBusy, r.err)
		}
	}
	if got := s.task(id); got.Status != "running" || got.Pinned || len(got.Tags) > 0 {
		t.Errorf("got %+v, want got.Status = \"running\" and not got.Pinned and len(got.Tags) <= 0", got)
	}
	must(t, b.cmd.Process.Signal(os.Interrupt))
	_ = b.cmd.Wait()
	if r := s.roost("delete", id); r.code != failure.ExitDone {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}

func TestCompletionsOfTheTrash(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("alpha-1", "paint\tthe fence", 1776200000000)
	s.foreign("beta", "mow", 1776100000000)
	if r := s.roost("delete", "alpha-1"); r.code != failure.ExitDone {
		t.Fatal(r.err)
	}
	for _, command := range []string{"restore", "purge"} {
		got, directive := s.complete("trash", command, "")
		if len(got) != 1 || !strings.HasSuffix(got[0], ":alpha-1\tpaint the fence") || directive != inOrder {
			t.Errorf("%s: got %q %s, want len(got) = 1 and strings.HasSuffix(got[0], \":alpha-1\\tpaint the fence\") and directive = inOrder",
				command, got, directive)
		}
	}
	for _, command := range []string{"tag", "rename", "pin", "delete"} {
		if got, _ := s.complete(command, ""); !slices.Equal(got, []string{"beta\tmow"}) {
			t.Errorf("%s: got %q, want slices.Equal(got, []string{\"beta\\tmow\"})", command, got)
		}
	}
}
