package agent

import (
	"time"

	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/watch"
)

// A watcher spares the look at the files that the model knows, where they are many and the
// turns are quick. It is only believed when it says that nothing changed, only about files
// that it promised to cover, and not for longer than lookAgain: there are ways of changing
// a file that no system tells of.
const lookAgain = time.Second

// watchFrom is from how many known files on a watcher is worth its handle: to look at a
// few costs less than to set it up.
var watchFrom = 32

// hinted takes in what the watcher tells, and reports whether all files are to be looked
// at, whatever it says. at is now, Unix milliseconds.
func (s *sight) hinted(root string, at int64) (all bool) {
	if s.watch == nil {
		if len(s.known.Files()) < watchFrom {
			return true
		}
		s.watch = watch.New(root)
		return true
	}
	return s.take() || s.commands || at < s.wholeAt || at-s.wholeAt >= lookAgain.Milliseconds()
}

// take notes which files may have changed since they were looked at.
func (s *sight) take() (lost bool) {
	paths, lost := s.watch.Take()
	hints := make(map[string]bool, len(paths))
	for _, p := range paths {
		hints[p] = true
	}
	if !lost && len(hints) == 0 {
		return false
	}
	for _, g := range s.glances {
		g.covered = g.covered && !lost
		g.dirty = g.dirty || hints[g.path.Real]
	}
	return lost
}

// calm reports whether a glance need not be repeated: nothing happened to the file since.
func (g *glance) calm(seq uint64) bool {
	return g != nil && g.seq == seq && g.covered && !g.dirty
}

// cover has a file watched, before it is looked at.
func (s *sight) cover(g *glance, p workspace.Path) {
	if g.path = p; s.watch != nil {
		g.covered = s.watch.Watch(p.Real)
	}
}

// close gives back what a run holds to look at files.
func (s *sight) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		s.watch.Close()
		s.watch = nil
	}
	for _, g := range s.glances {
		g.covered = false
	}
	s.texts.close()
}
