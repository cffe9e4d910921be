package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// waits say how long a foreign writer is waited for.
type waits struct {
	busy   time.Duration // while it holds a lock, or changes a file that is read
	settle time.Duration // how long two files that disagree must stand still to be believed
	pause  time.Duration // between two looks
	still  time.Duration // how long before it is read a file must have changed last; see fresh
}

// Roo gives up a lock after 2.5 s. It holds one for as long as it writes a file,
// and its two saves of a step follow each other within milliseconds; so a second
// without a lock is long.
var defaultWaits = waits{busy: 3 * time.Second, settle: time.Second, pause: 100 * time.Millisecond, still: restless}

// SkipWaits makes the store take files as settled at once. It is for tests whose files do not change by themselves.
func (s *Store) SkipWaits() { s.wait.settle, s.wait.pause, s.wait.still = 0, time.Millisecond, 0 }

// readSettled reads a folder at a moment when nobody writes it and its two
// histories tell the same story. When they keep telling different ones, that is
// how the other program left them. A folder with a file that cannot be read is an error
// that wraps *roofmt.UnreadError. mark says which files are ours: those need no
// agreement, a kill of ours between two renames is no foreign step.
func (s *Store) readSettled(ctx context.Context, dir string, mark projection.Watermark) (*roofmt.Folder, error) {
	begun := time.Now()
	var seen [2]roofmt.Fingerprint
	since := begun
	for {
		looked := time.Now()
		folder, err := roofmt.Read(ctx, dir)
		if err != nil {
			return nil, err
		}
		if unread := folder.Unread; unread != nil {
			return nil, errors.Join(unread, folder.Close())
		}
		if now := prints(folder); now != seen {
			seen, since = now, time.Now()
		}
		why, limit := "", s.wait.busy
		switch {
		case locked(folder) || folder.UI.Unstable || folder.API.Unstable:
			why = fmt.Sprintf("lock on %v", folder.Locks)
		default:
			why = unsettled(folder, mark)
			if why == "" || quiet(seen, since, time.Now()) >= s.wait.settle {
				if why = fresh(folder, mark, looked, s.wait.still); why == "" {
					return folder, nil
				}
				limit += coarse
			}
			limit += s.wait.settle
		}
		if err := folder.Close(); err != nil {
			return nil, err
		}
		if time.Since(begun) > limit {
			return nil, fmt.Errorf("%s: %w (%s); try again when it has finished", dir, ErrForeignBusy, why)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(s.wait.pause):
		}
	}
}

// unsettled says why a folder may be in the middle of another program's step; ""
// when it is not.
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

// fresh names a file that another program wrote just before we looked; "" when there is
// none. What it writes behind our reading, within one tick of the clock and with as many
// bytes, leaves the file looking as it did: it would never be taken in, and then be
// replaced. A later change can be told from what stood still before it was read. What we
// wrote ourselves has an older time, see roofmt.Replace.
func fresh(folder *roofmt.Folder, mark projection.Watermark, looked time.Time, still time.Duration) string {
	for name, print := range map[string]roofmt.Fingerprint{
		folder.UI.Name: folder.UI.Print, folder.API.Name: folder.API.Print,
		roofmt.ItemName: folder.ItemPrint, roofmt.MetadataName: folder.MetadataPrint,
	} {
		if print.Exists && mark.Files[name].Print() != print && !stood(print.MTime, looked, still) {
			return name + " was written just now"
		}
	}
	return ""
}

func prints(folder *roofmt.Folder) [2]roofmt.Fingerprint {
	return [2]roofmt.Fingerprint{folder.UI.Print, folder.API.Print}
}

// quiet is how long files have stood still: by their own times, or, where those
// cannot be right, for as long as we have watched.
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
