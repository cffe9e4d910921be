package filelog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/fsnotify/fsnotify"

	"github.com/roost-dev/roost/journal"
)

// Follow implements journal.Reader. While the log's owner lives in this process,
// a follower that has caught up takes the commits from its memory, once they are
// synced; else it reads the file. Both give the same commits.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, notified, cancel := theHub.subscribe(r.key)
		defer cancel()
		if err := r.follow(ctx, from, wake, notified.Load, yield); err != nil {
			yield(journal.Commit{}, err)
		}
	}
}

// follow returns nil when the consumer wants no more.
func (r *reader) follow(ctx context.Context, from uint64, wake <-chan struct{}, notified func() bool,
	yield func(journal.Commit, error) bool) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	limit, _, err := r.visible()
	if err != nil {
		return err
	}
	c, head := r.start(from, limit), uint64(0)
	timer := time.NewTimer(pollNotified)
	defer timer.Stop()
	for pause := pollFirst; ; {
		at := c.off
		list, near := r.handed(c.off)
		if near {
			if !c.take(list, yield) {
				return nil
			}
		} else {
			if limit, head, err = r.ahead(); err != nil {
				return err
			}
			if limit > c.off && !r.emit(ctx, &c, limit, head, yield) {
				return nil
			}
		}
		if c.off > at {
			pause = pollFirst
		} else {
			if notified() {
				pause = pollNotified
			}
			r.sleep(ctx, wake, timer, pause)
			pause = min(2*pause, pollLast)
		}
		if err := r.check(ctx); err != nil {
			return err
		}
	}
}

// handed gives the next commits from the memory of an owner in this process. ok
// is false when there is none, or it does not go back as far.
func (r *reader) handed(off int64) (list []entry, ok bool) {
	if t := theHub.tail(r.key, r.ino); t != nil {
		return t.from(off)
	}
	return nil, false
}

// take is what emit does, with commits that need not be read.
func (c *cursor) take(list []entry, yield func(journal.Commit, error) bool) bool {
	for _, e := range list {
		v := c.order.place(e.commit.Epoch, journal.Damage{Seq: e.commit.Seq, Offset: e.start, Length: e.size})
		c.off = e.start + e.size
		for _, d := range v.lost {
			if d.Seq >= c.from && !yield(journal.Commit{}, &journal.DamageError{Damage: d}) {
				return false
			}
		}
		if v.commit && v.seq >= c.from && !yield(e.commit, nil) {
			return false
		}
	}
	return true
}

// sleep waits until there may be more.
func (r *reader) sleep(ctx context.Context, wake <-chan struct{}, timer *time.Timer, pause time.Duration) {
	timer.Reset(pause)
	select {
	case <-ctx.Done():
	case <-r.closed:
	case <-wake:
	case <-timer.C:
	}
}

// ahead is visible for a caller that waits: a log that is gone will not grow. For one that was deleted before it was
// opened the caller waits: its next owner begins it again.
func (r *reader) ahead() (limit int64, head uint64, err error) {
	limit, head, err = r.visible()
	if err == nil && r.synced == nil && r.ino != 0 && r.gone() {
		err = fmt.Errorf("follow %s: it was deleted or moved away: %w", r.dir, journal.ErrNotFound)
	}
	return limit, head, err
}

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

// tailBytes is how much of the log's end an owner keeps in memory for followers
// in its own process: some turns. Whoever is further behind reads the file.
const tailBytes = 64 << 10

// entry is a commit and the bytes of the log that it takes.
type entry struct {
	commit journal.Commit
	start  int64
	size   int64
}

// handover gives a commit as a reader of its line would find it. Followers in
// this process get it without the way through the disk, and must not see a
// difference.
func handover(c journal.Commit, line []byte) entry {
	e := entry{commit: c, size: int64(len(line))}
	plain := utf8.ValidString(c.By)
	for _, event := range c.Events {
		plain = plain && bytes.IndexByte(event, '\n') < 0 && bytes.IndexByte(event, '\r') < 0
	}
	if !plain { // the line spells it in other bytes
		if back, err := journal.DecodeCommit(line); err == nil {
			e.commit = back
		}
	}
	if len(e.commit.Blobs) == 0 {
		e.commit.Blobs = nil
	}
	return e
}

// tail is the newest synced commits of an owner, each beginning where the one before ends. It is bounded, so that a
// stuck follower costs nothing: it reads the file when it comes back. The newest commit is kept at any size: a
// follower that keeps up needs the disk for none.
type tail struct {
	mu      sync.Mutex
	entries []entry
	end     int64 // how far the log is synced
	bytes   int64
}

// begin sets the offset of the owner's first commit.
func (t *tail) begin(off int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.bytes, t.end = nil, 0, off
}

// add takes commits that were just synced.
func (t *tail) add(list []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range list {
		e.start = t.end
		t.end += e.size
		t.bytes += e.size
		t.entries = append(t.entries, e)
	}
	gone := 0
	for ; gone < len(t.entries)-1 && t.bytes > tailBytes; gone++ {
		t.bytes -= t.entries[gone].size
		t.entries[gone] = entry{} // the slice must not keep the payload
	}
	t.entries = t.entries[gone:]
}

// handed bounds what a follower takes at once: it copies this much while the
// owner would have to wait for it.
const handed = 64

// from returns the next commits after an offset of the log. ok reports whether the tail knows the offset; only then
// an empty list means that there is nothing more.
func (t *tail) from(off int64) (list []entry, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if off == t.end {
		return nil, true
	}
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start >= off })
	if i == len(t.entries) || t.entries[i].start != off {
		return nil, false
	}
	return append(list, t.entries[i:min(i+handed, len(t.entries))]...), true
}
