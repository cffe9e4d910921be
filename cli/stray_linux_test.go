package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A linter that outlives a run that was killed is found and ended by the next one, as
// commands are.
func TestALinterThatOutlivesAKill(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(finish("done") + finish("again") + finish("and again"))
	if r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "go"); r.code != 0 {
		t.Fatal(r.err)
	}
	id := s.list()[0].ID
	mark := filepath.Join(s.dir, "linter")
	if r := s.roost("config", "set", "linter", fmt.Sprintf("[ -s %[1]s ] || { echo $$ > %[1]s; exec sleep 300; }", mark)); r.code != 0 {
		t.Fatal(r.err)
	}
	cmd := s.command("resume", id, "look at @problems")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	pid := s.pid(mark)
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // a failed test leaves nobody behind
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the linter did not outlive the kill: %v\n%s", err, &said)
	}

	r := s.roost("resume", id, "go on")
	if r.code != 0 || !strings.Contains(r.err, "a linter from an earlier run of this task was still running") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	s.gone(pid)
	if r := s.roost("resume", id, "and on"); r.code != 0 || strings.Contains(r.err, "from before (") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}
