package watch

import "sync"

// hub is the system's one handle of this process, and who holds which of its marks. A
// user may have only 128 such handles.
type hub struct {
	mu    sync.Mutex // held for moments only
	sys   system
	open  bool
	marks map[int32]*mark
}

// mark is one folder that the system watches, for one or more watchers. A folder may have
// two names, where it is mounted twice.
type mark struct {
	whole   bool
	holders map[holder]bool
}

type holder struct {
	w   *Watcher
	dir string
}

// event is one report of the system.
type event struct {
	mark int32  // the folder; not looked at where lost is set
	name string // of what changed in it
	gone bool   // the folder itself was moved, removed or unmounted
	over bool   // the system has taken the mark away
	lost bool   // events were thrown away
}

// system is how an operating system reports changes.
type system interface {
	open() error
	// add marks a folder and gives its number: the same one for the same folder. It does
	// not follow a link.
	add(dir string, whole bool) (mark int32, err error)
	remove(mark int32)
	// read gives what has happened up to now, without waiting. An error is the end of it.
	read(each func(event)) error
	close()
}

var theHub = &hub{sys: newSystem()}

// hold marks a folder for a watcher.
func (h *hub) hold(w *Watcher, dir string, whole bool) (int32, bool) {
	if !h.open {
		if h.sys.open() != nil {
			return 0, false
		}
		h.open, h.marks = true, map[int32]*mark{}
	}
	id, err := h.sys.add(dir, whole)
	if err != nil {
		h.leave()
		return 0, false
	}
	m := h.marks[id]
	if m == nil {
		m = &mark{holders: map[holder]bool{}}
		h.marks[id] = m
	}
	m.holders[holder{w, dir}] = true
	m.whole = m.whole || whole
	return id, true
}

// release releases a mark; a mark without an owner stays.
func (h *hub) release(w *Watcher, dir string, id int32) {
	m := h.marks[id]
	if m == nil {
		return
	}
	if delete(m.holders, holder{w, dir}); len(m.holders) == 0 {
		delete(h.marks, id)
		h.sys.remove(id)
	}
}

// leave closes the handle when no watcher needs it.
func (h *hub) leave() {
	if h.open && len(h.marks) == 0 {
		h.sys.close()
		h.open = false
	}
}

// drain passes on the events that the system holds.
func (h *hub) drain() {
	if !h.open {
		return
	}
	err := h.sys.read(h.pass)
	if err != nil {
		h.missed()
	}
	h.leave()
}

func (h *hub) pass(e event) {
	if e.lost {
		h.missed()
		return
	}
	m := h.marks[e.mark]
	if m == nil {
		return // of a mark that was taken off
	}
	for at := range m.holders {
		switch {
		case e.gone || e.over:
			at.w.gone(at.dir)
		case m.whole:
			at.w.changed(at.dir, e.name)
		}
	}
}

// missed marks all watchers: they may have missed events.
func (h *hub) missed() {
	all := map[*Watcher]bool{}
	for _, m := range h.marks {
		for at := range m.holders {
			all[at.w] = true
		}
	}
	for w := range all {
		w.miss()
	}
}
