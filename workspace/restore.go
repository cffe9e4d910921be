package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/inputfile"
)

// RestoreStep is one entry to restore; see Restore.
type RestoreStep struct {
	Path     string // relative to the root, as on the disk
	From, To api.FileVersion
	Data     func() ([]byte, error)
}

// RestoreAll holds up to maxOpenRestores new files open and then syncs them, maxParallelSyncs at a time: the file
// system makes many of them durable with a few writes of its own log. One after the other, each sync would wait for
// the disk alone. A sync of the whole file system was rejected: it also waits for writes of other programs.
const (
	maxOpenRestores  = 128
	maxParallelSyncs = 16
)

// pendingRestore is one step between its start and its end.
type pendingRestore struct {
	at   int // the number of the step
	abs  string
	dir  *folder
	name string
	now  api.FileVersion
	to   api.FileVersion
	tmp  *temp
	link string // the target of a new link
}

// fill writes the new content to a temporary file beside the path, without syncing it.
func (c *pendingRestore) fill(ctx context.Context, content []byte) error {
	old, _ := c.dir.Lstat(c.name) // nil: there is no file, or replaceEntry reports why not
	var err error
	if c.tmp, err = createTemp(c.dir.Root, c.name, true); err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("its folder may not be written to: %w", at.Err) // without the name, which is our temporary one
		}
		return err
	}
	if err := c.tmp.fill(ctx, content); err != nil {
		return err
	}
	mode := fs.FileMode(c.to.Mode).Perm()
	if old != nil && old.Mode().IsRegular() {
		mode |= old.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	} else {
		old = nil
	}
	return c.tmp.like(mode, old)
}

// discard cancels the restore of one file and leaves no temporary file.
func (c *pendingRestore) discard() {
	if c.tmp != nil {
		c.tmp.discard()
	}
	c.dir.release(false)
}

