package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
)

// parted is a task whose subtask runs a command until the file on is there.
type parted struct {
	*sandbox
	model, on, mark string
}

func newParted(t *testing.T) parted {
	t.Helper()
	s := newSandbox(t)
	p := parted{s, "", filepath.Join(s.dir, "on"), filepath.Join(s.dir, "begun")}
	child := call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; while [ ! -e %s ]; do sleep 0.02; done", cwd: null, timeout: null}`, p.mark, p.on))
	p.model = s.script(call("new_task", `{mode: code, message: "do part ONE", todos: null}`) + finish("All is done.") +
		"- task: part ONE\n" + child + finish("One is done."))
	return p
}

func (p parted) run(flags ...string) []string {
	return append([]string{"run", "--provider", "script", "--model", p.model, "-C", p.ws}, append(flags, "go")...)
}

// begins starts it on a terminal, and waits until the subtask's command runs.
func (p parted) begins() (*terminal, int) {
	p.t.Helper()
	x := p.onTerminal(p.run("--yes")...)
	pid := p.pid(p.mark)
	x.expect("$ echo")
	return x, pid
}

func (p parted) goesOn() { must(p.t, os.WriteFile(p.on, nil, 0o600)) }

// states are those of the task and its subtask.
func (p parted) states() string {
	p.t.Helper()
	got := map[string]string{}
	for _, item := range p.list() {
		got[item.Title] = item.Status
	}
	return got["go"] + " " + got["do part ONE"]
}

func (p parted) want(states string) {
	p.t.Helper()
	if got := p.states(); got != states {
		p.t.Errorf("the task and its subtask are %s, want %s", got, states)
	}
}

const asksToStop = "? stop its subtask too?"

func TestCtrlCAsksAboutTheSubtask(t *testing.T) {
	t.Parallel()
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, pid := p.begins()
		x.press("\x03")
		x.expect(asksToStop)
		x.expect("do part ONE")
		x.press("maybe\n")
		x.expect("answer y or n")
		x.press("y\n")
		x.expect("stopping and saving")
		x.exits(failure.ExitInterrupt)
		p.gone(pid)
		p.want("delegated interrupted")
	})
	t.Run("the task alone", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, _ := p.begins()
		x.press("\x03")
		x.expect(asksToStop)
		x.press("n\n")
		x.expect("stopping the task alone")
		p.goesOn()
		x.expect("is completed; resume its task for the result")
		all := x.exits(failure.ExitInterrupt)
		if n := strings.Count(all, "$ echo"); n != 1 {
			t.Errorf("the command is shown %d times:\n%s", n, all)
		}
		p.want("delegated completed")
		x = p.onTerminal("continue", "-C", p.ws)
		x.expect("All is done.")
		x.exits(failure.ExitDone)
		p.want("completed completed")
	})
	t.Run("the task alone, and then the subtask", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, pid := p.begins()
		x.press("\x03")
		x.expect(asksToStop)
		x.press("n\n")
		x.expect("stopping the task alone")
		time.Sleep(app.Bounce) // it is another press
		x.press("\x03")
		x.expect("stopping and saving")
		x.exits(failure.ExitInterrupt)
		p.gone(pid)
		p.want("delegated cancelled")
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, _ := p.begins()
		x.press("y\n") // typed while nothing was asked: it answers nothing
		x.press("\x03")
		x.expect(asksToStop)
		x.press("\n")
		x.expect("nothing is stopped")
		p.goesOn()
		x.expect("All is done.")
		x.exits(failure.ExitDone)
		p.want("completed completed")
	})
	t.Run("once more", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, pid := p.begins()
		defer func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }()
		x.press("\x03")
		x.expect(asksToStop)
		time.Sleep(app.Bounce)
		x.press("\x03")
		x.expect("ended at once")
		x.exits(failure.ExitInterrupt)
	})
	t.Run("the terminal closes", func(t *testing.T) {
		t.Parallel()
		p := newParted(t)
		x, pid := p.begins()
		x.press("\x03")
		x.expect(asksToStop)
		must(t, x.cmd.Process.Signal(syscall.SIGHUP))
		x.exits(failure.ExitHangup)
		p.gone(pid)
		p.want("delegated interrupted")
	})
}

// A question that is open when Ctrl-C comes is asked again when nothing stops.
func TestCtrlCAtAQuestionOfTheSubtask(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"\n": "completed completed", "n\n": "delegated completed"} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			p := newParted(t)
			p.goesOn()
			x := p.onTerminal(p.run("--approve", "ask", "--allow-tool", "new_task")...)
			x.expect("q stop")
			x.press("\x03")
			x.expect(asksToStop)
			x.press(answer)
			x.expect("q stop > ")
			x.press("y")
			x.expect("· cost unknown")
			exit := failure.ExitDone
			if answer == "n\n" {
				exit = failure.ExitInterrupt
			}
			x.exits(exit)
			p.want(want)
		})
	}
}

// Without a person to ask all stops, as one press always did.
func TestWithoutATerminalAllStops(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--yes"}, {"--yes", "--json"}} {
		p := newParted(t)
		cmd := p.command(p.run(flags...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		must(t, cmd.Start())
		pid := p.pid(p.mark)
		must(t, cmd.Process.Signal(syscall.SIGINT))
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != failure.ExitInterrupt {
			t.Errorf("%v: got %v\n%s, want cmd.ProcessState.ExitCode() = failure.ExitInterrupt", flags, err, &errs)
		}
		p.gone(pid)
		p.want("delegated interrupted")
		if strings.Contains(errs.String(), asksToStop) {
			t.Errorf("it asked:\n%s", &errs)
		}
	}
}
