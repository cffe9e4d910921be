//go:build unix

package filelog_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// An owner that is stopped in its tracks (SIGSTOP, a sleeping machine) still has
// the task: nobody gets in beside it, and it goes on as if nothing had been.
func TestStoppedOwnerKeepsTheTask(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	c.next(t, "open")
	c.next(t, "ack")
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var busy *journal.BusyError
	if _, err := filelog.Own(t.Context(), dir, filelog.Options{WaitForLock: 50 * time.Millisecond}); !errors.As(err, &busy) {
		t.Fatalf("own: %v", err)
	}
	if who, held := filelog.Holder(dir); !held || who.PID != c.cmd.Process.Pid {
		t.Fatalf("holder %+v %v", who, held)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, ok := c.next(t, "ack"); !ok {
			t.Fatal("it does not go on")
		}
	}
	c.kill()
	checkLog(t, dir)
	if _, held := filelog.Holder(dir); held {
		t.Fatal("a dead owner holds the task")
	}
}
