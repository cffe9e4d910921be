package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/screen"
)

// terminal is a real pseudo terminal with roost on it, as a person sees it.
type terminal struct {
	*screen.Terminal
	t    *testing.T
	cmd  *exec.Cmd
	seen int // what expect has passed of the log
}

// onTerminal starts roost in a terminal of 100 columns.
func (s *sandbox) onTerminal(args ...string) *terminal {
	s.t.Helper()
	return s.attach(s.command(args...))
}

// inShell runs a command line of a shell in a terminal.
func (s *sandbox) inShell(line string) *terminal {
	s.t.Helper()
	cmd := s.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
	return s.attach(cmd)
}

func (s *sandbox) attach(cmd *exec.Cmd) *terminal {
	s.t.Helper()
	return s.attachAt(cmd, screen.Size{Columns: 100, Lines: 30})
}

func (s *sandbox) attachAt(cmd *exec.Cmd, size screen.Size) *terminal {
	s.t.Helper()
	x := screen.On(s.t, cmd, screen.Options{Size: size})
	return &terminal{Terminal: x, t: s.t, cmd: cmd}
}

// screen is all that was written so far.
func (x *terminal) screen() string { return strings.ReplaceAll(x.Log(), "\r\n", "\n") }

// expect waits until text appears behind what was expected before.
func (x *terminal) expect(text string) {
	x.t.Helper()
	x.when("the text "+text, func(string) bool {
		all := x.screen()
		i := strings.Index(all[x.seen:], text)
		if i >= 0 {
			x.seen += i + len(text)
		}
		return i >= 0
	})
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	must(x.t, x.Type(keys))
}

// exits waits for the end and gives everything that was shown.
func (x *terminal) exits(want int) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), screen.Limit)
	defer cancel()
	got, err := x.Exit(ctx)
	must(x.t, err)
	if got != want {
		x.t.Fatalf("exit code %d, want %d; the terminal shows:\n%s", got, want, x.screen())
	}
	return x.screen()
}

func TestBareRoostOnATerminalWithoutTasks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	x := s.onTerminal()
	x.until("Roost runs the tasks of coding agents and keeps them", "n   a new task in "+s.ws, "There is no task yet", "n new · ? keys · q quit")
	x.press("?")
	x.until("a new task in the current folder", "any key goes back")
	x.press("?q")
	x.exits(failure.ExitDone)
	x.left()
	s.env("TERM=dumb")
	x = s.onTerminal()
	x.expect("no tasks found; looked in:")
	x.expect(s.root)
	x.expect("roost try")
	x.exits(failure.ExitDone)
}

func TestBareRoostBeginsATask(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script("- expect: [water the roses]\n  text: the roses are watered\n"))
	x := s.onTerminal()
	x.until("There is no task yet")
	x.press("n")
	x.until("A new task in")
	x.press("water the roses\r")
	x.expect("the roses are watered")
	x.press("\x04")
	x.expect("all is saved")
	x.exits(failure.ExitDone)
	x.left()
	if items := s.list(); len(items) != 1 || items[0].Title != "water the roses" || items[0].Workspace != s.ws {
		t.Errorf("the new task is %+v", items)
	}
}

func TestApprovalOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("write_to_file", `{path: note.txt, content: "one\ntwo\n"}`) + finish("written"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "write it")
	x.expect("note.txt")
	x.expect("+one")
	x.expect("y once, a always")
	x.expect("q stop > ")
	x.press("\n")
	x.expect("Enter alone is not an answer")
	if _, err := os.Stat(filepath.Join(s.ws, "note.txt")); err == nil {
		t.Fatal("it was written before the yes")
	}
	x.expect("q stop > ")
	x.press("y")
	x.expect("written")
	x.exits(failure.ExitDone)
	if data, err := os.ReadFile(filepath.Join(s.ws, "note.txt")); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("note.txt: %q, %v", data, err)
	}
}

func TestStopAtAQuestionIsSaved(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("ask_followup_question", `{question: "Which colour?", follow_up: [{text: red, mode: null}]}`) + finish("it is red"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "paint")
	x.expect("Which colour?")
	x.expect("1. red")
	x.press("q\n")
	x.exits(failure.ExitCancelled)

	x = s.onTerminal("continue", "-C", s.ws)
	x.expect("Which colour?")
	x.press("1\n")
	x.expect("it is red")
	x.exits(failure.ExitDone)
}

func TestCtrlCStopsAndSaves(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("execute_command", `{command: "echo begun; sleep 60", cwd: null, timeout: null}`) + finish("done"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
	x.expect("$ echo begun; sleep 60")
	began := time.Now()
	x.press("\x03")
	x.expect("stopping and saving")
	x.expect("try: roost resume ")
	x.exits(failure.ExitInterrupt)
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	items := s.list()
	if len(items) != 1 || items[0].Status != "cancelled" && items[0].Status != "interrupted" {
		t.Errorf("the task after Ctrl-C: %+v", items)
	}
}

func TestClosingTheTerminalStopsAndSaves(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	mark := filepath.Join(s.dir, "running")
	model := s.script(call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; sleep 60", cwd: null, timeout: null}`, mark)) + finish("done"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
	pid := s.pid(mark)
	x.Hangup()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("roost outlived its terminal")
	}
	if got := x.cmd.ProcessState.ExitCode(); got != failure.ExitHangup {
		t.Errorf("exit code %d, want %d", got, failure.ExitHangup)
	}
	s.gone(pid)
}
