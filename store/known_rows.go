package store

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
)

// shelves are the rows that the last list kept. Nil ones know nothing.
type shelves struct {
	s     *Store
	rows  *catalog.Rows
	build uint64
}

// rowsVersion is of what rows are derived and of how. The program's file is part of
// the number as well, see build.
const rowsVersion = 2

// build tells programs apart that may derive rows in different ways. Nobody remembers
// to raise a version for each of them, so every other program file counts as one: the
// first list after an update reads every task once.
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

// shelves opens what is kept in the cache folder. That there is nothing is no error. A
// process that lists again decodes only what is new in it: see catalog.ReopenRows. So
// shelves and their rows are not changed in place: several lists may have them in hand.
func (s *Store) shelves() *shelves {
	if s.opt.Cache == "" {
		return nil
	}
	k := &shelves{s: s, build: build()}
	rows, err := catalog.ReopenRows(s.opt.Cache, k.build, s.listed.Load())
	if err != nil {
		rows = &catalog.Rows{}
	}
	s.listed.Store(rows.Share())
	k.rows = rows
	return k
}

func (k *shelves) close() {
	if k != nil {
		k.rows.Close()
	}
}

// at are the shelves of a storage by the path that it was named by, and of those
// below it.
func (k *shelves) at(path string) []*catalog.Shelf {
	if k == nil {
		return nil
	}
	var out []*catalog.Shelf
	for _, sh := range k.rows.Shelves {
		if sh.Path == path || strings.HasPrefix(sh.Path, strings.TrimSuffix(path, string(filepath.Separator))+string(filepath.Separator)) {
			out = append(out, sh)
		}
	}
	return out
}

// still reports whether the folders of a shelf have the names that they had.
func still(sh *catalog.Shelf) bool {
	for _, d := range sh.Dirs {
		if g := glanceAt(d.Path); g == nil || g.digest != d.Digest {
			return false
		}
	}
	return len(sh.Dirs) > 0
}

func idsOf(sh *catalog.Shelf) []string {
	out := make([]string, len(sh.Rows))
	for i := range sh.Rows {
		out[i] = sh.Rows[i].ID
	}
	return out
}

// look is what a path holds, without reading the folder again when it is as it was.
func (k *shelves) look(ctx context.Context, path string) Source {
	if k == nil {
		return look(ctx, path)
	}
	for _, sh := range k.rows.Shelves {
		if sh.Path == path && sh.Name != OwnSource && still(sh) {
			return Source{Path: path, Tool: sh.ByPath, byPath: sh.ByPath, Tasks: sh.Tasks, ids: idsOf(sh), dirs: sh.Dirs, same: true}
		}
	}
	tasks := filepath.Join(path, "tasks")
	if filepath.Base(path) == "tasks" {
		tasks = path
	}
	dirs := k.dirsNow(path, tasks)
	src := look(ctx, path)
	if src.err == nil && !src.One && src.Tasks == tasks && !links(tasks) {
		src.dirs = dirs
	}
	return src
}

// lost are the storages that were known at a path, or below it, which cannot be
// looked into now. Their names are of where they really lie: that cannot be told now.
func (k *shelves) lost(src Source) (out []Source) {
	if src.err == nil {
		return nil
	}
	for _, sh := range k.at(src.Path) {
		out = append(out, Source{Name: sh.Name, Tool: sh.Tool, byPath: sh.ByPath, Path: sh.Path, Tasks: sh.Tasks, err: src.err})
	}
	return out
}

// own lists the tasks in Roost's root.
func (k *shelves) own(dir string) (ids []string, dirs []catalog.Dir, same bool, err error) {
	if k == nil {
		ids, err = names(dir)
		return ids, nil, false, err
	}
	if sh := k.rows.Shelf(OwnSource); sh != nil && sh.Tasks == dir && still(sh) {
		return idsOf(sh), sh.Dirs, true, nil
	}
	dirs = k.dirsNow(dir)
	ids, err = names(dir)
	if err != nil || links(dir) {
		dirs = nil
	}
	return ids, dirs, false, err
}

// dirsNow are folders as they look before their names are read, nil when a change
// that comes just after would not be seen.
func (k *shelves) dirsNow(paths ...string) []catalog.Dir {
	var out []catalog.Dir
	now := k.s.clock()
	for _, path := range slices.Compact(paths) {
		g := glanceAt(path)
		if g == nil || !k.s.calm(g.newest, now) {
			return nil
		}
		out = append(out, catalog.Dir{Path: path, Digest: g.digest})
	}
	return out
}

// links reports whether a folder has links among its entries, or cannot be read: what
// they lead to decides whether they are tasks.
func links(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Type()&os.ModeSymlink != 0 })
}

// indexPrint is a digest of the indexes beside the task folders; 0 when they changed
// just now.
func (s *Store) indexPrint(tasks string) uint64 {
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

// itemPrint is a digest of what an index says of a task.
func (s *Store) itemPrint(dir string) uint64 {
	return catalog.MixText(1, string(s.rows.row(dir))) | 1
}
