package filelog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
)

// Epoch implements journal.Owner.
func (o *owner) Epoch() uint64 { return o.epoch }

// Head implements journal.Reader without looking at the disk.
func (o *owner) Head(ctx context.Context) (uint64, error) {
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.synced, nil
}

// Append implements journal.Owner.
func (o *owner) Append(ctx context.Context, d journal.Draft) (uint64, error) {
	for {
		if err := o.check(ctx); err != nil {
			return 0, err
		}
		o.mu.Lock()
		if o.fatal != nil {
			defer o.mu.Unlock()
			return 0, o.fatal
		}
		if o.held+len(o.queue) < o.opt.MaxUnsaved {
			seq, err := o.put(d)
			o.mu.Unlock()
			return seq, err
		}
		if o.trouble != nil {
			defer o.mu.Unlock()
			return 0, fmt.Errorf("append to %s: %d bytes wait in memory already: %w", o.dir, o.held+len(o.queue), o.trouble)
		}
		room := o.room // the disk works, but is slower than the caller
		o.mu.Unlock()
		o.poke()
		select {
		case <-room:
		case <-ctx.Done():
		case <-o.closed:
		}
	}
}

// put queues a commit. The caller holds mu.
func (o *owner) put(d journal.Draft) (uint64, error) {
	empty := len(o.queue) == 0
	q, err := journal.AppendSigned(o.queue, journal.Commit{Seq: o.next, Epoch: o.epoch, At: d.At, By: d.By, Blobs: d.Blobs, Events: d.Events}, o.chain)
	if err != nil {
		return 0, err
	}
	o.queue = q
	o.next++
	if empty {
		// A clock instead of waking the flusher to set one: a Barrier mostly comes
		// before it is due, and each waking costs a turn of the scheduler.
		o.since = time.Now()
		o.clock.Reset(o.opt.FlushAfter)
	}
	return o.next - 1, nil
}

func (o *owner) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Barrier implements journal.Owner. Callers that wait at the same time share one sync. The first caller writes and
// syncs in its own goroutine, because handing the work over and back costs two switches of goroutines; the flusher
// serves all callers that come during that sync together. A Barrier that syncs does not look at ctx until the disk
// has answered.
func (o *owner) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	if o.fatal != nil || o.synced == o.next-1 {
		defer o.mu.Unlock()
		return o.fatal
	}
	select {
	case o.turn <- struct{}{}:
		o.mu.Unlock()
		err := o.flush()
		<-o.turn
		return err
	default:
	}
	done := o.waiters.Add(o.next - 1)
	o.mu.Unlock()
	o.poke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unsaved implements journal.Owner.
func (o *owner) Unsaved() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fatal != nil && o.synced < o.next-1 {
		return o.fatal
	}
	return o.trouble
}

// run is the flusher: it saves commits without a waiter, serves callers that came during another caller's sync, and
// tries again after a failure.
func (o *owner) run() {
	defer close(o.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := o.due()
		if wait <= 0 {
			o.turn <- struct{}{}
			if o.due() <= 0 { // else the one before us saved it
				_ = o.flush() // flush keeps the error in trouble and gives it to the waiters
			}
			<-o.turn
			select {
			case <-o.quit:
			default:
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-o.wake:
		case <-timer.C:
		case <-o.quit:
			o.turn <- struct{}{}
			_ = o.flush()
			<-o.turn
			return
		}
	}
}

// due returns how long the flusher may sleep; 0 or less means that it must flush now.
func (o *owner) due() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.fatal != nil:
		o.waiters.Answer(o.next, o.fatal)
	case len(o.waiters) > 0:
		return 0
	case o.trouble != nil:
		return time.Until(o.retryAt)
	case o.held+len(o.queue) >= o.opt.MaxUnsaved:
		return 0
	case len(o.queue) > 0:
		return time.Until(o.since.Add(o.opt.FlushAfter))
	}
	return time.Hour
}

// Close implements journal.Owner. It tries once more to save unsaved commits.
func (o *owner) Close() error {
	o.once.Do(func() {
		close(o.quit)
		<-o.done
		o.clock.Stop()
		o.mu.Lock()
		if o.synced < o.next-1 {
			o.end = o.trouble
		}
		if o.fatal != nil {
			o.end = o.fatal
		}
		o.fatal = journal.ErrClosed
		o.waiters.Answer(o.next, o.fatal)
		o.mu.Unlock()
		o.saveOnClose()
		if o.opt.Synced != nil {
			o.opt.Synced(o.epoch, o.synced, true)
		}
		_ = o.lock.Truncate(int64(recordLen)) // our name: the next owner is another
		theHub.own(o.key, -1)                 // before another owner in this process can come
		o.release()
	})
	return o.end
}

