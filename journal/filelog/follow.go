package filelog

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/journal"
)

// How often a follower polls. While an owner in this process notifies the follower, polling is only a precaution;
// otherwise the follower depends on polling, and the pause grows while no commit comes.
const (
	pollNotified = time.Second
	pollFirst    = 5 * time.Millisecond
	pollLast     = 40 * time.Millisecond
)

// Follow implements journal.Reader. While the log's owner lives in this process, a follower that has caught up takes
// synced commits from the owner's memory; other followers read the file. Both give the same commits.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, cancel := theHub.subscribe(r.key)
		defer cancel()
		notified := func() bool { return theHub.tail(r.key, r.ino) != nil }
		if err := r.follow(ctx, from, wake, notified, yield); err != nil {
			yield(journal.Commit{}, err)
		}
	}
}

// follow returns nil when the consumer wants no more.
func (r *reader) follow(ctx context.Context, from uint64, wake <-chan struct{}, notified func() bool,
	yield func(journal.Commit, error) bool) error {
	c, _, _, err := r.open(ctx, from)
	if err != nil {
		return err
	}
	timer := time.NewTimer(pollNotified)
	defer timer.Stop()
	for pause := pollFirst; ; {
		at := c.off
		if list, near := theHub.tail(r.key, r.ino).from(at); near {
			if err := r.check(ctx); err != nil {
				return err
			}
			if !c.take(list, yield) {
				return nil
			}
		} else {
			limit, head, err := r.ahead(ctx)
			if err != nil {
				return err
			}
			if limit > at && !r.emit(ctx, &c, limit, head, decoding(yield)) {
				return nil
			}
		}
		if c.off > at {
			pause = pollFirst
			continue
		}
		if notified() {
			pause = pollNotified
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-r.closed:
		case <-wake:
		case <-timer.C:
		}
		pause = min(2*pause, pollLast)
	}
}

// take is emit for commits that are in memory already.
func (c *cursor) take(list []entry, yield func(journal.Commit, error) bool) bool {
	for _, e := range list {
		v := c.order.place(e.commit.Epoch, journal.Damage{Seq: e.commit.Seq, Offset: e.start, Length: e.size})
		c.off = e.start + e.size
		if !report(c, v.lost, yield) || v.commit && v.seq >= c.from && !yield(e.commit, nil) {
			return false
		}
	}
	return true
}

// ahead is visible for a follower: it returns an error for a log that was removed, because such a log will not grow.
// If the log was deleted before the follower opened it, the follower waits: the next owner begins the log again.
func (r *reader) ahead(ctx context.Context) (limit int64, head uint64, err error) {
	limit, head, err = r.visible(ctx)
	if err == nil && r.synced == nil && r.ino != 0 && r.gone() {
		err = fmt.Errorf("follow %s: it was deleted or moved away: %w", r.dir, journal.ErrNotFound)
	}
	return limit, head, err
}

// hub notifies followers in this process that a folder's log has grown.
type hub struct {
	mu   sync.Mutex // held for moments only: owners come here with each commit
	dirs map[string]*dirSubs
}

type dirSubs struct {
	chans  map[chan struct{}]struct{}
	owners int    // owners in this process
	owner  *owner // the newest of them
}

var theHub = hub{dirs: map[string]*dirSubs{}}

// dirKey returns the same text for a folder, by whichever path it was reached.
func dirKey(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// change changes the hub's record of a folder.
func (h *hub) change(key string, by func(*dirSubs)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[key]
	if d == nil {
		d = &dirSubs{chans: map[chan struct{}]struct{}{}}
		h.dirs[key] = d
	}
	by(d)
	if len(d.chans) == 0 && d.owners == 0 {
		delete(h.dirs, key)
	}
}

// own adds an owner of the folder in this process, or removes it. It wakes the followers: when the owner has ended,
// the next one may be another process.
func (h *hub) own(key string, o *owner, by int) {
	h.change(key, func(d *dirSubs) {
		d.owner, d.owners = o, d.owners+by
		d.wake()
	})
}

// tail returns the newest commits in the memory of the folder's owner, if that owner is in this process and writes
// the log with this inode; else nil.
func (h *hub) tail(key string, ino uint64) *tail {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.dirs[key]; d != nil && d.owner != nil && d.owner.ino == ino {
		return &d.owner.tail
	}
	return nil
}

// few is the number of followers that the saving goroutine wakes by itself; more would delay its own work, so it
// leaves them to the owner's flusher.
const (
	few      = 8
	everyone = 1 << 30
)

// notify wakes the folder's followers, if there are at most most of them.
func (h *hub) notify(key string, most int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[key]
	if d != nil && len(d.chans) > most {
		return false
	}
	d.wake()
	return true
}

func (d *dirSubs) wake() {
	if d == nil {
		return
	}
	for c := range d.chans {
		select {
		case c <- struct{}{}:
		default: // a notification is pending already
		}
	}
}

// subscribe returns a channel that gets a value when an owner in this process has synced a commit of the folder's
// log. cancel must be called.
func (h *hub) subscribe(key string) (c <-chan struct{}, cancel func()) {
	ch := make(chan struct{}, 1)
	h.change(key, func(d *dirSubs) { d.chans[ch] = struct{}{} })
	return ch, func() { h.change(key, func(d *dirSubs) { delete(d.chans, ch) }) }
}
