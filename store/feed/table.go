package feed

import (
	"cmp"
	"maps"
	"slices"
)

// Task names a task of a root.
type Task struct{ Source, ID string }

// announced is how far the log announces a task.
type announced struct {
	epoch, to uint64
	open      bool // the log has no line in which its owner releases it
}

// table is how far the log announces each task at some place: the fold of all lines before.
type table map[Task]announced

// add folds a line and gives the commits that it announces first; none when to is less than from. from 0 stands for the
// first commit since the log began, or the line's own From if that comes first.
func (t table) add(l Line) (from, to uint64) {
	key := Task{l.Source, l.Task}
	k, known := t[key]
	switch {
	case !known && l.From > 1:
		from = 0
	case !known:
		from = 1
	case l.Epoch < k.epoch: // of an earlier owner: a later owner announces what it left
		return 1, 0
	case l.Epoch > k.epoch && l.From > 0 && l.From <= k.to:
		from = l.From // an older copy of the journal was restored, and continued
	default:
		from = k.to + 1
	}
	t[key] = announced{epoch: l.Epoch, to: max(l.To, from-min(from, 1)), open: !l.End}
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
