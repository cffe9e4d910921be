package feed

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often Watch sends without a notification of the system.
const (
	pollWatched = time.Second            // a safety net while the system notifies
	pollBare    = 20 * time.Millisecond  // where the system does not
	pollNone    = 250 * time.Millisecond // for a folder that does not exist yet
)

// Watch sends when the log in a folder may have grown. stop ends it and waits.
func Watch(dir string) (wake <-chan struct{}, stop func()) {
	w := &watch{dir: dir, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	var wait sync.WaitGroup
	wait.Go(w.run)
	return w.wake, sync.OnceFunc(func() {
		close(w.quit)
		wait.Wait()
	})
}

type watch struct {
	dir  string
	wake chan struct{}
	quit chan struct{}
}

func (w *watch) run() {
	sys, err := fsnotify.NewWatcher()
	if err != nil {
		w.poll(pollBare) // the system limits the watchers of a user
		return
	}
	defer func() { _ = sys.Close() }()
	for watched := false; ; {
		if !watched {
			if _, err := os.Stat(w.dir); err == nil && sys.Add(w.dir) != nil {
				w.poll(pollBare)
				return
			} else if watched = err == nil; watched {
				w.notify() // lines may have come before the folder was watched
			}
		}
		timer := time.NewTimer(pollNone)
		if watched {
			timer.Reset(pollWatched)
		}
		select {
		case ev, ok := <-sys.Events:
			if ok && (ev.Op&(fsnotify.Remove|fsnotify.Rename) == 0 || filepath.Clean(ev.Name) != filepath.Clean(w.dir)) {
				w.notify()
				break
			}
			watched = false // the folder itself was removed
		case _, ok := <-sys.Errors: // something may have been missed
			if ok {
				w.notify()
			}
		case <-timer.C:
			w.notify()
		case <-w.quit:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (w *watch) poll(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.notify()
		case <-w.quit:
			return
		}
	}
}

func (w *watch) notify() {
	select {
	case w.wake <- struct{}{}:
	default: // a notification is waiting already
	}
}
