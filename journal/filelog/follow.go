package filelog

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/roost-dev/roost/journal"
)

// Follow implements journal.Reader. While the log's owner lives in this process,
// a follower that has caught up takes the commits from its memory, once they are
// synced; else it reads the file. Both give the same commits.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, notified, cancel := theHub.subscribe(r.key)
		defer cancel()
		if err := r.follow(ctx, from, wake, notified.Load, yield); err != nil {
			yield(journal.Commit{}, err)
		}
	}
}

// follow returns nil when the consumer wants no more.
func (r *reader) follow(ctx context.Context, from uint64, wake <-chan struct{}, notified func() bool,
	yield func(journal.Commit, error) bool) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	limit, _, err := r.visible()
	if err != nil {
		return err
	}
	c, head := r.start(from, limit), uint64(0)
	timer := time.NewTimer(pollNotified)
	defer timer.Stop()
	for pause := pollFirst; ; {
		at := c.off
		list, near := r.handed(c.off)
		if near {
			if !c.take(list, yield) {
				return nil
			}
		} else {
			if limit, head, err = r.ahead(); err != nil {
				return err
			}
			if limit > c.off && !r.emit(ctx, &c, limit, head, yield) {
				return nil
			}
		}
		if c.off > at {
			pause = pollFirst
		} else {
			if notified() {
				pause = pollNotified
			}
			r.sleep(ctx, wake, timer, pause)
			pause = min(2*pause, pollLast)
		}
		if err := r.check(ctx); err != nil {
			return err
		}
	}
}

// handed gives the next commits from the memory of an owner in this process. ok
// is false when there is none, or it does not go back as far.
func (r *reader) handed(off int64) (list []entry, ok bool) {
	if t := theHub.tail(r.key, r.ino); t != nil {
		return t.from(off)
	}
	return nil, false
}

// take is what emit does, with commits that need not be read.
func (c *cursor) take(list []entry, yield func(journal.Commit, error) bool) bool {
	for _, e := range list {
		v := c.order.place(e.commit.Epoch, journal.Damage{Seq: e.commit.Seq, Offset: e.start, Length: e.size})
		c.off = e.start + e.size
		for _, d := range v.lost {
			if d.Seq >= c.from && !yield(journal.Commit{}, &journal.DamageError{Damage: d}) {
				return false
			}
		}
		if v.commit && v.seq >= c.from && !yield(e.commit, nil) {
			return false
		}
	}
	return true
}

// sleep waits until there may be more.
func (r *reader) sleep(ctx context.Context, wake <-chan struct{}, timer *time.Timer, pause time.Duration) {
	timer.Reset(pause)
	select {
	case <-ctx.Done():
	case <-r.closed:
	case <-wake:
	case <-timer.C:
	}
}

// ahead is visible for a caller that waits: a log that is gone will not grow. For one that was deleted before it was
// opened the caller waits: its next owner begins it again.
func (r *reader) ahead() (limit int64, head uint64, err error) {
	limit, head, err = r.visible()
	if err == nil && r.synced == nil && r.ino != 0 && r.gone() {
		err = fmt.Errorf("follow %s: it was deleted or moved away: %w", r.dir, journal.ErrNotFound)
	}
	return limit, head, err
}
