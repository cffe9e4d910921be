package feed

import (
	"cmp"
	"maps"
	"slices"
)

// Task names a task of a root.
type Task struct{ Source, ID string }

// told is how far a task was told.
type told struct {
	epoch, to uint64
	open      bool // its owner has not let it go, as far as was told
}

// table is how far each task was told at some place. It is the fold of all lines before.
type table map[Task]told

// add folds a line and gives the commits that it makes known, none when to is less than
// from. From 0 stands for the first commit since the log was begun, or the line's own
// From if that comes first.
func (t table) add(l Line) (from, to uint64) {
	key := Task{l.Source, l.Task}
	k, known := t[key]
	switch {
	case !known && l.From > 1:
		from = 0
	case !known:
		from = 1
	case l.Epoch < k.epoch: // of an owner before: whoever came behind it tells what it left
		return 1, 0
	case l.Epoch > k.epoch && l.From > 0 && l.From <= k.to:
		from = l.From // an older copy of the journal was put back, and goes on
	default:
		from = k.to + 1
	}
	t[key] = told{epoch: l.Epoch, to: max(l.To, from-min(from, 1)), open: !l.End}
	return from, l.To
}

// rows are lines that fold into the table again.
func (t table) rows() []byte {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
	})
	var b []byte
	for _, k := range keys {
		row := t[k]
		b = Line{Source: k.Source, Task: k.ID, Epoch: row.epoch, From: row.to, To: row.to, End: !row.open}.append(b)
	}
	return b
}
