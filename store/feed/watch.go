package feed

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often a log is looked at without having been told to: a safety net where the
// system tells, all there is where it does not.
const (
	pollTold = time.Second
	pollBare = 20 * time.Millisecond
	pollNone = 250 * time.Millisecond // for a folder that is not there yet
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
		w.poll(pollBare) // a user may have only so many
		return
	}
	defer func() { _ = sys.Close() }()
	for told := false; ; {
		if !told {
			if _, err := os.Stat(w.dir); err == nil && sys.Add(w.dir) != nil {
				w.poll(pollBare)
				return
			} else if told = err == nil; told {
				w.tell() // what came before it was watched
			}
		}
		timer := time.NewTimer(pollNone)
		if told {
			timer.Reset(pollTold)
		}
		select {
		case ev, ok := <-sys.Events:
			if ok && (ev.Op&(fsnotify.Remove|fsnotify.Rename) == 0 || filepath.Clean(ev.Name) != filepath.Clean(w.dir)) {
				w.tell()
				break
			}
			told = false // the folder itself went
		case _, ok := <-sys.Errors: // something may have been missed
			if ok {
				w.tell()
			}
		case <-timer.C:
			w.tell()
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
			w.tell()
		case <-w.quit:
			return
		}
	}
}

func (w *watch) tell() {
	select {
	case w.wake <- struct{}{}:
	default: // told already
	}
}