// RestoreAll is Restore for many steps, in their order, except for the contents of files: it writes those of several
// files, then syncs them together, and only then renames them. It calls done once for each step that finished, not
// always in their order. It leaves alone a path at which entries may not be restored.
//
// After an error its step may be half done, for example when a folder was made for it. Steps without a call of done have
// otherwise changed nothing.
func (b *Restorer) RestoreAll(ctx context.Context, orders []RestoreStep, done func(i int, put RestoreResult)) (err error) {
	var open []*pendingRestore
	defer func() {
		for _, c := range slices.Backward(open) { // backward: a new folder can go once the steps in it are discarded
			c.discard()
		}
	}()
	named := func(i int, err error) error {
		return fmt.Errorf("put back %s: %w", filepath.ToSlash(orders[i].Path), err)
	}
	flush := func() error {
		for _, c := range open {
			writeback(c.tmp.f)
		}
		if i, err := forEachParallel(len(open), func(i int) error { return syncFile(open[i].tmp.f) }); err != nil {
			return named(open[i].at, err)
		}
		for len(open) > 0 {
			c := open[0]
			if err := ctx.Err(); err != nil {
				return named(c.at, err)
			}
			open = open[1:]
			put, err := b.finish(ctx, c)
			if err != nil {
				return named(c.at, err)
			}
			done(c.at, put)
		}
		return nil
	}
	for i, o := range orders {
		if err := ctx.Err(); err != nil {
			return named(i, err)
		}
		if !restorable(o.Path) {
			done(i, LeftAlone)
			continue
		}
		c, put, err := b.prepare(ctx, o)
		if err == nil && c != nil && c.tmp == nil {
			put, err = b.finish(ctx, c)
		}
		if err != nil {
			return named(i, err)
		}
		if c == nil || c.tmp == nil {
			done(i, put)
			continue
		}
		c.at = i
		if open = append(open, c); len(open) >= maxOpenRestores {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// forEachParallel calls do for the numbers below n, a few calls at a time. It returns the error of the lowest number, and
// that number.
func forEachParallel(n int, do func(i int) error) (failed int, err error) {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, maxParallelSyncs) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	wg.Wait()
	failed = max(0, slices.IndexFunc(errs, func(err error) bool { return err != nil }))
	return failed, cmp.Or(errs...)
}

// RestoreResult is the outcome of one step.
type RestoreResult int

// The results.
const (
	Restored     RestoreResult = iota // the path now holds the wanted entry
	AlreadyThere                      // the path held the wanted entry before
	LeftAlone                         // the path holds something else than expected, and nothing was changed
)

// Restorer restores entries at paths of one workspace, one at a time, and syncs the folders at the end. An entry is a
// file, a link (and not the file that it leads to) or nothing. A folder counts as nothing, since the path holds no file.
type Restorer struct {
	w       *Workspace
	touched map[string]bool
	swept   map[string]bool
}

// NewRestorer makes a Restorer. It is not safe for concurrent use.
func (w *Workspace) NewRestorer() *Restorer {
	return &Restorer{w: w, touched: map[string]bool{}, swept: map[string]bool{}}
}

// prepare does all the work of one step that changes nothing at its path. When it returns no pendingRestore the step
// is complete, and put is the result.
func (b *Restorer) prepare(ctx context.Context, o RestoreStep) (c *pendingRestore, put RestoreResult, err error) {
	from, to := o.From, o.To
	abs := filepath.Join(b.w.root, o.Path)
	if dir := filepath.Dir(abs); !b.swept[dir] {
		// Remove what a killed attempt left, even in folders swept before: a leftover would
		// also keep folders from being empty. A folder that cannot be looked through stays so.
		_, _ = b.w.Sweep(Path{Real: abs})
		b.swept[dir] = true
	}
	b.removeLeftoverLinks(abs, from, to)
	now, err := b.w.entryAt(ctx, o.Path)
	if err == nil && foreign(now) && (foreign(to) || to.Kind == api.KindGone && now.Dirs > 0) { // behind a link nothing is ours
		return nil, AlreadyThere, nil
	}
	if foreign(from) {
		from = api.FileVersion{Kind: api.KindGone}
	}
	if foreign(to) {
		to = api.FileVersion{Kind: api.KindGone}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, LeftAlone, nil // it is unknown what it is
	case err != nil:
		return nil, 0, err
	case same(now, to):
		b.removeEmptyParents(abs, to)
		return nil, AlreadyThere, nil
	case !same(now, from) || foreign(now):
		return nil, LeftAlone, nil
	}
	var content []byte
	newFile := to.Kind == api.KindFile && (now.Kind != api.KindFile || now.Hash != to.Hash)
	if to.Kind == api.KindLink || newFile {
		if content, err = o.Data(); err != nil {
			return nil, 0, err
		}
		if HashOf(content) != to.Hash {
			return nil, 0, errors.New("the stored content differs from the recorded hash")
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	dir, err := b.w.pinFolder(filepath.Dir(abs), false)
	if err != nil {
		if isNotDir(err) || errors.Is(err, ErrChanged) {
			return nil, LeftAlone, nil // a file or a link is where a folder should be
		}
		return nil, 0, err
	}
	for at, n := filepath.Dir(filepath.Dir(abs)), len(dir.made); n > 0; at, n = filepath.Dir(at), n-1 {
		b.touched[at] = true // each holds a name that is new
	}
	c = &pendingRestore{abs: abs, dir: dir, name: filepath.Base(abs), now: now, to: to}
	if to.Kind == api.KindLink {
		c.link = string(content)
	}
	if newFile {
		if err := c.fill(ctx, content); err != nil {
			c.discard()
			return nil, 0, err
		}
	}
	return c, 0, nil
}

// finish makes the change.
func (b *Restorer) finish(ctx context.Context, c *pendingRestore) (RestoreResult, error) {
	put, err := b.replaceEntry(ctx, c)
	if c.tmp != nil {
		c.tmp.discard()
	}
	c.dir.release(err == nil && put == Restored)
	if err != nil || put != Restored {
		return put, err
	}
	b.touched[filepath.Dir(c.abs)] = true
	b.removeEmptyParents(c.abs, c.to)
	return Restored, nil
}

// replaceEntry makes the change itself, in an open folder.
func (b *Restorer) replaceEntry(ctx context.Context, c *pendingRestore) (RestoreResult, error) {
	dir, name, now, to, tmp := c.dir, c.name, c.now, c.to, c.tmp
	b.w.replaceMu.Lock()
	defer b.w.replaceMu.Unlock()
	again, err := entryIn(ctx, dir.Root, name) // as late as possible
	if err != nil {
		return 0, err
	}
	if !same(again, now) {
		return LeftAlone, nil
	}
	if now.Kind == api.KindGone {
		if info, err := dir.Lstat(name); err == nil && info.IsDir() {
			if dir.Remove(name) != nil { // only an empty one can be removed
				return LeftAlone, nil
			}
		}
	}
	failpoint.Hit("restore.placing")
	switch {
	case to.Kind == api.KindGone:
		return Restored, dir.Remove(name)
	case to.Kind == api.KindLink:
		err := placeLink(dir.Root, name, c.link, now.Kind == api.KindGone)
		if errors.Is(err, fs.ErrExist) {
			return LeftAlone, nil
		}
		return Restored, err
	case tmp == nil:
		return Restored, setMode(dir.Root, name, fs.FileMode(to.Mode))
	}
	_, err = tmp.rename(name, now.Kind == api.KindGone)
	if errors.Is(err, ErrChanged) {
		return LeftAlone, nil
	}
	return Restored, err
}

// foreign reports whether a version is of something that a Restorer never touches: a device, a socket, or what lies
// behind a link.
func foreign(v api.FileVersion) bool {
	return v.Kind != api.KindFile && v.Kind != api.KindLink && v.Kind != api.KindGone
}

// same compares what a path holds with a record. On Windows a file can only be read-only or not, which is less than the
// record.
func same(now, record api.FileVersion) bool {
	if runtime.GOOS == "windows" {
		now.Mode = record.Mode
	}
	return now.Same(record)
}

// placeLink makes a link. Unless fresh is set, placeLink makes the link under a temporary name and renames it over the
// entry that it replaces.
func placeLink(dir *os.Root, name, target string, fresh bool) error {
	if fresh {
		return dir.Symlink(target, name)
	}
	link := linkTemp(name, HashOf([]byte(target)))
	if err := dir.Symlink(target, link); err != nil {
		return err
	}
	failpoint.Hit("restore.linked")
	if err := atomicfile.RenameIn(dir, link, name); err != nil {
		return errors.Join(err, dir.Remove(link))
	}
	return nil
}

// linkTemp returns the temporary name of a new link, in the same folder. The name is derived from the target: unlike
// other temporary files, a link cannot be locked while a process makes it, so only a restore with the same target
// removes it.
func linkTemp(name, hash string) string { return tempNameFor(name, hash[:min(len(hash), 12)]) }

// removeLeftoverLinks removes links that a killed attempt left next to a path.
func (b *Restorer) removeLeftoverLinks(abs string, things ...api.FileVersion) {
	for _, t := range things {
		if t.Kind != api.KindLink {
			continue
		}
		dir, err := b.w.OpenDir(filepath.Dir(abs))
		if err != nil {
			return // without the folder there is no leftover
		}
		name := linkTemp(filepath.Base(abs), t.Hash)
		if info, err := dir.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			_ = dir.Remove(name) // if this fails, making the link again reports why
		}
		_ = dir.Close()
	}
}

// setMode changes a file's permissions and nothing else.
func setMode(dir *os.Root, name string, mode fs.FileMode) error {
	f, old, err := OpenIn(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(old.Mode()&^fs.ModePerm&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) | mode.Perm()); err != nil {
		return err
	}
	return syncFile(f)
}

// removeEmptyParents removes the folders above an absent entry that must be absent, too, as far as they are empty.
func (b *Restorer) removeEmptyParents(abs string, to api.FileVersion) {
	if to.Kind != api.KindGone {
		return
	}
	at := filepath.Dir(abs)
	for range to.Dirs {
		if _, inside := Within(b.w.root, at); !inside || at == b.w.root {
			return
		}
		name := filepath.Base(at)
		at = filepath.Dir(at)
		dir, err := b.w.OpenDir(at)
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
			continue // it is gone already
		}
		if err != nil {
			return
		}
		info, err := dir.Lstat(name)
		if err == nil && info.IsDir() {
			err = dir.Remove(name)
		}
		dir.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // something is in it
		}
		b.touched[at] = true
	}
}

// Sync makes the changed names durable.
func (b *Restorer) Sync() error {
	paths := slices.Sorted(maps.Keys(b.touched))
	_, err := forEachParallel(len(paths), func(i int) error {
		if info, err := os.Lstat(paths[i]); err != nil || !info.IsDir() {
			return nil //nolint:nilerr // it went away itself: the folder above is touched too
		}
		dir, err := inputfile.OpenDir(paths[i])
		if err == nil {
			err = syncFolder(dir)
			dir.Close()
		}
		return api.Failed(err, "sync the restored files in %s", paths[i])
	})
	if err != nil {
		return err
	}
	clear(b.touched)
	return nil
}

// restorable reports whether entries may be restored at a path, which is in the disk's form.
func restorable(rel string) bool {
	if rel == "" || rel == "." || strings.IndexByte(rel, 0) >= 0 || len(rel) > maxPath || !filepath.IsLocal(rel) ||
		filepath.Clean(rel) != rel {
		return false
	}
	return !slices.Contains(strings.Split(strings.ToLower(plainNames(filepath.ToSlash(rel))), "/"), ".git")
}

// entryAt describes what is at a path relative to the root, which is in the disk's form.
func (w *Workspace) entryAt(ctx context.Context, rel string) (api.FileVersion, error) {
	tree, err := w.OpenTree()
	if err != nil {
		return api.FileVersion{}, err
	}
	defer tree.Close()
	info, ok, err := tree.Look(rel)
	switch {
	case err != nil:
		return api.FileVersion{}, err
	case !ok:
		return api.FileVersion{Kind: api.KindOther, Dirs: tree.Missing(rel)}, nil
	case info == nil:
		return api.FileVersion{Kind: api.KindGone, Dirs: tree.Missing(rel)}, nil
	}
	return entryIn(ctx, tree.Root, rel)
}

// entryIn returns the entry that a name in an open folder has. A folder counts as none.
func entryIn(ctx context.Context, dir *os.Root, name string) (v api.FileVersion, err error) {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
		return api.FileVersion{Kind: api.KindGone}, nil
	case err != nil:
		return v, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			return v, err
		}
		return api.FileVersion{Kind: api.KindLink, Size: int64(len(target)), Hash: HashOf([]byte(target))}, nil
	case !info.Mode().IsRegular():
		return api.FileVersion{Kind: api.KindOther}, nil
	}
	f, info, err := OpenIn(dir, name)
	if errors.Is(err, ErrNotRegular) {
		err = ErrChanged // since the look above
	}
	if err != nil {
		return v, err
	}
	defer f.Close()
	v = api.FileVersion{Kind: api.KindFile, Mode: uint32(info.Mode().Perm()), Size: info.Size()}
	v.Hash, err = hashOf(ctx, f)
	return v, err
}

// ReadEntry reads the entry at a path relative to the root: a file's content, if it is not larger than limit bytes (0
// = no limit), or a link's target. It follows no link.
func (w *Workspace) ReadEntry(ctx context.Context, rel string, limit int64) ([]byte, error) {
	if !restorable(rel) {
		return nil, fmt.Errorf("read %q: %w", rel, ErrPath)
	}
	d, err := w.OpenDir(filepath.Join(w.root, filepath.Dir(rel)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	name := filepath.Base(rel)
	if target, err := d.Readlink(name); err == nil {
		return []byte(target), nil
	}
	f, info, err := OpenIn(d, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if limit > 0 && info.Size() > limit {
		return nil, &TooLargeError{Path: filepath.ToSlash(rel), Size: info.Size(), Limit: limit}
	}
	return io.ReadAll(NewContextReader(ctx, f))
}
