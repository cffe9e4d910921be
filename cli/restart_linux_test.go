package cli

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// A question that a server's run asks, the server killed, stopped
// and started again in between, is answered by a client that has no network at all, and the
// run that asked goes on to its end, under its own name.
func TestAQuestionOfAServerIsAnsweredFromAnotherNetworkNamespace(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-rn", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v %s", err, out)
	}
	s := newSandbox(t).reachable()
	apart := func(code int, want string, args ...string) {
		t.Helper()
		cmd := s.command(args...)
		cmd.Path, cmd.Args = unshared(t), append([]string{"unshare", "-rn", cmd.Path}, cmd.Args[1:]...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			t.Errorf("%q: %s, want %d and %s\n%s", args, cmd.ProcessState, code, want, out)
		}
	}
	d := s.daemon()
	run := s.leaves(s.script(twoQuestions), "ask me")
	s.comes(run.Task, "waiting")
	first := s.runOf(run.Task).Question
	must(t, d.cmd.Process.Kill())
	<-d.ended
	d = s.daemon()
	if got := s.comes(run.Task, "waiting"); got.Question != first || got.ID != run.ID {
		t.Errorf("behind a kill run %s asks %s, before %s %s", got.ID, got.Question, run.ID, first)
	}
	must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.exits(failure.ExitTerminated)
	s.daemon()
	if got := s.comes(run.Task, "waiting"); got.Question != first || got.ID != run.ID {
		t.Errorf("behind a stop run %s asks %s, before %s %s", got.ID, got.Question, run.ID, first)
	}
	apart(failure.ExitDone, "the first?", "questions")
	// Nobody holds the task, and the server cannot be reached from there: who answers goes on
	// with the run, up to what it asks next.
	apart(failure.ExitInput, "the second?", "answer", run.Task, "left")
	apart(failure.ExitDone, "all answered", "answer", run.Task, "up")
	if got := s.comes(run.Task, "completed"); got.ID != run.ID || got.Reason != "all answered" {
		t.Errorf("got %+v, want got.ID = run.ID and got.Reason = \"all answered\"", got)
	}
}
