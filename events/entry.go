package events

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
)

// maxRetries is how often the reader looks for commits that a line announced and the journal does not show yet;
// retryDelay is the pause in between. An owner announces a commit after its sync, and readers see it at once unless
// the owner writes its record at that very moment. The limit counts tries and not time: a process that was stopped
// for a minute has not tried.
const (
	maxRetries = 400
	retryDelay = 5 * time.Millisecond
)

// entryReader gives the events that lines of the activity log announce. They depend on the log and the journals
// alone, so that every reader finds the same events behind a cursor. It keeps some journals open, because the lines of
// a few tasks alternate. It is for one goroutine.
type entryReader struct {
	store   *store.Store
	most    int
	readers []*openTask // the one used last is the last
	pause   func()      // between tries; nil: retryDelay
}

type openTask struct {
	task feed.Task
	*reader
}

// retries counts how often a journal was read that does not show yet what a line announced.
type retries struct {
	n    int
	last bool
}

// again waits for a commit that is not visible, and reports whether to try once more. When the owner has let go of the
// journal, one more try shows all that there will be: the try before may have come while the owner was still there.
func (r *entryReader) again(ctx context.Context, ref store.Ref, n *retries) (bool, error) {
	if n.n++; n.last || n.n >= maxRetries {
		return false, nil
	}
	if r.pause != nil {
		r.pause()
	} else {
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	n.last = !r.store.Held(ref)
	return true, nil
}

// skipUnreadable is for a journal that cannot be read: the stream passes over one that is missing or damaged. It
// returns an error when this process lacks files or memory: that will pass, and to continue would lose the journal's
// events.
func skipUnreadable(ctx context.Context, err error) error {
	for _, temporary := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, temporary) {
			return err
		}
	}
	return ctx.Err()
}

// read returns the events of an entry, commit by commit. A journal that is missing or cannot be read has none: the
// stream of its task reports why.
func (r *entryReader) read(ctx context.Context, e feed.Entry, give func([]Event) error) error {
	task := feed.Task{Source: e.Source, ID: e.Task}
	if e.End {
		defer r.drop(task)
	}
	ref, ok := r.store.LogRef(e.Source, e.Task)
	if !ok || e.New.To < max(e.New.From, 1) {
		return nil
	}
	from, err := r.firstCommit(ctx, ref, e)
	if err != nil {
		return skipUnreadable(ctx, err)
	}
	if store.IsOverlay(ref) {
		return r.readOverlay(ctx, e, ref, from, give)
	}
	var tries retries
	for reopen := true; ; {
		log, err := r.reader(ctx, task, ref, from-1)
		if err != nil {
			return skipUnreadable(ctx, err)
		}
		replaced := false
		for events, err := range log.events(log.log.Read(ctx, log.seq+1)) {
			if err != nil {
				r.drop(task)
				if replaced = reopen && errors.Is(err, journal.ErrReplaced); replaced {
					reopen = false // once: a journal that is replaced again and again must not hold up the others
					break
				}
				return skipUnreadable(ctx, err)
			}
			if len(events) == 0 || events[0].Seq < from {
				continue
			}
			if events[0].Seq > e.New.To {
				break
			}
			from = events[0].Seq + 1
			if err := give(events); err != nil {
				return err
			}
			if from > e.New.To {
				break
			}
		}
		switch {
		case replaced:
			continue
		case from > e.New.To || log.seq >= e.New.To:
			return nil
		}
		if more, err := r.again(ctx, ref, &tries); err != nil || !more {
			return err
		}
	}
}

// firstCommit is the first commit that an entry announces.
func (r *entryReader) firstCommit(ctx context.Context, ref store.Ref, e feed.Entry) (uint64, error) {
	if e.New.From > 0 {
		return e.New.From, nil
	}
	log, err := r.store.Follow(ref)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	// A journal that does not show the announced commit yet looks younger than it is.
	for tries := (retries{}); ; {
		if head, err := log.Head(ctx); err != nil || head >= e.New.To {
			break
		}
		if more, err := r.again(ctx, ref, &tries); err != nil {
			return 0, err
		} else if !more {
			break
		}
	}
	first, err := store.FirstSince(ctx, log, e.Birth)
	return max(min(first, e.Line.From), 1), err
}

// reader is a task's reader behind a commit.
func (r *entryReader) reader(ctx context.Context, task feed.Task, ref store.Ref, after uint64) (*reader, error) {
	i := slices.IndexFunc(r.readers, func(one *openTask) bool { return one.task == task })
	if i >= 0 && r.readers[i].seq == after {
		one := r.readers[i]
		r.readers = append(slices.Delete(r.readers, i, i+1), one)
		return one.reader, nil
	}
	r.drop(task)
	if len(r.readers) >= r.most {
		r.drop(r.readers[0].task)
	}
	log, err := openReader(ctx, r.store, ref, after, nil)
	if err == nil {
		r.readers = append(r.readers, &openTask{task, log})
	}
	return log, err
}

func (r *entryReader) drop(task feed.Task) {
	r.readers = slices.DeleteFunc(r.readers, func(one *openTask) bool {
		if one.task == task {
			_ = one.reader.close() // was only read
		}
		return one.task == task
	})
}

func (r *entryReader) close() {
	for _, one := range r.readers {
		_ = one.reader.close() // was only read
	}
	r.readers = nil
}
