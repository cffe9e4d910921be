package agent_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/shell"
)

// A command that was killed between its start and the record of its process is found
// by its mark, which was in the log before, and ended before anything else happens.
// One whose call has an outcome is somebody else's.
func TestACommandThatOutlivedItsRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found by their mark on Linux only")
	}
	for name, c := range map[string]struct {
		finished bool
		ended    bool
	}{"no outcome": {false, true}, "has an outcome": {true, false}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			at := 0
			for n, commit := range b.disk.commits {
				if strings.Contains(string(commit.Events[0]), `"type":"message.added"`) && strings.Contains(string(commit.Events[len(commit.Events)-1]), "tool.process") {
					at = n + 1
				}
			}
			left := b.after(at, 0)
			mark := left.disk.state.Call("c1").Process.Mark
			if mark == "" || left.disk.state.Call("c1").Process.PGID != 0 {
				t.Fatalf(`got %+v, want mark != "" and left.disk.state.Call("c1").Process.PGID = 0`,
					left.disk.state.Call("c1").Process)
			}
			if c.finished {
				left.commit(task.ToolFinished{Call: "c1", Name: "act", Outcome: "ok", Result: []byte(`{"type":"tool_result","tool_use_id":"c1","content":"x"}`)})
			}
			cmd := exec.Command("sleep", "600")
			cmd.Env = append(os.Environ(), "ROOST_COMMAND="+mark)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan error, 1)
			go func() { gone <- cmd.Wait() }()
			defer func() {
				_ = cmd.Process.Kill() // it may be gone
				if !c.ended {
					<-gone
				}
			}()
			for end := time.Now().Add(time.Minute); len(shell.FindMarked(mark)) == 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond) // until the child is the program it is to become
			}
			alive := true
			left.hook = func(entry string) {
				if strings.HasPrefix(entry, "request") {
					alive = len(shell.FindMarked(mark)) > 0
				}
			}
			want(t, left.start(agent.Input{Yes: true}), "completed", "")
			if alive == c.ended {
				t.Errorf("alive at the first request: %t", alive)
			}
			if c.ended {
				<-gone
			}
			if told := strings.Contains(strings.Join(left.notices, "\n"), "still ran from before"); told != c.ended {
				t.Errorf("notices %q", left.notices)
			}
		})
	}
}

// commit commits events as another run would have.
func (b *bench) commit(events ...task.Event) { b.must(b.disk.Commit(context.Background(), events...)) }
