package store

import (
	"cmp"
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
)

// streamEvery is how often a Stream tells what it has read meanwhile: a person does
// not see more.
const streamEvery = 150 * time.Millisecond

// streamChunk is how many tasks are read between two looks at the clock.
const streamChunk = 16

// Stream is List for a person who waits: it gives how many tasks there are before
// one is opened, then the newest of those that the cache knows, reads those first
// that were probably changed last, and gives rows as they come: once when the first
// so many are there, else from time to time. The last partial is the whole list, with
// copies put together. Nothing is written but the cache.
func (s *Store) Stream(ctx context.Context, first int) iter.Seq2[api.ListPart, error] {
	return func(yield func(api.ListPart, error) bool) {
		cache := s.newListCache(catalog.ReadRows(ctx, s.opt.Cache, build(), true))
		defer cache.close()
		l, err := s.linesKnown(ctx, cache)
		if err != nil {
			yield(api.ListPart{}, err)
			return
		}
		defer l.closeDirs()
		defer l.keep(ctx) // also when the caller has left: what was read need not be read again
		if !yield(api.ListPart{Sources: slices.Clone(l.states), Of: len(l.all)}, nil) {
			return
		}
		known, stale := l.parted()
		left := false // the caller has left
		give := func(places []int) bool {
			if ctx.Err() != nil {
				return false
			}
			left = !yield(l.partial(ctx, places, len(l.all)-len(stale)), nil)
			return !left
		}
		if n := min(first, len(known)); n > 0 && !give(known[:n]) {
			return
		}
		if len(stale) > 0 && len(known) > first && !give(known[first:]) {
			return
		}
		for given := 0; len(stale) > 0; {
			var rows []int
			for from := time.Now(); len(stale) > 0 && time.Since(from) < streamEvery; {
				n := min(streamChunk, len(stale))
				l.read(ctx, stale[:n])
				rows, stale = append(rows, stale[:n]...), stale[n:]
				if given < first && given+len(rows) >= first {
					break
				}
			}
			if given += len(rows); !give(rows) {
				break
			}
		}
		if left {
			return // also when the context has ended by now
		}
		if err := ctx.Err(); err != nil {
			yield(api.ListPart{}, err)
			return
		}
		l.mark()
		var f Filter
		m := f.matcher()
		all := l.sorted(f, l.united(ctx, func(ln *entry) bool { return m.keeps(ln.row, l.srcs[ln.src].Name) }), 0)
		out := api.ListPart{Sources: l.tally(), Read: len(l.all), Of: len(l.all), Whole: true}
		for _, ln := range all {
			out.Items = append(out.Items, l.summary(ctx, ln))
		}
		yield(out, ctx.Err())
	}
}

// parted are the places of the tasks that are known as they are now, the newest
// first, and of those that must be read, in the order in which that is best done.
func (l *lines) parted() (known, stale []int) {
	stale = l.stale()
	read := make(map[int]bool, len(stale))
	for _, i := range stale {
		read[i] = true
	}
	for i := range l.all {
		if !read[i] && !l.all[i].hidden {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(l.all[b].row.TS, l.all[a].row.TS) })
	l.byChange(stale)
	return known, stale
}

// partial are the rows of some places, and the counts as far as tasks are known.
func (l *lines) partial(ctx context.Context, places []int, read int) api.ListPart {
	out := api.ListPart{Sources: slices.Clone(l.states), Read: read, Of: len(l.all)}
	for i := range l.all {
		ln := &l.all[i]
		src := &out.Sources[ln.src]
		switch {
		case ln.hidden || ln.sum == nil && !ln.row.Known:
		case ln.row.Empty:
			src.Empty++
			src.Tasks--
		case ln.row.Damaged && !ln.lost:
			src.Damaged++
		}
	}
	for _, i := range places {
		if ln := &l.all[i]; !ln.hidden && !ln.row.Empty {
			out.Items = append(out.Items, l.summary(ctx, ln))
		}
	}
	return out
}

// byChange orders places by when their tasks probably changed last, the newest first.
// It is a guess for the price of one file for each storage: what its index says, else
// the time that is in an id, and only without both the folder's own time. Looking at
// each file would be surer; on a cold disk it takes seconds. Where the guess is wrong
// rows only come in another order.
func (l *lines) byChange(places []int) {
	indexes := map[string]*roofmt.Rows{} // by tasks folder
	changed := make(map[int]int64, len(places))
	for _, i := range places {
		ref := l.ref(&l.all[i])
		tasks := filepath.Dir(ref.Dir)
		rows := indexes[tasks]
		if rows == nil {
			rows, _ = roofmt.ReadRows(tasks) // of a damaged one there is what is whole
			indexes[tasks] = rows
		}
		ts, _ := esjson.GetInt(rows.Row(filepath.Base(ref.Dir)), "ts")
		if ts <= 0 {
			ts = infer.TimeOfID(ref.ID)
		}
		if ts <= 0 {
			ts = changedAt(ref.Dir)
		}
		if dirs := l.dirs[l.all[i].src]; dirs != nil && dirs.has[ref.ID] { // it was continued here
			ts = max(ts, changedAt(filepath.Join(ref.Log, "journal.jsonl")))
		}
		changed[i] = ts
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(changed[b], changed[a]) })
}

// changedAt is when a file or folder was written, in Unix milliseconds; 0 when that
// is unknown.
func changedAt(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixMilli()
}