// Pauses between attempts while the disk refuses. A Barrier fails without waiting for them.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// flush writes and syncs everything that is queued, and wakes the waiters. The caller holds turn.
func (o *owner) flush() error {
	o.mu.Lock()
	if o.fatal != nil {
		defer o.mu.Unlock()
		return o.fatal
	}
	if len(o.stuck) == 0 {
		o.stuck, o.queue = o.queue, o.stuck[:0]
	} else {
		o.stuck = append(o.stuck, o.queue...)
		o.queue = o.queue[:0]
	}
	o.stuckLast = o.next - 1
	o.held = len(o.stuck)
	o.mu.Unlock()
	if len(o.stuck) == 0 {
		return nil
	}
	fatal, err := o.write(o.stuck)
	published := false
	if err == nil {
		now := record{Synced: o.good, Head: o.stuckLast, Epoch: o.epoch, Ino: o.ino}
		_, failed := o.lock.WriteAt(now.encode(o.opt.Seal), 0)
		published = failed == nil
		failpoint.Hit("journal.synced")
	}
	o.settle(fatal, err)
	if err == nil {
		theHub.notify(o.key)
	}
	if published && o.opt.Synced != nil { // without a published length, a notified reader would find nothing
		o.opt.Synced(o.epoch, o.stuckLast, false)
	}
	return err
}

// settle records the outcome of an attempt.
func (o *owner) settle(fatal bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case fatal:
		o.fatal = err
		o.waiters.Answer(o.next, err)
	case err != nil:
		o.trouble = err
		o.backoff = min(max(2*o.backoff, firstPause), lastPause)
		o.retryAt = time.Now().Add(o.backoff)
		o.waiters.Answer(o.stuckLast, err)
		o.poke() // to wait until then
	default:
		o.trouble, o.backoff = nil, 0
		o.synced = o.stuckLast
		o.stuck = o.stuck[:0]
		if cap(o.stuck) > 1<<20 {
			o.stuck = nil // a big step need not hold its memory for good
		}
		o.held = 0
		o.waiters.Answer(o.synced, nil)
	}
	if len(o.waiters) > 0 {
		o.poke()
	}
	close(o.room)
	o.room = make(chan struct{})
}

// write puts b behind the last good length and syncs it. After an error nothing of b counts as written. fatal means
// that this owner does not own the log any more.
func (o *owner) write(b []byte) (fatal bool, err error) {
	if o.dirty {
		if fatal, err := o.reopen(); err != nil {
			return fatal, err
		}
	}
	if fatal, err := o.unchanged(o.good); err != nil {
		return fatal, err
	}
	o.attempted = o.good + int64(len(b))
	// Appended, not written at a place: should another owner have come in just now
	// because a lock was lost, ours comes behind its commits, not over them.
	n, err := o.file.Append(b)
	if err != nil || n < len(b) {
		return o.failed("write", orShort(err))
	}
	failpoint.Hit("journal.written")
	if err := o.file.Datasync(); err != nil {
		return o.failed("sync", err)
	}
	if fatal, err := o.unchanged(o.attempted); err != nil {
		o.dirty = true
		return fatal, err
	}
	o.good = o.attempted
	o.bytes.Store(o.good)
	return false, nil
}

// failed removes a half-written attempt, at once if possible.
func (o *owner) failed(op string, cause error) (bool, error) {
	err := notSaved(o.fs, op, o.path, cause)
	o.dirty = true
	if fatal, rerr := o.reopen(); fatal {
		return true, rerr
	}
	return false, err
}

// reopen cuts the log back to the last good length through a new descriptor: after a failed sync, the kernel may count
// lost pages of the old descriptor as clean and report no error for them again.
func (o *owner) reopen() (fatal bool, err error) {
	f, err := o.fs.OpenFile(o.path, os.O_RDWR, 0)
	if err != nil {
		return false, notSaved(o.fs, "open", o.path, err)
	}
	defer f.Close() // what it wrote is synced with what follows, or cut again
	fi, err := f.Stat()
	if err == nil && (fileID(fi) != o.ino || fi.Size() < o.good || fi.Size() > o.attempted) {
		return true, o.fenced("differs from what its owner wrote")
	}
	if err == nil {
		err = f.Truncate(o.good)
	}
	if err != nil {
		return false, notSaved(o.fs, "cut back", o.path, err)
	}
	g, err := o.fs.OpenFile(o.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return false, notSaved(o.fs, "open", o.path, err)
	}
	_ = o.file.Close() // its errors are those we are leaving behind
	o.file, o.dirty = g, false
	return false, nil
}

// unchanged checks that no other process wrote to, cut or removed the log. A check that fails proves no other owner:
// it counts as trouble, and the flusher tries again.
func (o *owner) unchanged(size int64) (fatal bool, err error) {
	fi, err := o.file.Stat()
	switch {
	case err != nil:
		return false, notSaved(o.fs, "look at", o.path, err)
	case names(fi) == 0:
		return true, o.fenced("was deleted")
	case fi.Size() > size:
		return true, o.fenced("grew by another program")
	case fi.Size() < size:
		return true, o.fenced("was cut by another program")
	}
	return false, nil
}

func (o *owner) fenced(what string) error {
	return fmt.Errorf("%s %s while epoch %d owned it: %w", filepath.Base(o.path), what, o.epoch, journal.ErrFenced)
}
