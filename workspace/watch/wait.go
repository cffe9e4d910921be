package watch

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"
)

// How often Wait polls: the events of the system, which costs one call, and the files that are not covered, one stat
// each. Waking up by the system instead would need a goroutine; a user takes these pauses for "at once".
const (
	waitTick = 250 * time.Millisecond
	waitPoll = 4 // ticks
)

// Wait waits until there is something to take. It returns the context's error when that
// ends first. One call at a time.
func (w *Watcher) Wait(ctx context.Context) error {
	stamps := map[string]stamp{}
	w.poll(stamps, true)
	ticker := time.NewTicker(waitTick)
	defer ticker.Stop()
	for n := 1; !w.some(); n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if n%waitPoll == 0 {
			w.poll(stamps, false)
		}
	}
	return nil
}

func (w *Watcher) some() bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.drain()
	return w.lost || len(w.hints) > 0
}

// stamp is what a stat reports of a file.
type stamp struct {
	there bool
	mode  os.FileMode
	size  int64
	mtime time.Time
}

// poll looks at the files that are not covered and notes those that look another way
// than in stamps; those that first only fills are no news.
func (w *Watcher) poll(stamps map[string]stamp, first bool) {
	w.hub.mu.Lock()
	paths := slices.Collect(maps.Keys(w.polled))
	w.hub.mu.Unlock()
	for _, real := range paths { // outside the lock: a file server may take its time
		now := stamp{}
		if info, err := os.Lstat(real); err == nil {
			now = stamp{true, info.Mode(), info.Size(), info.ModTime()}
		}
		was, known := stamps[real]
		stamps[real] = now
		if known && was != now && !first {
			w.hub.mu.Lock()
			w.hint(real)
			w.hub.mu.Unlock()
		}
	}
}
