package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/cli/failure"
)

// terminal is a real pseudo terminal with roost on it, as a person sees it.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // open as long as we read: what the last process wrote may be lost with it
	read   sync.WaitGroup

	mu   sync.Mutex
	text bytes.Buffer
	vt   *vt // what a person sees of it
	grew chan struct{}
	seen int // what expect has passed
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
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		s.t.Skip("this system has no pseudo terminals: ", err)
	}
	must(s.t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(s.t, err)
	must(s.t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(s.t, err)
	term := &terminal{t: s.t, master: os.NewFile(uintptr(fd), "pty"), slave: slave, cmd: cmd, grew: make(chan struct{}, 1), vt: newVT(30, 100)}
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(s.t, term.cmd.Start())
	term.read.Go(term.collect)
	s.t.Cleanup(func() {
		_ = term.cmd.Process.Kill() // a failed test leaves nobody behind
		_ = term.master.Close()
		_ = term.slave.Close()
		term.read.Wait()
	})
	return term
}

func (x *terminal) collect() {
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.text.Write(buf[:n])
		x.vt.write(buf[:n])
		x.mu.Unlock()
		select {
		case x.grew <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.text.String(), "\r\n", "\n")
}

// expect waits until text appears behind what was expected before.
func (x *terminal) expect(text string) {
	x.t.Helper()
	limit := time.After(time.Minute)
	for {
		screen := x.screen()
		if i := strings.Index(screen[x.seen:], text); i >= 0 {
			x.seen += i + len(text)
			return
		}
		select {
		case <-x.grew:
		case <-limit:
			x.t.Fatalf("the terminal never showed %q; it shows:\n%s", text, screen)
		}
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	must(x.t, err)
}

// exits waits for the end and gives everything that was shown.
func (x *terminal) exits(want int) string {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = x.cmd.Process.Kill()
		<-done
		x.t.Fatalf("roost did not end; the terminal shows:\n%s", x.screen())
	}
	const end = "<end of the screen>"
	_, err := x.slave.WriteString(end)
	must(x.t, err)
	x.expect(end)
	if got := x.cmd.ProcessState.ExitCode(); got != want {
		x.t.Fatalf("exit code %d, want %d; the terminal shows:\n%s", got, want, x.screen())
	}
	return strings.TrimSuffix(x.screen(), end)
}

func TestBareRoostOnATerminalWithoutTasks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	x := s.onTerminal()
	x.expect("no tasks found; looked in:")
	x.expect(s.root)
	x.expect("roost try")
	x.exits(failure.ExitDone)
}

func TestApprovalOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("write_to_file", `{path: note.txt, content: "one\ntwo\n"}`) + finish("written"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "write it")
	x.expect("note.txt")
	x.expect("+one")
	x.expect("y once, a always")
	x.press("\n")
	x.expect("Enter alone is not an answer")
	if _, err := os.Stat(filepath.Join(s.ws, "note.txt")); err == nil {
		t.Fatal("it was written before the yes")
	}
	x.press("y\n")
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
	x.expect("resume: roost resume ")
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
	must(t, x.master.Close())
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
