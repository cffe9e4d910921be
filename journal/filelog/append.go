package filelog

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/journal"
)

// waiter is a Barrier that waits for a sequence to be synced.
type waiter struct {
	seq uint64
	ch  chan error // room for one
}

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
	c := journal.Commit{Seq: o.next, Epoch: o.epoch, At: d.At, By: d.By, Blobs: d.Blobs, Events: d.Events}
	q, err := journal.AppendSigned(o.queue, c, o.chain)
	if err != nil {
		return 0, err
	}
	o.fresh = append(o.fresh, handover(c, q[len(o.queue):]))
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

// Barrier implements journal.Owner. All that wait at once share one sync: the first writes and syncs in its own
// goroutine, because handing the work over and back costs two turns of the scheduler; the flusher serves together all
// that come during that sync. A Barrier that syncs does not look at ctx until the disk has answered.
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
	w := waiter{o.next - 1, make(chan error, 1)}
	o.waiters = append(o.waiters, w)
	o.mu.Unlock()
	o.poke()
	select {
	case err := <-w.ch:
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
		if o.crowd.Swap(false) {
			theHub.notify(o.key, everyone)
		}
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

// due is how long the flusher may sleep; 0 and less mean that it must flush.
func (o *owner) due() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.fatal != nil:
		o.answer(o.next, o.fatal)
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

// answer wakes the waiters up to seq. The caller holds mu.
func (o *owner) answer(seq uint64, err error) {
	rest := o.waiters[:0]
	for _, w := range o.waiters {
		if w.seq <= seq {
			w.ch <- err
		} else {
			rest = append(rest, w)
		}
	}
	clear(o.waiters[len(rest):])
	o.waiters = rest
}

// Close implements journal.Owner. It tries once more to save what is not.
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
		o.answer(o.next, o.fatal)
		o.mu.Unlock()
		o.saveOnClose()
		if o.opt.Synced != nil {
			o.opt.Synced(o.epoch, o.synced, true)
		}
		_ = o.lock.Truncate(int64(recordLen)) // our name: the next owner is another
		o.release()
		theHub.own(o.key, nil, -1)
	})
	return o.end
}
