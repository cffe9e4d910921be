package stale

import (
	"time"

	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/watch"
)

// WatchFrom is the usual Options.WatchFrom: checking fewer files costs less than setting up a watcher.
const WatchFrom = 32

const (
	// fullCheckEvery bounds how long the watcher's silence is believed: there are ways to change a file that
	// no system reports. The silence counts only for files that the watcher promised to cover.
	fullCheckEvery = time.Second
)

// needsFullCheck takes in the watcher's hints and reports whether every file must be checked, hints or not.
// at is now, in Unix milliseconds.
func (t *Tracker) needsFullCheck(root string, at int64) bool {
	if t.watch == nil {
		if len(t.known.All()) < t.opt.WatchFrom {
			return true
		}
		t.watch = watch.New(root)
		return true
	}
	return t.takeHints() || t.commandRan || at < t.fullCheckAt || at-t.fullCheckAt >= fullCheckEvery.Milliseconds()
}

// takeHints marks the files that may have changed since they were checked. lost reports that the watcher
// missed changes.
func (t *Tracker) takeHints() (lost bool) {
	paths, lost := t.watch.Take()
	hints := make(map[string]bool, len(paths))
	for _, p := range paths {
		hints[p] = true
	}
	if !lost && len(hints) == 0 {
		return false
	}
	for _, o := range t.observations {
		o.watched = o.watched && !lost
		o.checkDue = o.checkDue || hints[o.path.Real]
	}
	return lost
}

// current reports whether an observation still holds: it is of the newest record, and nothing happened to
// the file since.
func (o *observation) current(seq uint64) bool {
	return o != nil && o.seq == seq && o.watched && !o.checkDue
}

// watchFile has the watcher cover a file. It comes before the file is checked.
func (t *Tracker) watchFile(o *observation, p workspace.Path) {
	if o.path = p; t.watch != nil {
		o.watched = t.watch.Watch(p.Real)
	}
}

// observation is the newest thing known about a file on disk.
type observation struct {
	seq      uint64 // the record that it began with
	path     workspace.Path
	state    workspace.FileState
	at       int64 // Unix milliseconds
	reread   bool  // the content was read again after its time stamps had settled
	watched  bool  // the watcher reports changes since the last check
	checkDue bool  // the file must be checked
}
