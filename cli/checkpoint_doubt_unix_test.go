//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
)

// What a person edits while a long command of the agent runs is not taken by a restore:
// nobody can tell who changed it, so it is a conflict, as what the command changed is. What
// a brief command changed goes back unasked.
func TestAnEditDuringALongCommandIsInDoubt(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	started, edited := filepath.Join(s.dir, "started"), filepath.Join(s.dir, "edited")
	put := func(name, text string) { must(t, os.WriteFile(filepath.Join(s.ws, name), []byte(text), 0o600)) }
	is := func(when, name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(s.ws, name)); err != nil || string(got) != want {
			t.Errorf("%s: %s holds %q, want %q (%v)", when, name, got, want, err)
		}
	}
	put("x.txt", "one\n")
	put("brief.txt", "one\n")
	put("long.txt", "one\n")
	cmd := s.command("run", "--yes", "--provider", "script", "-C", s.ws, "--model", s.script(
		call("read_file", `{path: x.txt}`)+
			call("execute_command", `{command: "echo agent >> brief.txt"}`)+
			call("execute_command", fmt.Sprintf(`{command: "echo agent >> long.txt; touch %s; until [ -e %s ]; do sleep 0.05; done; sleep 3.5"}`, started, edited))+
			finish("done")), "go on")
	said := &strings.Builder{}
	cmd.Stderr = said
	must(t, cmd.Start())
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			break
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatal("the command did not start")
		}
	}
	put("x.txt", "one\nmine\n")
	put("mine.txt", "mine\n")
	must(t, os.WriteFile(edited, nil, 0o600))
	must(t, cmd.Wait())
	if !strings.Contains(said.String(), "3 files changed while execute_command ran, by it or by something else; a restore asks about them: long.txt, mine.txt, x.txt") {
		t.Error(said)
	}
	// A command of more than five seconds, on a busy machine, gets its notice while it runs.
	if !strings.Contains(said.String(), "x.txt changed while a command ran, by it or by another program; the model gets to know it now") &&
		!strings.Contains(said.String(), "x.txt: changed while execute_command runs; the model gets to know it in its next turn") {
		t.Errorf("got %s, want a notice of x.txt", said)
	}
	id := s.list()[0].ID

	if r := s.roost("rewind", id, "--to", "~2", "--files", "--dry-run"); r.code != failure.ExitDone || strings.Count(r.out, "conflict  ") != 3 || strings.Contains(r.out, "changed   brief.txt") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	r := s.roost("checkpoint", "restore", id, "0", "--yes")
	if r.code != failure.ExitDone || strings.Count(r.out, "conflict  ") != 3 || !strings.Contains(r.out, "conflict  x.txt  (kept: it changed while a command ran, by the command or by another program)") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	is("kept", "x.txt", "one\nmine\n")
	is("kept", "mine.txt", "mine\n")
	is("kept", "long.txt", "one\nagent\n")
	is("kept", "brief.txt", "one\n")
	if r = s.roost("checkpoint", "restore", id, "0", "--yes"); r.code != failure.ExitBusy || !strings.Contains(r.err, "it changed while a command ran") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r = s.roost("checkpoint", "restore", id, "0", "--yes", "--on-conflict", "merge"); r.code != failure.ExitDone || strings.Count(r.out, "conflict  ") != 3 {
		t.Errorf("merged: exit %d\n%s%s", r.code, r.out, r.err)
	}
	// One answer is for all of them, and can be taken back.
	if r = s.roost("checkpoint", "restore", id, "0", "--yes", "--on-conflict", "overwrite", "--path", "long.txt"); r.code != failure.ExitDone {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	is("overwritten", "long.txt", "one\n")
	is("overwritten another", "x.txt", "one\nmine\n")
	if r = s.roost("checkpoint", "restore", id, "0", "--yes", "--on-conflict", "overwrite"); r.code != failure.ExitDone {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	is("overwritten", "x.txt", "one\n")
	if _, err := os.Stat(filepath.Join(s.ws, "mine.txt")); !os.IsNotExist(err) {
		t.Error("what came meanwhile is still there: ", err)
	}
	if r = s.roost("undo", id); r.code != failure.ExitDone {
		t.Error(r.err)
	}
	is("undone", "x.txt", "one\nmine\n")
	is("undone", "mine.txt", "mine\n")
}
