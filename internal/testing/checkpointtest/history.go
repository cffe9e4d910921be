package checkpointtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// History is what one task's checkpoints are, by the rules. Its caller reports every moment at which the task looks
// at files, with a picture of the workspace.
type History struct {
	known  Tree                // the content of each tracked path when the task looked last
	steps  map[string][]step   // per path, in order
	points map[int]pointOfTime // by number of the checkpoint
	newest int
}

// step is one change of a tracked path.
type step struct {
	number   int // the checkpoint that recorded it
	from, to Node
	others   bool // not by the task, its commands or a restore
}

func (s step) String() string {
	who := "the task"
	if s.others {
		who = "others"
	}
	return fmt.Sprintf("c%d: %s made %s of %s", s.number, who, s.to, s.from)
}

// Story is what a path went through, for the report of a failure.
func (h *History) Story(path string) string {
	var b strings.Builder
	for _, s := range h.steps[path] {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	return b.String()
}

type pointOfTime struct {
	known Tree
	held  map[string]bool // the paths that were tracked by then
}

// NewHistory is that of a task that has done nothing.
func NewHistory() *History {
	return &History{known: Tree{}, steps: map[string][]step{}, points: map[int]pointOfTime{0: {}}}
}

// Tracks reports whether the task, or a command of its, ever touched a path.
func (h *History) Tracks(path string) bool { _, ok := h.steps[path]; return ok }

// Paths are all of those, sorted.
func (h *History) Paths() []string { return slices.Sorted(maps.Keys(h.steps)) }

// Newest is the number of the newest checkpoint.
func (h *History) Newest() int { return h.newest }

// Look records the content of paths before the task changes them. A difference from what the task left is a step of
// others. It reports whether there was any difference.
func (h *History) Look(number int, paths []string, now Tree) bool {
	news := false
	for _, path := range paths {
		if !h.Tracks(path) {
			h.steps[path] = nil
			h.set(path, now[path])
			h.first(number, path)
			news = true
		} else if was := h.known[path]; was != now[path] {
			h.step(path, step{number, was, now[path], true})
			news = true
		}
	}
	return news
}

// Change records what the task did: paths at which the picture after it differs from
// the one before.
func (h *History) Change(number int, paths []string, before, after Tree) bool {
	news := h.Look(number, paths, before)
	for _, path := range paths {
		if before[path] != after[path] {
			h.step(path, step{number, before[path], after[path], false})
			news = true
		}
	}
	return news
}

// first makes a path that is tracked from now on known at all earlier checkpoints, with its content before the first
// change.
func (h *History) first(number int, path string) {
	for n, p := range h.points {
		if n < number {
			p.set(path, h.known[path])
			h.points[n] = p
		}
	}
}

func (h *History) step(path string, s step) {
	h.steps[path] = append(h.steps[path], s)
	h.set(path, s.to)
}

func (h *History) set(path string, n Node) { h.known.Set(path, n) }

func (p *pointOfTime) set(path string, n Node) {
	if p.held == nil {
		p.known, p.held = Tree{}, map[string]bool{}
	}
	p.known.Set(path, n)
	p.held[path] = true
}

// Save closes a checkpoint: the state of all tracked paths as the task knows it now.
func (h *History) Save(number int) {
	p := pointOfTime{}
	for path := range h.steps {
		p.set(path, h.known[path])
	}
	h.points[number], h.newest = p, number
}

// Rule is what becomes of files that others changed.
type Rule string

// The rules, as --on-conflict names them.
const (
	Keep      Rule = "keep"
	Merge     Rule = "merge"
	Overwrite Rule = "overwrite"
)

// Plan is what a restore should do.
type Plan struct {
	After   Tree     // the workspace then
	Changed []string // sorted
	Kept    []string // sorted: those that others changed and that stay as they are
}

// Restore returns what going to a checkpoint does to a workspace.
func (h *History) Restore(to int, now Tree, rule Rule) Plan { return h.Rewind(to, nil, now, rule) }

// Rewind is Restore where some files go to checkpoints of their own.
func (h *History) Rewind(number int, of map[string]int, now Tree, rule Rule) Plan {
	p := Plan{After: now.Clone()}
	for _, path := range h.Paths() {
		to, is := of[path]
		if !is {
			to = number
		}
		target, left := h.points[to].known[path], now[path]
		if left == target {
			continue
		}
		put, ok := target, true
		if left != h.known[path] || h.othersSince(path, to) {
			switch rule {
			case Keep:
				put, ok = left, false
			case Merge:
				put, ok = h.undone(path, to, left)
			}
		}
		if !ok {
			p.Kept = append(p.Kept, path)
		}
		if put != left {
			p.After.Set(path, put)
			p.Changed = append(p.Changed, path)
		}
	}
	return p
}

func (h *History) othersSince(path string, number int) bool {
	return slices.ContainsFunc(h.steps[path], func(s step) bool { return s.number > number && s.others })
}

// undone takes the task's own steps since a checkpoint out of a file, newest first. All lines of the tests' files are
// in slots that are far apart, so that a merge is right exactly if each slot is. A step that is no change of slots
// cannot be taken out.
func (h *History) undone(path string, to int, now Node) (Node, bool) {
	n := now
	for _, s := range slices.Backward(h.steps[path]) {
		if s.number <= to || s.others {
			continue
		}
		var ok bool
		if n, ok = merged(s.to, s.from, n); !ok {
			return now, false
		}
	}
	return n, true
}

// merged applies the way from base to to onto ours.
func merged(base, to, ours Node) (Node, bool) {
	if ours == base {
		return to, true
	}
	if ours == to {
		return ours, true
	}
	if base.Link || to.Link || ours.Link || base == (Node{}) || to == (Node{}) || ours == (Node{}) {
		return ours, false
	}
	if base.Mode != to.Mode && ours.Mode != base.Mode && ours.Mode != to.Mode {
		return ours, false
	}
	if base.Mode != to.Mode {
		ours.Mode = to.Mode
	}
	if ours.Data == base.Data {
		ours.Data = to.Data
		return ours, true
	}
	b, t, o := strings.Split(base.Data, "\n"), strings.Split(to.Data, "\n"), strings.Split(ours.Data, "\n")
	if len(b) != len(t) || len(t) != len(o) {
		return ours, base.Data == to.Data
	}
	for i := range b {
		switch {
		case b[i] == t[i], o[i] == t[i]:
		case o[i] == b[i]:
			o[i] = t[i]
		default:
			return ours, false
		}
	}
	ours.Data = strings.Join(o, "\n")
	return ours, true
}
