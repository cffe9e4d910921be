package cli

import (
	"os"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// On a terminal, resume asks for a folder when the task's own is missing; elsewhere it refuses the task.
func TestResumeAsksForTheFolder(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	work := s.dir + "/project"
	must(t, os.Mkdir(work, 0o700))
	model := s.script(finish("first") + finish("all done"))
	if r := s.roost("run", "--provider", "script", "--model", model, "-C", work, "paint the fence"); r.code != failure.ExitDone {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	id := s.list()[0].ID
	must(t, os.Rename(work, work+"-moved"))
	if r := s.roost("resume", id, "--no-input", "go on"); r.code != failure.ExitConfig {
		t.Errorf("exit %d, want %d\n%s", r.code, failure.ExitConfig, r.err)
	}
	x := s.onTerminal("resume", id, "go on")
	x.expect("in which folder does it go on?")
	x.press("q\n")
	x.exits(failure.ExitConfig)
	x = s.onTerminal("resume", id, "go on")
	x.expect("in which folder does it go on?")
	x.press(work + "-moved\n")
	x.expect("all done")
	x.exits(failure.ExitDone)
	if got := s.task(id).Workspace; got != work+"-moved" {
		t.Errorf("it works in %s, want the folder that was named", got)
	}
}
