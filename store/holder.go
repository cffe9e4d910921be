package store

import (
	"context"
	"errors"
	"time"

	proc "github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/projection"
)

// holderWait bounds how long ownLog waits for a lock whose holder is dead. On a busy machine, a child may need that
// long to reach its exec.
const holderWait = 10 * time.Second

// ownLog locks and opens a log for writing. A process that was killed while it started a command leaves a child that
// has the lock open until the command's exec: the holder is dead, and the lock is not free yet.
func ownLog(ctx context.Context, dir string, o filelog.Options) (journal.Owner, error) {
	o.Known = max(o.Known, projection.Read(dir).Seq) // before the lock is taken: then it is not newer than the log
	for end := time.Now().Add(holderWait); ; {
		log, err := filelog.Own(ctx, dir, o)
		var busy *journal.BusyError
		if err == nil || !errors.As(err, &busy) || !filelog.Here(busy.Holder) || proc.Alive(busy.Holder.PID) || time.Now().After(end) {
			return log, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
