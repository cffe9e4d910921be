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
)

// A task that runs keeps its histories: whoever would move its head is told who has it,
// and nothing is changed. A fork is another task, and takes what is saved.
func TestARunningTaskIsNotMoved(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	mark := filepath.Join(s.dir, "mark")
	model := s.script(finish("one") + call("execute_command", fmt.Sprintf(`{command: "echo $$ > %s; exec sleep 60", cwd: null, timeout: null}`, mark)) + finish("done"))
	if r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "begin"); r.code != 0 {
		t.Fatalf("%d: got %s, want r.code = 0", r.code, r.err)
	}
	id := s.list()[0].ID
	for _, args := range [][]string{{"rename", id, "first"}, {"rename", id, "second"}, {"undo", id}} {
		if r := s.roost(args...); r.code != 0 {
			t.Fatalf("%v: got %d: %s, want r.code = 0", args, r.code, r.err)
		}
	}
	b := &background{s: s, cmd: s.command("resume", id, "--yes", "wait")}
	must(t, b.cmd.Start())
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	s.pid(mark)
	journal := filepath.Join(s.root, "tasks", id, "journal.jsonl")
	before, err := os.ReadFile(journal)
	must(t, err)
	for _, args := range [][]string{
		{"rewind", id, "--to", "#1"}, {"rewind", id, "--to", "#1", "--edit", "other words"}, {"rewind", id, "--delete", "#1"},
		{"condense", id}, {"undo", id}, {"redo", id},
	} {
		r := s.roost(append([]string{"--json"}, args...)...)
		var p api.Problem
		if err := json.Unmarshal([]byte(r.err), &p); err != nil || r.code != failure.ExitBusy || r.out != "" {
			t.Errorf("%v: exit %d, %v\n%s%s", args, r.code, err, r.out, r.err)
		} else if p.Code != "task_busy" || len(p.Suggestions) == 0 || !strings.HasPrefix(p.Suggestions[0], "roost wait "+id) {
			t.Errorf("%v: got %+v, want p.Code = \"task_busy\" and the suggestion to wait for %s", args, p, id)
		}
	}
	after, err := os.ReadFile(journal)
	must(t, err)
	more, whole := bytes.CutPrefix(after, before) // the run itself may have gone on
	for _, word := range []string{"epoch.opened", "history.", "task.changed", "message.added"} {
		if !whole || bytes.Contains(more, []byte(`"type":"`+word)) {
			t.Errorf("its journal changed from\n%s\nto\n%s", before, after)
		}
	}
	r := s.roost("--json", "fork", id)
	var fork struct {
		ID       string `json:"id"`
		Messages struct{ UI, API int }
	}
	must(t, json.Unmarshal([]byte(r.out), &fork))
	if r.code != 0 || fork.ID == id || fork.Messages.API == 0 {
		t.Errorf("fork: exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.roost("rewind", fork.ID, "--to", "#2"); r.code != 0 || !strings.Contains(r.out, "took back") {
		t.Errorf("the fork is another task: exit %d\n%s%s", r.code, r.out, r.err)
	}
	must(t, b.cmd.Process.Signal(syscall.SIGTERM))
	b.ends(time.Minute)
}
