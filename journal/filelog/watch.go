package filelog

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often a follower polls without a notification. With notifications it is a safety net; without them the follower
// depends on it, and the pause grows while no commit comes.
const (
	pollNotified = time.Second
	pollFirst    = 5 * time.Millisecond
	pollLast     = 250 * time.Millisecond
)

// few is up to how many followers the saving goroutine wakes itself; more would delay its own work, and it leaves
// them to the owner's flusher.
const (
	few      = 8
	everyone = 1 << 30
)

// hub notifies followers in this process that a folder's log may have grown. One hub and one system watcher serve the
// whole process, because a user may have only 128 of them; the watcher lives while anything is watched.
type hub struct {
	mu   sync.Mutex // held for moments only: owners come here with each commit
	dirs map[string]*dirSubs

	// The system's watches. Setting them up and taking them down may take the
	// kernel a tenth of a second. sys is taken before mu.
	sys     sync.Mutex
	open    func() (*fsnotify.Watcher, error)
	w       *fsnotify.Watcher
	done    chan struct{} // closed when w's goroutine has ended
	watched map[string]bool
}

type dirSubs struct {
	chans    map[chan struct{}]struct{}
	owners   int         // owners in this process: they notify directly
	owner    *owner      // the newest of them
	notified atomic.Bool // followers are notified
}

var theHub = newHub(fsnotify.NewWatcher)

func newHub(open func() (*fsnotify.Watcher, error)) *hub {
	return &hub{dirs: map[string]*dirSubs{}, open: open, watched: map[string]bool{}}
}

// dirKey is one name for a folder, however it was reached.
func dirKey(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

func (h *hub) dir(key string) *dirSubs {
	d := h.dirs[key]
	if d == nil {
		d = &dirSubs{chans: map[chan struct{}]struct{}{}}
		h.dirs[key] = d
	}
	return d
}

func (h *hub) drop(key string) {
	if d := h.dirs[key]; d != nil && len(d.chans) == 0 && d.owners == 0 {
		delete(h.dirs, key)
	}
}

// own counts an owner of the folder in this process in or out. While there is one, it notifies the followers itself,
// and the system's events, two for each sync, would only be dropped. When it ends, the next owner may be another
// process.
func (h *hub) own(key string, o *owner, by int) {
	h.mu.Lock()
	d := h.dir(key)
	d.owners += by
	d.owner = o
	followed := len(d.chans) > 0
	h.drop(key)
	h.mu.Unlock()
	if followed {
		h.settle(key)
		h.notify(key, everyone) // no event reported the changes in between
	}
}

// settle brings the system's watches in step with what is wanted of a folder.
func (h *hub) settle(key string) {
	h.sys.Lock()
	defer h.sys.Unlock()
	h.mu.Lock()
	d := h.dirs[key]
	want := d != nil && len(d.chans) > 0 && d.owners == 0
	h.mu.Unlock()
	switch {
	case want && !h.watched[key]:
		if h.w == nil {
			w, err := h.open()
			if err != nil {
				break // then followers look by themselves
			}
			h.w, h.done = w, make(chan struct{})
			go h.listen(w, h.done)
		}
		if h.w.Add(key) == nil {
			h.watched[key] = true
		}
	case !want && h.watched[key]:
		delete(h.watched, key)
		_ = h.w.Remove(key) // gone with the folder, or now
	}
	h.mu.Lock()
	if d := h.dirs[key]; d != nil {
		d.notified.Store(d.owners > 0 || h.watched[key])
	}
	h.mu.Unlock()
	if h.w != nil && len(h.watched) == 0 {
		_ = h.w.Close()
		<-h.done
		h.w, h.done = nil, nil
	}
}

// notify wakes the folder's followers, if there are at most so many.
func (h *hub) notify(key string, most int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[key]
	if d != nil && len(d.chans) > most {
		return false
	}
	h.wake(d)
	return true
}

// tail is what the folder's owner has in memory, if that is in this process and
// writes the very log that is meant; else nil.
func (h *hub) tail(key string, ino uint64) *tail {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.dirs[key]; d != nil && d.owner != nil && d.owner.ino == ino {
		return &d.owner.tail
	}
	return nil
}

func (h *hub) wake(d *dirSubs) {
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

// subscribe returns a channel that is sent to when the folder's log may have
// grown, and whether that can be relied on by now. cancel must be called.
func (h *hub) subscribe(key string) (c <-chan struct{}, notified *atomic.Bool, cancel func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	d := h.dir(key)
	d.chans[ch] = struct{}{}
	alone := len(d.chans) == 1 || d.owners == 0 && !d.notified.Load()
	d.notified.Store(d.notified.Load() || d.owners > 0)
	h.mu.Unlock()
	if alone {
		h.settle(key)
	}
	return ch, &d.notified, func() { h.unsubscribe(key, ch) }
}

func (h *hub) unsubscribe(key string, ch chan struct{}) {
	h.mu.Lock()
	d := h.dirs[key]
	delete(d.chans, ch)
	last := len(d.chans) == 0
	h.drop(key)
	h.mu.Unlock()
	if last {
		h.settle(key)
	}
}

// listen passes the system's events on until w is closed.
func (h *hub) listen(w *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	for {
		select {
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			// The record is written after each sync; the log's own writes come
			// before the sync, when there is nothing to see yet.
			if ev.Op == fsnotify.Write && filepath.Base(ev.Name) != lockName {
				continue
			}
			h.mu.Lock()
			if d := h.dirs[filepath.Dir(ev.Name)]; d != nil && d.owners == 0 {
				h.wake(d)
			}
			h.mu.Unlock()
		case _, ok := <-w.Errors: // overflow: a follower may have missed an event
			if !ok {
				return
			}
			h.mu.Lock()
			for _, d := range h.dirs {
				h.wake(d)
			}
			h.mu.Unlock()
		}
	}
}
