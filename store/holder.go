package store

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// holderWait is how long a lock is waited for whose holder is dead. On a busy machine a
// child may take its time to come to its exec.
const holderWait = 10 * time.Second

// ownLog takes a log. A process that was killed while it started a command leaves,
// until that command's exec, a child that still has the lock open: the holder is
// dead and the lock is not free yet.
func ownLog(ctx context.Context, dir string, o filelog.Options) (journal.Owner, error) {
	o.Known = max(o.Known, readWatermark(dir).Seq) // before the lock is taken: then it is not newer than the log
	for end := time.Now().Add(holderWait); ; {
		log, err := filelog.Own(ctx, dir, o)
		var busy *journal.BusyError
		if err == nil || !errors.As(err, &busy) || !filelog.Here(busy.Holder) || alive(busy.Holder.PID) || time.Now().After(end) {
			return log, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// alive is true in doubt.
func alive(pid int) bool {
	if pid <= 0 || runtime.GOOS == "windows" {
		return true
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
