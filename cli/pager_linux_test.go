package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// longTask is a task of more lines than a terminal has.
func longTask(t *testing.T, s *sandbox) {
	t.Helper()
	s.foreign("long", "begin", 1776100000000)
	var rows []string
	for i := range 700 {
		rows = append(rows, fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"message %d."}`, 1776100000000+i, i+1))
	}
	must(t, os.WriteFile(filepath.Join(s.store, "tasks", "long", "ui_messages.json"), []byte("["+strings.Join(rows, ",")+"]"), 0o600))
}

func TestPagerOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	longTask(t, s)
	kept := filepath.Join(s.dir, "kept")
	s.env("NO_PAGER=", "PAGER=sed 's/^/| /' | tee "+kept)
	screen := s.onTerminal("show", "long").exits(failure.ExitDone)
	above := strings.Index(screen, "200 messages above: roost show long --all")
	if !strings.Contains(screen, "message 700.") || !strings.Contains(screen, "| ") || above < 0 || above > strings.Index(screen, "message 201.") {
		t.Errorf("not through the pager, or not told first how many are above:\n%s", screen)
	}
	screen = s.onTerminal("show", "long", "--at", "20").exits(failure.ExitDone)
	if !strings.Contains(screen, "▶ #20 ") || !strings.Contains(screen, "message 1.") || !strings.Contains(screen, "message 519.") ||
		!strings.Contains(screen, "181 messages below") {
		t.Errorf("not what is around message 20:\n%s", screen)
	}
	must(t, os.Remove(kept))
	for _, args := range [][]string{{"show", "long", "--json"}, {"--no-input", "show", "long"}} {
		if screen := s.onTerminal(args...).exits(failure.ExitDone); strings.Contains(screen, "| ") {
			t.Errorf("%v goes through the pager", args)
		}
	}
	if r := s.roost("show", "long"); r.code != failure.ExitDone || strings.Contains(r.out, "| ") {
		t.Errorf("a pipe gets a pager: %d %.200s", r.code, r.out)
	}
	s.env("NO_PAGER=1")
	if screen := s.onTerminal("show", "long").exits(failure.ExitDone); strings.Contains(screen, "| ") {
		t.Error("NO_PAGER has no effect")
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("the pager ran")
	}
}

// Who leaves the pager has seen enough; a pager that fails is told, one that is not there is gone without.
func TestPagerThatEnds(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	longTask(t, s)
	s.env("NO_PAGER=", "PAGER=head -2")
	if screen := s.onTerminal("show", "long", "--tail", "0", "-v").exits(failure.ExitDone); !strings.Contains(screen, "message 1.") || strings.Contains(screen, "message 100.") {
		t.Errorf("left early:\n%s", screen)
	}
	s.env("PAGER=cat >/dev/null; exit 3")
	if screen := s.onTerminal("show", "long").exits(failure.ExitFailed); !strings.Contains(screen, "NO_PAGER=1") {
		t.Errorf("a pager that fails:\n%s", screen)
	}
	// Ctrl-C is for roost, too, and ends the shell of the pager when the pager ends.
	s.env("PAGER=cat >/dev/null; kill -INT $PPID; sleep 0.2; kill -INT $$")
	if screen := s.onTerminal("show", "long").exits(failure.ExitDone); strings.Contains(screen, "roost:") {
		t.Errorf("Ctrl-C in the pager is told as an error:\n%s", screen)
	}
	s.env("PAGER=nosuchpager")
	screen := s.onTerminal("show", "long", "--tail", "2").exits(failure.ExitDone)
	if !strings.Contains(screen, "NO_PAGER=1") || strings.Count(screen, "message 700.") != 1 || strings.Count(screen, "698 messages above: roost show") != 1 {
		t.Errorf("a pager that is not there is told, and what was asked for is shown all the same, once:\n%s", screen)
	}
	s.env("PAGER=cat")
	if screen := s.onTerminal("show", "long").exits(failure.ExitDone); !strings.Contains(screen, "message 700.") {
		t.Error("cat is no pager")
	}
}

// less as it comes: it leaves by itself when all fits, else with q.
func TestLess(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	if _, err := os.Stat("/usr/bin/less"); err != nil {
		t.Skip("no less here")
	}
	longTask(t, s)
	s.env("NO_PAGER=", "PAGER=", "LESS=")
	s.onTerminal("show", "long", "--tail", "1", "--ui").exits(failure.ExitDone)
	x := s.onTerminal("show", "long", "--tail", "0", "--ui")
	x.expect("message 700.")
	x.press("q")
	if screen := x.exits(failure.ExitDone); strings.Contains(screen, "message 200.") {
		t.Error("all of it was printed")
	}
}
