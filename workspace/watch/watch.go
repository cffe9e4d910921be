// Package watch reports which files may have changed, so that a caller need not check all of
// them again and again.
//
// A report is a hint and never a judgement: the caller compares the content of the files it
// names. A caller checks a file that Watch did not promise to cover each time.
//
// Only the folders that hold watched files are watched, and those on the way to them for
// being moved: a workspace of 20,000 files costs no more than the files that are of
// interest, and what its ignored folders hold costs nothing. All watchers of a process
// share one handle of the system. A watcher has at most Limit folders; it does not cover
// more.
//
// Linux only (inotify). Elsewhere, on file systems of a network (where others' changes are
// not reported), where the system has no more watches to give, and in folders that do not
// exist, nothing is covered. There Wait, for callers that want to know soon, checks the times
// of the files; Take returns nothing.
//
// Known limits, because of which a caller should check every file now and then in any case:
// the system reports a write through a mapping when the mapping ends, and reports neither a
// write through another hard link in a folder that is not watched nor a file system that is
// mounted over a folder.
package watch

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Limit is how many folders one watcher watches, with those on the way to them.
const Limit = 96

// Watcher watches files for one owner. It has no goroutine of its own. It is safe for
// concurrent use.
type Watcher struct {
	root  string
	limit int

	// All below is guarded by the hub's lock.
	hub     *hub
	folders map[string]*folder
	hints   map[string]bool
	lost    bool // something may have been missed
	polled  map[string]bool
	local   map[string]bool // by folder: it is on a file system that reports changes
	closed  bool
}

// folder is one folder that is watched.
type folder struct {
	mark  int32               // the system's number
	whole bool                // events of its files are reported, too
	names map[string][]string // watched files by their name in lower case: some file systems ignore case
}

// New makes a watcher for a workspace whose folder is root, absolute and with links
// followed. It opens nothing: the first file does.
func New(root string) *Watcher { return newWatcher(theHub, root) }

func newWatcher(h *hub, root string) *Watcher {
	return &Watcher{root: filepath.Clean(root), limit: Limit, hub: h}
}

// Watch watches a file, absolute and with links followed, which need not exist. When it returns true, Take reports
// each later change; otherwise the caller must check the file each time. Watching a file again costs next to nothing.
// After a hint, watch the file again before you check it.
func (w *Watcher) Watch(real string) bool {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.closed {
		return false
	}
	if w.cover(real) {
		delete(w.polled, real)
		return true
	}
	if w.polled == nil {
		w.polled = map[string]bool{}
	}
	w.polled[real] = true
	return false
}

func (w *Watcher) cover(real string) bool {
	dir, name := filepath.Dir(real), strings.ToLower(filepath.Base(real))
	if f := w.folders[dir]; f == nil || !f.whole {
		if !w.enter(dir) {
			return false
		}
	}
	f := w.folders[dir]
	if !slices.Contains(f.names[name], real) {
		f.names[name] = append(f.names[name], real)
	}
	return true
}

// enter watches a folder, and the folders above it for being moved, from the top: the marks above report a move that
// happens during this. The folders above the workspace are watched where that is allowed.
func (w *Watcher) enter(dir string) bool {
	way := wayTo(dir)
	fresh := 0
	for _, d := range way {
		if w.folders[d] == nil {
			fresh++
		}
	}
	if len(w.folders)+fresh > w.limit || !w.reports(dir) {
		return false
	}
	for i, d := range way {
		last := i == len(way)-1
		if f := w.folders[d]; f != nil && (f.whole || !last) {
			continue
		}
		if !w.mark(d, last) && (last || d == w.root || below(w.root, d)) {
			return false
		}
	}
	return true
}

// reports reports whether the file system under a folder reports changes by others.
func (w *Watcher) reports(dir string) bool {
	if local, known := w.local[dir]; known {
		return local
	}
	local, err := localFiles(dir)
	if err != nil {
		return false // it may be there the next time
	}
	if w.local == nil {
		w.local = map[string]bool{}
	}
	w.local[dir] = local
	return local
}

// mark asks the system to watch a folder.
func (w *Watcher) mark(dir string, whole bool) bool {
	id, ok := w.hub.hold(w, dir, whole)
	if !ok {
		return false
	}
	if f := w.folders[dir]; f != nil && f.mark != id {
		w.gone(dir) // the path is another folder by now
	}
	if w.folders == nil {
		w.folders = map[string]*folder{}
	}
	f := w.folders[dir]
	if f == nil {
		f = &folder{names: map[string][]string{}}
		w.folders[dir] = f
	}
	f.mark, f.whole = id, f.whole || whole
	return true
}

// Take returns the files that may have changed since the last call, and forgets them. all means that events may have
// been missed: then the caller must watch and check every file again. The result includes all that happened before
// the call.
func (w *Watcher) Take() (paths []string, all bool) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drain()
	paths, all = slices.Sorted(maps.Keys(w.hints)), w.lost
	clear(w.hints)
	w.lost = false
	return paths, all
}

// Close gives the handles back. A closed watcher covers nothing.
func (w *Watcher) Close() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	w.closed = true
	w.forget()
	w.hints, w.polled, w.lost = nil, nil, false
	h.leave()
}

// forget lets go of all folders.
func (w *Watcher) forget() {
	for dir, f := range w.folders {
		w.hub.release(w, dir, f.mark)
	}
	w.folders = nil
}

// changed records an event for a name in a folder.
func (w *Watcher) changed(dir, name string) {
	f := w.folders[dir]
	if f == nil {
		return
	}
	for _, real := range f.names[strings.ToLower(name)] {
		w.hint(real)
	}
}

// gone records that dir may be another folder by now, with other files below it.
func (w *Watcher) gone(dir string) {
	for d, f := range w.folders {
		if d != dir && !below(dir, d) {
			continue
		}
		for _, all := range f.names {
			for _, real := range all {
				w.hint(real)
			}
		}
		w.hub.release(w, d, f.mark)
		delete(w.folders, d)
		delete(w.local, d)
	}
}

func (w *Watcher) hint(real string) {
	if w.hints == nil {
		w.hints = map[string]bool{}
	}
	w.hints[real] = true
}

// miss records that the system did not report every event.
func (w *Watcher) miss() {
	w.lost = true
	w.forget()
}

// wayTo is a folder and all above it, from the top.
func wayTo(dir string) []string {
	var out []string
	for {
		out = append(out, dir)
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	slices.Reverse(out)
	return out
}

// below reports whether path is below dir.
func below(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && rest != "" && (rest[0] == filepath.Separator || strings.HasSuffix(dir, string(filepath.Separator)))
}
