package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// Watcher parses Roo's files again and again while other processes write them.
// Before the first projection a file may be absent; once seen it must stay.
type Watcher struct {
	quit chan struct{}
	ask  chan chan struct{} // closed behind the next look
	done sync.WaitGroup
	errs []error
	read int
}

// Watch watches every task folder directly below dirs.
func Watch(dirs ...string) *Watcher {
	w := &Watcher{quit: make(chan struct{}), ask: make(chan chan struct{})}
	w.done.Go(func() {
		seen := map[string]bool{}
		var asked chan struct{}
		for {
			for _, dir := range dirs {
				w.look(filepath.Join(dir, "_index.json"), seen)
				folders, _ := os.ReadDir(dir) // it comes into being while we watch
				for _, f := range folders {
					if !f.IsDir() { // Roo's index lies beside the folders
						continue
					}
					for _, name := range historyFiles {
						w.look(filepath.Join(dir, f.Name(), name), seen)
					}
				}
			}
			if asked != nil {
				close(asked)
				asked = nil
			}
			select {
			case <-w.quit:
				return
			case asked = <-w.ask:
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return w
}

// Look returns when all has been looked at once more.
func (w *Watcher) Look() {
	over := make(chan struct{})
	w.ask <- over
	<-over
}

func (w *Watcher) look(path string, seen map[string]bool) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if seen[path] {
			w.note(fmt.Errorf("%s is gone", path))
		}
	case err != nil:
		w.note(err)
	default:
		seen[path] = true
		w.read++
		if !esjson.Valid(data) {
			w.note(fmt.Errorf("%s is not JSON: %d bytes, %.80q", path, len(data), data))
		}
	}
}

func (w *Watcher) note(err error) {
	if len(w.errs) < 10 { // the same trouble again and again says no more
		w.errs = append(w.errs, err)
	}
}

// Stop ends the watching and returns how many files were read and what was wrong.
func (w *Watcher) Stop() (int, error) {
	close(w.quit)
	w.done.Wait()
	return w.read, errors.Join(w.errs...)
}
