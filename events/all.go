package events

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
)

const (
	// sharedReaders and pastReaders bound the journals that are open at a time for the topic of all tasks, and for one
	// subscriber that reads the past.
	sharedReaders = 64
	pastReaders   = 8

	// reportEvery is how often the topic reports the commits of owners that were killed before they could, and
	// maxReports how many tasks it reports at a time.
	reportEvery = time.Second
	maxReports  = 64

	// maxRemotes bounds the tasks of other processes whose live events the topic of all tasks follows: each is a
	// connection. The text of more tasks comes as whole messages only.
	maxRemotes = 32
)

// followAll fills the ring of all tasks until ctx ends.
func (t *Topic) followAll(ctx context.Context) error {
	s := t.pipe.store
	wake, stop := feed.Watch(s.FeedDir())
	defer stop()
	lines, head, err := feed.OpenEnd(s.FeedDir())
	if err != nil {
		return err
	}
	defer func() { _ = lines.Close() }() // was only read
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := &entryReader{store: s, most: sharedReaders}
	defer entries.close()
	t.ring.start(afterLine(head))
	t.pipe.mu.Lock()
	others := &remotes{store: s, listen: t.pipe.remote, publish: t.live.publish, open: map[feed.Task]bool{}}
	t.pipe.mu.Unlock()
	defer others.wait.Wait()
	defer cancel()
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	gone := map[feed.Task]bool{}
	for {
		for ctx.Err() == nil {
			e, ok, err := lines.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			err = entries.read(ctx, e, func(events []Event) error {
				t.live.addCommit(events, entryItems(e, events))
				return nil
			})
			if err != nil {
				return t.stoppedOr(ctx, err)
			}
			t.ring.advance(afterLine(e.At))
			if e.End {
				delete(t.live.read, e.Task)
			}
		}
		select {
		case <-wake:
		case e := <-t.live.in:
			t.live.take(e)
		case <-t.live.due.C:
			t.live.wake()
		case <-report.C:
			left := lines.Left()
			reportOrphans(ctx, s, left, gone)
			others.follow(ctx, left)
		case <-ctx.Done():
			return t.stopped(ctx)
		}
	}
}

// reportOrphans writes the missing lines of tasks whose owners died: the log may not name what they synced last. gone
// are the tasks that could not be reported.
func reportOrphans(ctx context.Context, s *store.Store, left map[feed.Task]uint64, gone map[feed.Task]bool) {
	n := 0
	for task := range left {
		ref, ok := s.LogRef(task.Source, task.ID)
		if !ok || gone[task] || s.Held(ref) {
			continue
		}
		if n++; n > maxReports || ctx.Err() != nil {
			return
		}
		if s.Announce(ctx, ref) != nil {
			gone[task] = true // the task was removed, or the log cannot be written; the next process tries again
		}
	}
}

// remotes follow the live events of tasks that other processes work on, each task alone: a process that was asked for
// all of its tasks would ask back for all of ours.
type remotes struct {
	store   *store.Store
	listen  Remote
	publish func(Event)
	wait    sync.WaitGroup

	mu   sync.Mutex
	open map[feed.Task]bool
}

// follow begins to listen to those of some tasks that another process holds, until it lets them go or ctx ends.
func (r *remotes) follow(ctx context.Context, tasks map[feed.Task]uint64) {
	if r.listen == nil {
		return
	}
	for task := range tasks {
		r.mu.Lock()
		skip := r.open[task] || len(r.open) >= maxRemotes
		r.mu.Unlock()
		if skip || ctx.Err() != nil {
			continue
		}
		ref, ok := r.store.LogRef(task.Source, task.ID)
		if !ok {
			continue
		}
		held, alive := r.store.Holder(ref)
		if !alive || held.Address == "" || held.Address == r.store.Address() {
			continue
		}
		r.mu.Lock()
		r.open[task] = true
		r.mu.Unlock()
		r.wait.Go(func() {
			r.listen(ctx, ref, r.publish)
			r.mu.Lock()
			delete(r.open, task)
			r.mu.Unlock()
		})
	}
}

// HasLine reports whether the activity log has the line of a cursor. The start is always there.
func (p *Pipe) HasLine(c Cursor) (bool, error) {
	if c.IsStart() {
		return true, nil
	}
	lines, err := feed.Open(p.store.FeedDir(), c.Line)
	if errors.Is(err, feed.ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, lines.Close()
}

// ReadAll gives the durable events of all tasks behind a cursor that the activity log and the journals have now, and
// the cursor behind them. Events of the cursor's own line are given again.
func ReadAll(ctx context.Context, s *store.Store, after Cursor, give func(Item) error) (end Cursor, err error) {
	end = after
	lines, err := feed.OpenAt(s.FeedDir(), after.Line.Segment, after.Line.Offset)
	if err != nil {
		return end, err
	}
	defer func() { _ = lines.Close() }() // was only read
	entries := &entryReader{store: s, most: pastReaders}
	defer entries.close()
	for {
		e, ok, err := lines.Next()
		if err != nil || !ok {
			return end, err
		}
		if !after.Before(afterLine(e.At)) {
			continue // all of its events were given
		}
		err = entries.read(ctx, e, func(events []Event) error {
			for _, one := range entryItems(e, events) {
				if err := give(one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return end, err
		}
		end = afterLine(e.At)
	}
}

// entryItems makes items of a commit that a line announced.
func entryItems(e feed.Entry, events []Event) []Item {
	out := make([]Item, len(events))
	for i, one := range events {
		c := at(0, one.Seq, i)
		c.Line = e.At
		out[i] = newItem(one, c)
	}
	return out
}
