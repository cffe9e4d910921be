package checkpoint

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
)

// maxAttributed bounds the steps of a file whose contents are read to find the step that made a hunk.
const maxAttributed = 64

// StepsOf returns the changes of a path between two checkpoints, the oldest first. A newer side of -1 is the disk: a
// change after the newest checkpoint becomes a last step by others, with the checkpoint 0.
func StepsOf(all []Step, older, newer int, to api.FileVersion) (out []Step) {
	for _, s := range all {
		if s.Checkpoint > older && (newer < 0 || s.Checkpoint <= newer) {
			out = append(out, s)
		}
	}
	if newer >= 0 {
		return out
	}
	if n := len(all); n > 0 && !all[n-1].To.Same(to) {
		out = append(out, Step{From: all[n-1].To, To: to, Others: true})
	}
	return out
}

// Attribute finds, for each hunk of a difference, which steps made it, by their indexes in the list. A hunk gets nil
// where that is not known: contents are missing or too large, or the steps do not lead from one side to the other.
func (k *Keeper) Attribute(ctx context.Context, d api.FileDiff, steps []Step, fromDisk bool) [][]int {
	out := make([][]int, len(d.Hunks))
	if len(d.Hunks) == 0 || len(steps) == 0 || len(steps) > maxAttributed || !d.From.Same(steps[0].From) && present(d.From) {
		return out
	}
	text := func(v api.FileVersion, disk bool) ([][]byte, bool) {
		data, why, err := k.side(ctx, d.Path, v, maxMerge, disk)
		return splitLines(data), err == nil && why == "" && isText(data)
	}
	at, ok := text(d.From, false)
	if !ok {
		return out
	}
	h := newLines(len(at))
	for i, s := range steps {
		next, ok := text(s.To, fromDisk && i == len(steps)-1)
		if !ok || i > 0 && !steps[i-1].To.Same(s.From) {
			return out
		}
		h.step(i, diffLines(at, next), len(next))
		at = next
	}
	if !steps[len(steps)-1].To.Same(d.To) {
		return out
	}
	for i, hunk := range d.Hunks {
		out[i] = h.of(hunk)
	}
	return out
}

// lines follows each line of a text through steps.
type lines struct {
	made    []int // for each line now: the step that made it; -1 = it was there before
	was     []int // for each line now that was there before: its earlier index
	removed []int // for each earlier line: the step that removed it; -1 = none
}

func newLines(count int) *lines {
	l := &lines{}
	for i := range count {
		l.made, l.was, l.removed = append(l.made, -1), append(l.was, i), append(l.removed, -1)
	}
	return l
}

// step follows the edits of step n, after which the text has count lines.
func (l *lines) step(n int, edits []edit, count int) {
	made, was := make([]int, 0, count), make([]int, 0, count)
	at := 0
	keep := func(to int) {
		made, was = append(made, l.made[at:to]...), append(was, l.was[at:to]...)
		at = to
	}
	for _, e := range edits {
		keep(e.from)
		for _, line := range l.was[e.from:e.to] {
			if line >= 0 {
				l.removed[line] = n
			}
		}
		at = e.to
		for range e.newTo - e.newFrom {
			made, was = append(made, n), append(was, -1)
		}
	}
	keep(len(l.made))
	l.made, l.was = made, was
}

// of returns the steps that made a hunk, in order. Unchanged lines of the hunk count, too: such a line has a step
// only if it was removed and made again.
func (l *lines) of(h api.Hunk) (out []int) {
	add := func(list []int, from, count int) {
		for _, n := range list[min(from, len(list)):min(from+count, len(list))] {
			if n >= 0 && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	add(l.removed, place(h.From, h.FromLines), h.FromLines)
	add(l.made, place(h.To, h.ToLines), h.ToLines)
	slices.Sort(out)
	return out
}
