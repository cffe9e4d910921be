package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// A server ends, by a kill or in order, while a run works and another one is in its queue: the other server continues both,
// and whoever waits for the first task waits until it is done.
func TestGroupTakesUpWhatAServerLeaves(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.slow()
			g := &group{sandbox: s, name: "server", url: pgtest.Shared(t).Database(t), key: filepath.Join(s.dir, "group.json")}
			a := g.add("--max-runs", "1", "--drain-timeout", "100ms", "--auto-resume")
			b := g.add("--auto-resume")
			model, notes, on := g.command()
			first := a.starts(model, "work")
			g.begun(notes)
			second := a.starts(g.script(finish("painted")), "wait in the queue")
			g.within(time.Minute, "the second task is in the queue", func() bool { return b.status(second) == "queued" })
			g.env("ROOST_TOKEN=" + b.token)
			waited := make(chan result, 1)
			if end == syscall.SIGKILL {
				go func() { waited <- g.roost("wait", first, "--server", b.url) }()
				time.Sleep(500 * time.Millisecond) // most likely it waits by then
			}
			must(t, a.cmd.Process.Signal(end))
			<-a.ended
			g.within(time.Minute, "the other server completes the task", func() bool { return b.status(first) == "completed" })
			g.within(time.Minute, "the other server completes the task of the queue", func() bool { return b.status(second) == "completed" })
			must(t, os.WriteFile(on, nil, 0o600))
			if end == syscall.SIGKILL {
				if r := <-waited; r.code != 0 || !strings.Contains(r.out, "completed") {
					t.Errorf("roost wait: got exit %d: %s%s, want the end of the run that continued the task", r.code, r.out, r.err)
				}
			}
			data, err := os.ReadFile(notes)
			must(t, err)
			if got := strings.Count(string(data), "begin"); got != 1 {
				t.Errorf("the command ran %d times, want once", got)
			}
		})
	}
}
