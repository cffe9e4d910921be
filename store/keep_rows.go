package store

import (
	"slices"
	"time"

	"github.com/roost-dev/roost/catalog"
)

// keep gives the rows to the next list, if there is something new in them. That
// nothing can be kept costs time and is no error.
func (l *lines) keep() {
	if l == nil || l.known == nil {
		return
	}
	l.drop()
	rows := l.known.rows
	if l.changed && !l.add() {
		rows = l.rewrite()
	}
	if rows != nil && l.seenAll() {
		_ = rows.NoteLook(l.s.opt.Cache, l.which(), l.begun) // the next one looks again
	}
}

// drop lets go of rows that have words of an index in them and were not compared with
// what it says now, because their tasks are hidden or nobody came to read them. While the
// index stays as it is, no later list would ask again.
func (l *lines) drop() {
	if l.indexes == nil {
		return // nothing was compared, and the shelves say so
	}
	for i := range l.all {
		ln := &l.all[i]
		if l.ground[ln.src] == nil || l.indexes[ln.src].same {
			continue
		}
		if row := ln.kept(); row.Known && row.Item != 0 && ln.sum == nil && (ln.hidden || ln.was) {
			ln.row, ln.base = catalog.NewRow(row.ID), nil
		}
	}
}

// shelf is what is said of a source, without its rows.
func (l *lines) shelf(i int) *catalog.Shelf {
	src := l.srcs[i]
	var indexes uint64
	if l.indexes != nil {
		indexes = l.indexes[i].print
	} else if old := l.known.rows.Shelf(src.Name); old != nil {
		indexes = old.Indexes // what they say now, no row was compared with
	}
	return &catalog.Shelf{
		Name: src.Name, Tool: src.Tool, ByPath: src.byPath, Path: src.Path, Tasks: src.Tasks, Seen: l.s.opt.Now(), Dirs: src.dirs,
		Indexes: indexes, Problem: l.states[i].Problem,
	}
}

// of are the lines of a source whose tasks lie there.
func (l *lines) of(i int) []entry {
	from := slices.IndexFunc(l.all, func(ln entry) bool { return int(ln.src) == i })
	if from < 0 {
		return nil
	}
	return l.all[from : from+min(l.srcs[i].listed, len(l.all)-from)]
}

// rewrite writes all rows, and gives what it wrote.
func (l *lines) rewrite() *catalog.Rows {
	l.known.rows.Hold()
	var fresh []*catalog.Shelf
	for i := range l.srcs {
		if l.ground[i] == nil {
			continue
		}
		sh := l.shelf(i)
		of := l.of(i)
		sh.Rows = make([]catalog.Row, 0, len(of))
		for _, ln := range of {
			row := *ln.kept()
			_ = l.known.rows.Load(&row) // one that cannot be loaded is kept as not known
			sh.Rows = append(sh.Rows, row)
		}
		fresh = append(fresh, sh)
	}
	return l.s.keep(l.known, fresh)
}

// keep writes the rows of a list for the next one, and gives what it wrote. Storages
// that this list did not name stay as another one knew them.
func (s *Store) keep(k *shelves, fresh []*catalog.Shelf) *catalog.Rows {
	old := k.rows
	if old.Changed(s.opt.Cache) {
		if newer, err := catalog.OpenRows(s.opt.Cache, k.build); err == nil {
			defer newer.Close()
			newer.LoadAll()
			old = newer
		}
	}
	k.rows.LoadAll()
	out := &catalog.Rows{Shelves: fresh}
	for _, sh := range old.Shelves {
		known := slices.ContainsFunc(fresh, func(f *catalog.Shelf) bool { return f.Name == sh.Name })
		if !known && s.opt.Now()-sh.Seen < int64(forgotten/time.Millisecond) {
			out.Shelves = append(out.Shelves, sh)
		}
	}
	if out.Write(s.opt.Cache, k.build) != nil {
		return nil
	}
	return out
}

// forgotten is how long a storage is remembered that no list looked into.
const forgotten = 100 * 24 * time.Hour

// add keeps only what is new, which takes as long as there is much of it. False: all
// must be written.
func (l *lines) add() bool {
	var list []catalog.Addition
	for i := range l.srcs {
		if l.ground[i] == nil {
			continue
		}
		a, ok := l.addition(i)
		if !ok {
			return false
		}
		if a.Moved || len(a.At) > 0 || len(a.Gone) > 0 {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return true
	}
	done, err := l.known.rows.Add(l.s.opt.Cache, list)
	return done && err == nil
}

// addition is what is new of a source; false when it is not known, or its tasks come
// in another order.
func (l *lines) addition(i int) (a catalog.Addition, ok bool) {
	old := l.known.rows.Shelf(l.srcs[i].Name)
	a.Shelf = l.shelf(i)
	if old == nil || old.Tool != a.Shelf.Tool || old.Tasks != a.Shelf.Tasks {
		return a, false
	}
	a.Moved = !slices.Equal(old.Dirs, a.Shelf.Dirs) || old.Indexes != a.Shelf.Indexes || old.Problem != a.Shelf.Problem ||
		old.ByPath != a.Shelf.ByPath || old.Path != a.Shelf.Path
	put := func(at int, ln *entry, fresh bool) {
		row := *ln.kept()
		_ = l.known.rows.Load(&row) // one that cannot be loaded is kept as not known
		a.Shelf.Rows, a.At, a.New = append(a.Shelf.Rows, row), append(a.At, at), append(a.New, fresh)
	}
	of := l.of(i)
	differs := func(j, k int) bool { return of[j].equal || of[j].kept() != &old.Rows[k] }
	if l.srcs[i].same && len(of) == len(old.Rows) {
		for j := range of {
			if differs(j, j) {
				put(j, &of[j], false)
			}
		}
		return a, true
	}
	places := make(map[string]int, len(old.Rows))
	for k := range old.Rows {
		places[old.Rows[k].ID] = k
	}
	next := 0 // of the old ones
	for j := range of {
		k, there := places[of[j].row.ID]
		switch {
		case !there:
			put(j, &of[j], true)
			continue
		case k < next:
			return a, false
		case differs(j, k):
			put(j, &of[j], false)
		}
		for ; next < k; next++ {
			a.Gone = append(a.Gone, next)
		}
		next = k + 1
	}
	for ; next < len(old.Rows); next++ {
		a.Gone = append(a.Gone, next)
	}
	return a, true
}

// indexLook is how the indexes beside the tasks of a source looked before a task of it was
// compared or read: what they say later, no row was compared with.
type indexLook struct {
	print uint64 // 0: they changed just now
	same  bool   // they say what they said when the rows were kept
}
