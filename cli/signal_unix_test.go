//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// background is a roost that runs while the test goes on.
type background struct {
	s        *sandbox
	cmd      *exec.Cmd
	out, err safeBuffer
	mark     string // the command it runs writes its process number here
}

// busy starts a run whose command sleeps, and waits until it does. before is put
// in front of the sleep.
func (s *sandbox) busy(before string, flags ...string) (*background, int) {
	s.t.Helper()
	s.scripts++
	b := &background{s: s, mark: filepath.Join(s.dir, fmt.Sprintf("mark%d", s.scripts))}
	model := s.script(call("execute_command", fmt.Sprintf(`{command: "%secho $$ > %s; exec sleep 60", cwd: null, timeout: null}`, before, b.mark)) + finish("done"))
	args := append(flags, "run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
	b.cmd = s.command(args...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	must(s.t, b.cmd.Start())
	s.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	return b, s.pid(b.mark)
}

// ends waits for the process and gives its exit code.
func (b *background) ends(limit time.Duration) int {
	b.s.t.Helper()
	done := make(chan struct{})
	go func() { _ = b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		_ = b.cmd.Process.Kill()
		<-done
		b.s.t.Fatalf("it did not end within %v; it said:\n%s%s", limit, b.out.String(), b.err.String())
	}
	return b.cmd.ProcessState.ExitCode()
}

func TestSignalsStopAndSave(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sig  syscall.Signal
		exit int
	}{{syscall.SIGINT, failure.ExitInterrupt}, {syscall.SIGTERM, failure.ExitTerminated}, {syscall.SIGHUP, failure.ExitHangup}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			b, pid := s.busy("")
			must(t, b.cmd.Process.Signal(tt.sig))
			if got := b.ends(time.Minute); got != tt.exit {
				t.Errorf("exit code %d, want %d", got, tt.exit)
			}
			s.gone(pid)
			items := s.list()
			if len(items) != 1 || items[0].Status != "cancelled" || len(items[0].Damaged) > 0 {
				t.Fatalf("the task after it: %+v", items)
			}
			short := items[0].ID[len(items[0].ID)-6:]
			for _, want := range []string{"stopping and saving; once more ends it at once", "was stopped; everything is saved", "try: roost resume " + short} {
				if !strings.Contains(b.err.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, &b.err)
				}
			}
			if n := strings.Count(b.err.String(), "roost resume"); n != 1 {
				t.Errorf("got %d hints, want one:\n%s", n, &b.err)
			}
			if b.out.String() != "" {
				t.Errorf("stdout: %q", b.out.String())
			}
			if r := s.roost("resume", items[0].ID, "--provider", "script", "--model", s.script(strings.Repeat(finish("went on"), 4)), "go on"); r.code != 0 || r.out != "went on\n" {
				t.Errorf("resume: exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}

// A signal can come while the run starts. If a task exists afterwards, it is cancelled, and the error names how to continue
// it; otherwise nothing began.
func TestSignalWhileARunStarts(t *testing.T) {
	t.Parallel()
	for range 8 {
		s := newSandbox(t)
		var errs safeBuffer
		model := s.script(call("execute_command", `{command: "sleep 60", cwd: null, timeout: null}`) + finish("done"))
		cmd := s.command("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
		cmd.Stderr = &errs
		must(t, cmd.Start())
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if logs, _ := filepath.Glob(filepath.Join(s.root, "tasks", "*", "*")); len(logs) > 0 {
				break
			}
		}
		must(t, cmd.Process.Signal(syscall.SIGINT))
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != failure.ExitInterrupt {
			t.Errorf("exit code %d, want %d", got, failure.ExitInterrupt)
		}
		items := s.list()
		hint := strings.Contains(errs.String(), "try: roost resume")
		if len(items) > 1 || (len(items) == 1) != hint || hint && items[0].Status != "cancelled" {
			t.Errorf("got %d tasks, want one that is cancelled if there is a hint how to continue it, and none otherwise:\n%s", len(items), &errs)
		}
	}
}

func TestStoppedEventsEndWithTheRun(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	b, pid := s.busy("", "--json")
	must(t, b.cmd.Process.Signal(syscall.SIGINT))
	if got := b.ends(time.Minute); got != failure.ExitInterrupt {
		t.Errorf("exit code %d", got)
	}
	s.gone(pid)
	var last struct{ Type, Outcome string }
	lines := strings.Split(strings.TrimSpace(b.out.String()), "\n")
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	if last.Type != "run.ended" || last.Outcome != "cancelled" {
		t.Errorf("the last event: %s", lines[len(lines)-1])
	}
	for _, line := range strings.Split(strings.TrimSpace(b.err.String()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("stderr holds a line that is no JSON: %s", line)
		}
	}
	var p struct{ Code string }
	errs := strings.Split(strings.TrimSpace(b.err.String()), "\n")
	must(t, json.Unmarshal([]byte(errs[len(errs)-1]), &p))
	if p.Code != "cancelled" {
		t.Errorf("the problem: %s", errs[len(errs)-1])
	}
}

// Under nohup a hang-up is not for us.
func TestNohupIsRespected(t *testing.T) {
	t.Parallel()
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip(err)
	}
	s := newSandbox(t)
	mark, on := filepath.Join(s.dir, "mark"), filepath.Join(s.dir, "on")
	model := s.script(call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; while [ ! -e %s ]; do sleep 0.01; done", cwd: null, timeout: null}`, mark, on)) + finish("done"))
	cmd := s.command("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
	cmd.Args, cmd.Path = append([]string{nohup, cmd.Path}, cmd.Args[1:]...), nohup
	var out bytes.Buffer
	cmd.Stdout = &out
	must(t, cmd.Start())
	s.pid(mark)
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	must(t, os.WriteFile(on, nil, 0o600))
	if err := cmd.Wait(); err != nil || out.String() != "done\n" {
		t.Errorf("%v: got %q, want no error and out.String() = \"done\\n\"", err, out.String())
	}
}

// A second signal ends the process at once, also when stopping takes long. What
// was acknowledged is there, and the next resume tells what happened.
func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	b, pid := s.busy("trap '' TERM INT HUP; ")
	defer func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }() // nothing stops it, and nobody waits for it
	must(t, b.cmd.Process.Signal(syscall.SIGINT))
	must(t, b.cmd.Process.Signal(syscall.SIGTERM))
	if got := b.ends(time.Minute); got != failure.ExitTerminated && got != failure.ExitInterrupt {
		t.Errorf("exit code %d", got)
	}
	items := s.list()
	if len(items) != 1 || len(items[0].Damaged) > 0 || items[0].Messages.API < 2 {
		t.Fatalf("the task after it: %+v", items)
	}
	if r := s.roost("doctor"); r.code != 0 {
		t.Errorf("doctor: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// The loser of two programs is told who has the task, and changes nothing.
func TestBusyTaskNamesItsHolder(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).unreachable()
	b, _ := s.busy("")
	id := s.list()[0].ID
	holder := fmt.Sprint(b.cmd.Process.Pid)
	r := s.roost("resume", id, "me too")
	if r.code != failure.ExitBusy || !strings.Contains(r.err, holder) || !strings.Contains(r.err, "try: roost show") || r.out != "" {
		t.Errorf("resume of a busy task: exit %d\n%s%s", r.code, r.out, r.err)
	}
	r = s.roost("--json", "resume", id, "me too")
	var p api.Problem
	must(t, json.Unmarshal([]byte(r.err), &p))
	if r.code != failure.ExitBusy || p.Code != "task_locked" || p.Status != 409 || !p.Retryable || !strings.Contains(p.Detail, holder) {
		t.Errorf("as a problem: exit %d, %+v", r.code, p)
	}
	if got := s.task(id); got.Status != "running" {
		t.Errorf("the task is %s", got.Status)
	}
	if r := s.roost("show", id, "--ui"); r.code != 0 || strings.Contains(r.out, "me too") {
		t.Errorf("show while it runs: exit %d\n%s%s", r.code, r.out, r.err)
	}
	must(t, b.cmd.Process.Signal(syscall.SIGTERM))
	b.ends(time.Minute)
}

// A reader's end never touches a task: the run goes on to its own end.
func TestReaderOfEventsMayLeave(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	go_ := filepath.Join(s.dir, "go")
	model := s.script(call("execute_command", fmt.Sprintf(`{command: "while [ ! -e %s ]; do sleep 0.01; done", cwd: null, timeout: null}`, go_)) + finish("done"))
	for _, both := range []bool{false, true} {
		cmd := s.command("--json", "run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "wait")
		r, w, err := os.Pipe()
		must(t, err)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &errs
		if both {
			cmd.Stderr = w
		}
		must(t, cmd.Start())
		must(t, w.Close())
		line, err := bufio.NewReader(r).ReadString('\n')
		must(t, err)
		must(t, r.Close()) // now nobody reads
		must(t, os.WriteFile(go_, nil, 0o600))
		if err := cmd.Wait(); err != nil {
			t.Errorf("stderr closed too %v: %v\n%s", both, err, &errs)
		}
		var e struct {
			Task string `json:"task_id"`
		}
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Task == "" { // a notice may come first on a shared pipe
			t.Fatalf("no task in %s", line)
		}
		if got := s.task(e.Task); got.Status != "completed" {
			t.Errorf("stderr closed too %v: the task is %s", both, got.Status)
		}
		if strings.Contains(errs.String(), "pipe") {
			t.Errorf("it was told: %s", &errs)
		}
		must(t, os.Remove(go_))
	}
}

// Output that nobody reads to its end is no failure.
func TestBrokenPipesAreQuiet(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 30 {
		s.foreign(fmt.Sprintf("task-%02d", i), strings.Repeat("a long story ", 400), 1776100000000+int64(i))
	}
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"show", "task-01"}, {"show", "task-01", "--ui", "--json"}, {"show", "task-01", "--usage"},
		{"completion", "bash"}, {"help"}, {"help", "environment"}, {"config", "list"}, {"version"}, {"doctor", "--json"},
	} {
		cmd := s.command(args...)
		r, w, err := os.Pipe()
		must(t, err)
		must(t, r.Close())
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		must(t, w.Close())
		if err != nil || strings.Contains(errs.String(), "roost:") {
			t.Errorf("roost %v: %v\n%s", args, err, &errs)
		}
	}
}

// A full disk behind stdout is a failure, and told.
func TestFullOutputIsTold(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	s := newSandbox(t)
	s.foreign("task-01", "a story", 1776100000000)
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"show", "task-01"}, {"version"}, {"config", "path"}, {"doctor", "--json"}, {"export", "task-01"},
		{"export", "task-01", "--format", "archive"}, {"search", "story"}, {"completion", "bash"},
		{"run", "--json", "--yes", "--provider", "script", "--model", s.script(finish("done")), "-C", s.ws, "go"},
	} {
		cmd := s.command(args...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		if err := cmd.Run(); err == nil || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("roost %v: %v\n%s", args, err, &errs)
		}
	}
}

// try that is stopped clears its scratch folder.
func TestStoppedTryLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	cmd := s.command("try")
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	in := bufio.NewReader(stderr)
	for {
		line, err := in.ReadString('\n')
		must(t, err)
		if strings.Contains(line, "1. A task starts") {
			break
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(in)
	must(t, err)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != failure.ExitInterrupt {
		t.Errorf("exit code %d\n%s", got, rest)
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "tmp"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
}
