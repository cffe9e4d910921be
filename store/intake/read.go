package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// Waits bound how long ReadSettled waits for another program that is writing.
type Waits struct {
	Busy   time.Duration // while it holds a lock, or changes a file that is being read
	Settle time.Duration // how long two files that disagree must be unchanged before they are taken as they are
	Pause  time.Duration // between two reads
	Still  time.Duration // how long before it is read a file must have changed last; see fresh
}

// DefaultWaits: Roo gives up a lock after 2.5 s. It holds one for as long as it writes a file, and its two saves of a
// step follow each other within milliseconds, so a second without a lock is long.
var DefaultWaits = Waits{
	Busy:   3 * time.Second,
	Settle: time.Second,
	Pause:  100 * time.Millisecond,
	Still:  ClockTick,
}

// ClockTick is how long ago a file must have changed before its times can be trusted: within one tick of the file
// system's clock a second write leaves no trace.
const ClockTick = 50 * time.Millisecond

// coarseTick is ClockTick for a file system whose times have whole seconds only.
const coarseTick = 2100 * time.Millisecond

// Settled reports whether a change after now would show in the time of a file that changed last at mtime, in
// nanoseconds. still is the age that the file must have; 0 trusts every file.
func Settled(mtime int64, now time.Time, still time.Duration) bool {
	if mtime%int64(time.Second) == 0 && still > 0 {
		still = coarseTick
	}
	return still == 0 || now.Sub(time.Unix(0, mtime)).Abs() > still
}

// ErrBusy: another program is writing the task's files just now.
var ErrBusy = projection.ErrBusy

// ReadSettled reads a folder at a moment when no program writes it and its two histories agree. When they keep
// disagreeing, the other program left them that way, and ReadSettled returns them. A folder with a file that cannot be
// read is an error that wraps *roofmt.UnreadError. mark is what Roost wrote: Roost's own files need no agreement,
// because a kill of Roost between two renames is not another program's half step.
func ReadSettled(ctx context.Context, dir string, mark projection.Watermark, wait Waits) (*roofmt.Folder, error) {
	begun := time.Now()
	var seen [2]roofmt.Fingerprint
	since := begun
	for {
		read := time.Now()
		folder, err := roofmt.Read(ctx, dir)
		if err != nil {
			return nil, err
		}
		if unread := folder.Unread; unread != nil {
			return nil, errors.Join(unread, folder.Close())
		}
		if now := historyPrints(folder); now != seen {
			seen, since = now, time.Now()
		}
		why, limit := "", wait.Busy
		switch {
		case locked(folder) || folder.UI.Unstable || folder.API.Unstable:
			why = fmt.Sprintf("lock on %v", folder.Locks)
		default:
			why = unsettled(folder, mark)
			if why == "" || quiet(seen, since, time.Now()) >= wait.Settle {
				if why = fresh(folder, mark, read, wait.Still); why == "" {
					return folder, nil
				}
				limit += coarseTick
			}
			limit += wait.Settle
		}
		if err := folder.Close(); err != nil {
			return nil, err
		}
		if time.Since(begun) > limit {
			return nil, fmt.Errorf("%s: %w (%s); try again when it has finished", dir, ErrBusy, why)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait.Pause):
		}
	}
}

// unsettled describes why a folder may be in the middle of another program's step; "" when it is not.
func unsettled(folder *roofmt.Folder, mark projection.Watermark) string {
	if mark.Wrote(folder.UI) && mark.Wrote(folder.API) {
		return ""
	}
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if !whole(doc) && doc.State != roofmt.Missing {
			return doc.Name + " is " + doc.State.String()
		}
	}
	return disagreement(folder.UI, folder.API)
}

// fresh names a file that another program wrote just before ReadSettled read it; "" when there is none. A second write
// after the read, within one tick of the clock and of the same length, would leave the fingerprint as it was: Roost
// would never take it in, and would then replace it. A file that was unchanged for a tick before the read shows every
// later change. Files that Roost wrote have an older time; see roofmt.Replace.
func fresh(folder *roofmt.Folder, mark projection.Watermark, read time.Time, still time.Duration) string {
	for name, print := range map[string]roofmt.Fingerprint{
		folder.UI.Name: folder.UI.Print, folder.API.Name: folder.API.Print,
		roofmt.ItemName: folder.ItemPrint, roofmt.MetadataName: folder.MetadataPrint,
	} {
		if print.Exists && mark.Files[name].Print() != print && !Settled(print.MTime, read, still) {
			return name + " was written just now"
		}
	}
	return ""
}

func historyPrints(folder *roofmt.Folder) [2]roofmt.Fingerprint {
	return [2]roofmt.Fingerprint{folder.UI.Print, folder.API.Print}
}

// quiet is how long files have been unchanged: by their own times, or, where those cannot be right, for as long as
// ReadSettled has watched them.
func quiet(files [2]roofmt.Fingerprint, since, now time.Time) time.Duration {
	newest := int64(0)
	for _, f := range files {
		newest = max(newest, f.MTime)
	}
	watched := now.Sub(since)
	if newest == 0 {
		return watched
	}
	return max(watched, now.Sub(time.Unix(0, newest)))
}
