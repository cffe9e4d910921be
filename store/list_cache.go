package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
)

// rowsVersion is raised when rows are derived in another way. The program's file is
// part of the number as well, see build.
const rowsVersion = 4

// build is a number for each program that may derive rows in its own way. Developers forget
// to raise a version, so every other program file counts as one: the first list after
// an update reads every task once.
var build = sync.OnceValue(func() uint64 {
	digest := catalog.Mix(rowsVersion, uint64(os.PathSeparator))
	path, err := os.Executable()
	if err != nil {
		return digest
	}
	if info, err := os.Stat(path); err == nil {
		digest = catalog.Mix(catalog.Mix(digest, uint64(info.Size())), uint64(info.ModTime().UnixNano()))
	}
	return digest
})

// lostSources are the known storages at or below a path that cannot be read now. A source's
// name follows from where it really is, which cannot be found out now.
func lostSources(rows *catalog.Reading, src Source) (out []Source) {
	if src.err == nil {
		return nil
	}
	below := strings.TrimSuffix(src.Path, string(filepath.Separator)) + string(filepath.Separator)
	for _, known := range rows.Sources() {
		if known.Path == src.Path || strings.HasPrefix(known.Path, below) {
			out = append(out, Source{
				Name: known.Name, Tool: known.Tool, byPath: known.ByPath, Path: known.Path, Tasks: known.Tasks, err: src.err,
			})
		}
	}
	return out
}

// forgottenAfter is how long the catalogue remembers a storage that no list names.
const forgottenAfter = 100 * 24 * time.Hour

// seenEvery is how often a list notes that it saw a storage whose rows did not change.
const seenEvery = 24 * time.Hour

// keep gives the next list what this one read, if anything is new. A failure to keep
// it costs the next list time and is no error. A list that read little does not wait
// long for another writer, such as a search that fills the catalogue.
func (l *lines) keep(ctx context.Context) {
	if l == nil || l.indexes == nil || l.known.DB() == nil {
		return // nothing was compared, or nothing can be kept
	}
	var changes []catalog.Change
	wait := 20 * time.Millisecond
	for i := range l.srcs {
		if l.dirs[i] == nil || l.srcs[i].One { // of a storage of which one task is named, the rows are those of all its tasks
			continue
		}
		if ch, changed := l.change(i); changed {
			changes = append(changes, ch)
			wait += time.Duration(len(ch.Put)) * time.Millisecond
		}
	}
	if len(changes) == 0 {
		return
	}
	forget := l.s.opt.Now() - forgottenAfter.Milliseconds()
	err := l.known.DB().Keep(context.WithoutCancel(ctx), build(), changes, forget, min(wait, 5*time.Second))
	if catalog.Damaged(err) {
		_ = l.known.DB().SetAside() // the next list begins a new one
	}
}

// change is what this list found out about a source; false when that is nothing new.
func (l *lines) change(i int) (ch catalog.Change, changed bool) {
	src, known := l.srcs[i], l.knownOf(i)
	ch.Source = catalog.Source{
		Name: src.Name, Tool: src.Tool, ByPath: src.byPath, Path: src.Path, Tasks: src.Tasks,
		Problem: l.states[i].Problem, Indexes: l.indexes[i], Seen: l.s.opt.Now(), Compared: l.comparedAt(i),
	}
	there := make(map[string]bool, len(src.ids))
	of := l.of(i)
	for j := range of {
		ln := &of[j]
		row := ln.kept()
		there[row.ID] = true
		switch {
		case ln.fresh:
			ch.Put = append(ch.Put, row)
		case ln.verified:
			ch.Update = append(ch.Update, row)
		}
	}
	if known == nil {
		ch.Reset = true
		return ch, len(ch.Put) > 0
	}
	for j := range known.Rows {
		if id := known.Rows[j].ID; !there[id] {
			ch.Gone = append(ch.Gone, id)
		}
	}
	was, now := known.Source, ch.Source
	seen := time.Duration(now.Seen-was.Seen) * time.Millisecond
	was.Seen = now.Seen
	return ch, was != now || seen > seenEvery || len(ch.Put)+len(ch.Update)+len(ch.Gone) > 0
}

// indexDigest is a digest of the indexes beside the task folders; 0 when they changed
// just now.
func (s *Store) indexDigest(tasks string) uint64 {
	digest, now := uint64(1), s.clock()
	for _, p := range roofmt.RowPrints(tasks) {
		if p.Exists && !s.calm(p.MTime, now) {
			return 0
		}
		for _, n := range []int64{p.Size, p.MTime, int64(p.Inode)} {
			digest = catalog.Mix(digest, uint64(n))
		}
	}
	return digest | 1
}

// itemDigest is a digest of a task's entry in an index.
func (s *Store) itemDigest(dir string) uint64 {
	return catalog.MixText(1, string(s.rows.row(dir))) | 1
}
