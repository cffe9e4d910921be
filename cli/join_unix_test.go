//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/journal"
)

// reachable gives the sandbox a runtime folder whose name leaves room for a socket's.
func (s *sandbox) reachable() *sandbox {
	s.t.Helper()
	s.slow()
	dir, err := os.MkdirTemp("/tmp", "rt")
	must(s.t, err)
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	s.env("XDG_RUNTIME_DIR=" + dir)
	return s
}

// unreachable leaves no folder with room for a socket's name.
func (s *sandbox) unreachable() *sandbox {
	s.t.Helper()
	deep := filepath.Join(s.dir, "tmp", strings.Repeat("deep", 20))
	must(s.t, os.Mkdir(deep, 0o700))
	s.env("TMPDIR=" + deep)
	return s
}

// slow is a model that says many words, slowly, calls a command that sleeps, and ends.
func slow(mark string) string {
	return "- text: " + strings.Repeat("word ", 30) + "\n  delay: 10ms\n" +
		strings.Replace(call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; while [ ! -e %s.go ]; do sleep 0.02; done", cwd: null, timeout: null}`, mark, mark)), "- ", "  ", 1) + finish("done")
}

// begin starts a run in the background that waits in a command until it is told to go on.
func (s *sandbox) begin(flags ...string) (b *background, id string) {
	s.t.Helper()
	s.scripts++
	b = &background{s: s, mark: filepath.Join(s.dir, fmt.Sprintf("mark%d", s.scripts))}
	b.cmd = s.command(append([]string{"--json", "run", "--provider", "script", "--model", s.script(slow(b.mark)), "-C", s.ws, "--yes", "wait"}, flags...)...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	must(s.t, b.cmd.Start())
	s.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	s.pid(b.mark)
	return b, s.list()[0].ID
}

// goOn lets the command end.
func (b *background) goOn() { must(b.s.t, os.WriteFile(b.mark+".go", nil, 0o600)) }

// beside runs roost while the test goes on.
func (s *sandbox) beside(args ...string) *background {
	s.t.Helper()
	b := &background{s: s, cmd: s.command(args...)}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	must(s.t, b.cmd.Start())
	s.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	return b
}

// durable are the lines of NDJSON that are in the task's log: deltas and notices come as
// they come.
func durable(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"seq":`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A second resume joins the run: it shows what the first one shows, in the same bytes,
// and ends as it does. Words that come with it are the run's.
func TestResumeJoinsARunElsewhere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	b, id := s.begin()
	var held journal.OwnerInfo
	lock, err := os.ReadFile(filepath.Join(s.root, "tasks", id, "journal.lock"))
	must(t, err)
	must(t, json.Unmarshal(lock[bytes.IndexByte(lock, '\n')+1:], &held))
	path, _ := strings.CutPrefix(held.Address, "unix:")
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("the lock names %q: %v", held.Address, err)
	}
	joined := []*background{s.beside("--json", "resume", id), s.beside("resume", id), s.beside("--json", "attach", id), s.beside("--json", "run", "--task", id)}
	words := s.beside("resume", id, "and be quick")
	s.within(time.Minute, "the words in the queue", func() bool {
		return strings.Contains(s.roost("show", id, "--journal").out, `"text":"and be quick"`)
	})
	s.within(time.Minute, "everybody who joined", func() bool { // one who comes later finds a run that is over
		for _, j := range joined {
			if len(durable(j.out.String())) == 0 && !strings.Contains(j.err.String(), "works on task "+id) {
				return false
			}
		}
		return true
	})
	b.goOn()
	if code := b.ends(time.Minute); code != 0 {
		t.Fatalf("the run ended with %d\n%s", code, &b.err)
	}
	want := durable(b.out.String())
	for i, j := range append(joined, words) {
		if code := j.ends(time.Minute); code != 0 {
			t.Errorf("%v: exit %d\n%s%s", j.cmd.Args[1:], code, &j.out, &j.err)
		}
		switch got := durable(j.out.String()); {
		case i == 1 || i == 4:
			if j.out.String() != "done\n" || !strings.Contains(j.err.String(), "works on task "+id) {
				t.Errorf("%v printed\n%s%s", j.cmd.Args[1:], &j.out, &j.err)
			}
		case len(got) == 0 || got[len(got)-1] != want[len(want)-1]:
			t.Errorf("%v: the last of %d events is not that of the run", j.cmd.Args[1:], len(got))
		default:
			for len(want) > len(got) && want[0] != got[0] {
				want = want[1:] // of before the run
			}
			if strings.Join(got, "") != strings.Join(want, "") {
				t.Errorf("%v printed other bytes than the run:\n%s\nwant\n%s", j.cmd.Args[1:], strings.Join(got, ""), strings.Join(want, ""))
			}
		}
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// Who follows a run that is killed is told so, and ends.
func TestWhoJoinedARunThatIsKilledEnds(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	b, id := s.begin()
	j := s.beside("resume", id)
	s.within(time.Minute, "the joined one shows the run", func() bool {
		return strings.Contains(j.err.String(), "execute_command") || strings.Contains(j.err.String(), "$ echo")
	})
	must(t, b.cmd.Process.Kill())
	_ = b.cmd.Wait() // a process that nobody waited for counts as one that lives
	if code := j.ends(time.Minute); code != failure.ExitCancelled || !strings.Contains(j.err.String(), "interrupted") || !strings.Contains(j.err.String(), "roost resume "+id[len(id)-6:]) {
		t.Errorf("exit %d\n%s", code, &j.err)
	}
	b.goOn()
	// What the dead one left is no hindrance, and goes with the next one.
	if r := s.roost("resume", id, "--yes"); r.code != 0 {
		t.Errorf("resumed: exit %d\n%s", r.code, r.err)
	}
	left, err := os.ReadDir(filepath.Join(strings.TrimPrefix(s.extra[len(s.extra)-1], "XDG_RUNTIME_DIR="), "roost"))
	if err != nil || len(left) != 0 {
		t.Errorf("sockets are left: %v %v", left, err)
	}
}

// Ctrl-C ends following, and nothing else. Cancel stops the run, from anywhere.
func TestLeavingAJoinedRunLetsItGoOn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	b, id := s.begin()
	j := s.beside("resume", id)
	s.within(time.Minute, "the joined one shows the run", func() bool {
		return strings.Contains(j.err.String(), "works on task") && strings.Contains(j.err.String(), "$ echo")
	})
	must(t, j.cmd.Process.Signal(syscall.SIGINT))
	if code := j.ends(time.Minute); code != failure.ExitInterrupt || !strings.Contains(j.err.String(), "continues") {
		t.Errorf("exit %d\n%s", code, &j.err)
	}
	if got := s.task(id).Status; got != "running" {
		t.Errorf("the task is %s", got)
	}
	begun := time.Now()
	if r := s.roost("cancel", id); r.code != 0 {
		t.Errorf("cancel: exit %d\n%s", r.code, r.err)
	}
	t.Logf("cancelled in %v", time.Since(begun))
	if code := b.ends(time.Minute); code != failure.ExitCancelled {
		t.Errorf("the run ended with %d\n%s", code, &b.err)
	}
	s.gone(s.pid(b.mark))
}

// Where the other process cannot be reached, it is named, and nothing is taken from it.
func TestAHolderThatCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).unreachable()
	b, pid := s.busy("")
	id := s.list()[0].ID
	r := s.roost("--json", "resume", id, "words")
	var p api.Problem
	if err := json.Unmarshal([]byte(r.err), &p); err != nil || r.code != failure.ExitBusy || p.Code != "task_locked" || !strings.Contains(p.Detail, fmt.Sprintf("roost (pid %d)", b.cmd.Process.Pid)) {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	must(t, b.cmd.Process.Signal(syscall.SIGTERM))
	b.ends(time.Minute)
	s.gone(pid)
}

// Words that interrupt a run in another terminal are what that terminal goes on with.
func TestAnInterruptedRunGoesOnInItsTerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	b, id := s.begin()
	r := s.roost("--json", "send", "--interrupt", id, "do this instead")
	var sent struct {
		Delivered string
		Run       string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(r.out), &sent); err != nil || r.code != 0 || sent.Delivered != "started" {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if code := b.ends(time.Minute); code != 0 {
		t.Errorf("exit %d\n%s", code, &b.err)
	}
	events := durable(b.out.String())
	if last := events[len(events)-1]; !strings.Contains(last, `"type":"run.ended"`) || !strings.Contains(last, `"run_id":"`+sent.Run) || !strings.Contains(last, `"outcome":"completed"`) {
		t.Errorf("the last event is %s, want the end of run %s", last, sent.Run)
	}
	if got := s.task(id); got.Status != "completed" {
		t.Errorf("the task is %s", got.Status)
	}
	s.gone(s.pid(b.mark))
}

// Who follows or waits for a run whose process is stopped is told so, and ends; the run itself
// goes on with its process, and whoever followed it before it was stopped may come back.
func TestWhoFollowsAStoppedProcessEnds(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	b, id := s.begin()
	t.Cleanup(func() { _ = b.cmd.Process.Signal(syscall.SIGCONT) })
	before := s.beside("--json", "attach", id)
	s.within(time.Minute, "what was done so far", func() bool { return len(durable(before.out.String())) > 0 })
	must(t, b.cmd.Process.Signal(syscall.SIGSTOP))
	for _, f := range []*background{before, s.beside("--json", "attach", id), s.beside("--json", "wait", id), s.beside("--json", "send", id, "and be quick"), s.beside("--json", "cancel", id)} {
		code := f.ends(time.Minute)
		text := f.err.String()
		var p api.Problem
		if err := json.Unmarshal([]byte(text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]), &p); err != nil || code != failure.ExitBusy || p.Code != "task_locked" ||
			!strings.Contains(p.Detail, fmt.Sprintf("(pid %d)", b.cmd.Process.Pid)) || len(p.Suggestions) == 0 || !p.Retryable {
			t.Errorf("%v: exit %d, %v\n%s", f.cmd.Args[1:], code, err, text)
		}
	}
	must(t, b.cmd.Process.Signal(syscall.SIGCONT))
	after := s.beside("--json", "attach", id)
	s.within(time.Minute, "what was done so far", func() bool { return len(durable(after.out.String())) > 0 })
	b.goOn()
	for _, f := range []*background{b, after} {
		if code := f.ends(time.Minute); code != 0 {
			t.Errorf("%v: exit %d\n%s", f.cmd.Args[1:], code, &f.err)
		}
	}
}
