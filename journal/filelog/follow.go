package filelog

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/inputfile"
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
		wake, cancel := theHub.Subscribe(r.key)
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

// hub holds the followers and the owners of this process, by their folders.
type hub struct {
	journal.Followers[string]
	mu     sync.Mutex
	owners map[string]int
}

var theHub = hub{owners: map[string]int{}}

// dirKey returns the same text for a folder, by whichever path it was reached.
func dirKey(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return inputfile.Resolved(dir)
}

// own adds an owner of the folder in this process, or removes it. It wakes the followers: when the owner has ended,
// the next one may be another process.
func (h *hub) own(key string, by int) {
	h.mu.Lock()
	if h.owners[key] += by; h.owners[key] == 0 {
		delete(h.owners, key)
	}
	h.mu.Unlock()
	h.Wake(key)
}

// owned reports whether this process owns the folder's log, and so wakes its followers.
func (h *hub) owned(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owners[key] > 0
}
