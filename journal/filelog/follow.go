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

// Follow implements journal.Reader.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, cancel := theHub.subscribe(r.key)
		defer cancel()
		if err := r.follow(ctx, from, wake, func() bool { return theHub.owned(r.key) }, yield); err != nil {
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
		limit, head, err := r.ahead(ctx)
		if err != nil {
			return err
		}
		if limit > at && !r.emit(ctx, &c, limit, head, decoding(yield)) {
			return nil
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
	owners int // owners in this process
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
func (h *hub) own(key string, by int) {
	h.change(key, func(d *dirSubs) {
		d.owners += by
		d.wake()
	})
}

// owned reports whether this process owns the folder's log, and so notifies its followers.
func (h *hub) owned(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[key]
	return d != nil && d.owners > 0
}

// notify wakes the folder's followers.
func (h *hub) notify(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs[key].wake()
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
