package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
)

// Thing is what stands at a path, or is to: a link is a link here, and not what it
// leads to.
type Thing struct {
	Kind  ThingKind
	Mode  fs.FileMode // permission bits of a file
	Hash  string      // SHA-256 of a file's content, or of where a link leads; lower-case hex
	Above int         // of what is absent: how many of the folders above it are, too
}

// ThingKind tells things apart.
type ThingKind int

// The kinds. A folder is absent: no file stands there. Foreign is what is never
// touched: devices, sockets, and all that lies behind a link.
const (
	Absent ThingKind = iota
	File
	Link
	Foreign
)

// is compares all that a thing is made of.
func (t Thing) is(o Thing) bool {
	switch {
	case t.Kind != o.Kind:
		return false
	case t.Kind == File:
		return t.Hash == o.Hash && (t.Mode.Perm() == o.Mode.Perm() || !modesKept)
	case t.Kind == Link:
		return t.Hash == o.Hash
	}
	return true
}

// Put says what PutBack did.
type Put int

// What it may do.
const (
	PutDone    Put = iota // the thing was put there
	PutAlready            // it stood there
	PutOther              // something else than what was expected stands there: left alone
)

// PutBack puts things back at paths of one workspace, one at a time, and syncs the
// folders at the end.
type PutBack struct {
	w       *Workspace
	touched map[string]bool
	swept   map[string]bool
}

// PutBack begins. It is not safe for concurrent use.
func (w *Workspace) PutBack() *PutBack {
	return &PutBack{w: w, touched: map[string]bool{}, swept: map[string]bool{}}
}

// Place puts a thing at a path, relative to the root, if what stands there is from.
// It follows no link, neither on the way nor at the end, and touches nothing that git
// keeps for itself: the error wraps ErrPath for such a path. data gives the content of
// a file, or where a link leads; it is asked for only when it is needed. A file is
// replaced whole and synced; one that differs in its mode only gets the mode. Folders
// are made as needed. With a thing that was absent together with folders above it,
// these go too, as far as they are empty. A foreign thing is put nowhere: what stands
// there is taken away. When that is expected, nothing may stand there.
//
// It may be done again after a kill: what is half done is then done, or was not begun.
// A file that may not be written to is replaced none the less, as its mode is part of
// what is put back.
func (b *PutBack) Place(ctx context.Context, rel string, from, to Thing, data func() ([]byte, error)) (Put, error) {
	if !putable(rel) {
		return 0, fmt.Errorf("put back %s: %w", filepath.ToSlash(rel), ErrPath)
	}
	var got Put
	_, err := b.PlaceAll(ctx, []Order{{rel, from, to, data}}, func(_ int, put Put) { got = put })
	return got, err
}

// begin does all of one order that changes nothing at its path. A nil change says that
// there is nothing more to do, and put what was found.
func (b *PutBack) begin(ctx context.Context, o Order) (c *change, put Put, err error) {
	from, to := o.From, o.To
	abs := filepath.Join(b.w.root, o.Path)
	if dir := filepath.Dir(abs); !b.swept[dir] {
		// What a killed try left is swept by the next one, whatever was swept before: it would
		// also keep folders from being empty. A folder that cannot be looked through stays so.
		_, _ = b.w.Sweep(Path{Real: abs})
		b.swept[dir] = true
	}
	b.unlink(abs, from, to)
	now, err := b.w.lookAt(ctx, abs)
	if err == nil && now.Kind == Foreign && to.Kind == Foreign {
		return nil, PutAlready, nil
	}
	if from.Kind == Foreign {
		from = Thing{Kind: Absent}
	}
	if to.Kind == Foreign {
		to = Thing{Kind: Absent}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, PutOther, nil // nobody knows what it is
	case err != nil:
		return nil, 0, err
	case now.is(to):
		return nil, PutAlready, b.empty(abs, to)
	case !now.is(from) || now.Kind == Foreign:
		return nil, PutOther, nil
	}
	var content []byte
	if to.Kind == Link || to.Kind == File && (now.Kind != File || now.Hash != to.Hash) {
		if content, err = o.Data(); err != nil {
			return nil, 0, err
		}
		if HashOf(content) != to.Hash {
			return nil, 0, errors.New("the kept content is not the one that was recorded")
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	dir, err := b.w.pinned(filepath.Dir(abs), false)
	if err != nil {
		if noFolder(err) || errors.Is(err, ErrChanged) {
			return nil, PutOther, nil // a file or a link stands where a folder should
		}
		return nil, 0, err
	}
	for at, n := filepath.Dir(filepath.Dir(abs)), len(dir.made); n > 0; at, n = filepath.Dir(at), n-1 {
		b.touched[at] = true // each holds a name that is new
	}
	c = &change{abs: abs, dir: dir, name: filepath.Base(abs), now: now, to: to}
	switch {
	case to.Kind == Link:
		c.link = string(content)
	case to.Kind == File && (now.Kind != File || now.Hash != to.Hash):
		if err := c.fill(ctx, content); err != nil {
			c.drop()
			return nil, 0, err
		}
	}
	return c, 0, nil
}

// finish makes the change.
func (b *PutBack) finish(ctx context.Context, c *change) (Put, error) {
	put, err := b.swap(ctx, c)
	if c.tmp != nil {
		c.tmp.discard()
	}
	c.dir.release(err == nil && put == PutDone)
	if err != nil || put != PutDone {
		return put, err
	}
	b.touched[filepath.Dir(c.abs)] = true
	return PutDone, b.empty(c.abs, c.to)
}

// swap is the change itself, in a folder that is held open.
func (b *PutBack) swap(ctx context.Context, c *change) (Put, error) {
	dir, name, now, to, tmp := c.dir, c.name, c.now, c.to, c.tmp
	b.w.placing.Lock()
	defer b.w.placing.Unlock()
	again, err := thingIn(ctx, dir.Root, name) // as late as possible
	if err != nil {
		return 0, err
	}
	if !again.is(now) {
		return PutOther, nil
	}
	if now.Kind == Absent {
		if info, err := dir.Lstat(name); err == nil && info.IsDir() {
			if dir.Remove(name) != nil { // only an empty one can be removed
				return PutOther, nil
			}
		}
	}
	failpoint.Hit("restore.placing")
	switch {
	case to.Kind == Absent:
		return PutDone, dir.Remove(name)
	case to.Kind == Link:
		err := placeLink(dir.Root, name, c.link, now.Kind == Absent)
		if errors.Is(err, fs.ErrExist) {
			return PutOther, nil
		}
		return PutDone, err
	case tmp == nil:
		return PutDone, setMode(dir.Root, name, to.Mode)
	}
	_, err = tmp.place(name, now.Kind == Absent)
	if errors.Is(err, ErrChanged) {
		return PutOther, nil
	}
	return PutDone, err
}

// modesKept: elsewhere a file can only be read-only or not, which is not what was
// recorded of it.
const modesKept = runtime.GOOS != "windows"

// noFolder: something on the way is a file or a link.
func noFolder(err error) bool { return isNotDir(err) || errors.Is(err, syscall.ENOTDIR) }

// placeLink makes a link. Over something that is there it is made beside it first.
func placeLink(dir *os.Root, name, target string, fresh bool) error {
	if fresh {
		return dir.Symlink(target, name)
	}
	beside := linkTemp(name, HashOf([]byte(target)))
	if err := dir.Symlink(target, beside); err != nil {
		return err
	}
	failpoint.Hit("restore.linked")
	if err := rename(dir, beside, name); err != nil {
		return errors.Join(err, dir.Remove(beside))
	}
	return nil
}

// linkTemp is the name beside its place under which a link is made. It follows from what
// is made: a link cannot be locked, as other leftovers are to tell whether somebody
// still makes them, and so only who has the same intent takes it away.
func linkTemp(name, hash string) string {
	return "." + strings.ToValidUTF8(name[:min(len(name), 200)], "_") + ".roost-" + hash[:min(len(hash), 12)] + ".tmp"
}

// unlink takes away links that a killed try left beside a path.
func (b *PutBack) unlink(abs string, things ...Thing) {
	for _, t := range things {
		if t.Kind != Link {
			continue
		}
		dir, err := b.w.OpenDir(filepath.Dir(abs))
		if err != nil {
			return // nothing is left where nothing is
		}
		name := linkTemp(filepath.Base(abs), t.Hash)
		if info, err := dir.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			_ = dir.root.Remove(name) // a second try to make it says why not
		}
		_ = dir.Close()
	}
}

// setMode changes a file's permissions and nothing else.
func setMode(dir *os.Root, name string, mode fs.FileMode) error {
	want, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if got, err := f.Stat(); err != nil || !os.SameFile(got, want) {
		return errors.Join(ErrChanged, err)
	}
	if err := f.Chmod(want.Mode()&^fs.ModePerm&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) | mode.Perm()); err != nil {
		return err
	}
	return syncFile(f)
}

// empty takes away the folders above an absent thing that are to be absent with it, as
// far as they are empty.
func (b *PutBack) empty(abs string, to Thing) error {
	if to.Kind != Absent {
		return nil
	}
	at := filepath.Dir(abs)
	for range to.Above {
		if _, inside := within(b.w.root, at); !inside || at == b.w.root {
			return nil
		}
		base, rest, err := b.w.deepest(filepath.Dir(at))
		if err != nil || len(rest) > 0 {
			at = filepath.Dir(at)
			continue // gone already
		}
		dir, err := b.w.pin(base)
		if err != nil {
			return nil
		}
		info, err := dir.Lstat(filepath.Base(at))
		if err == nil && info.IsDir() {
			err = dir.Remove(filepath.Base(at))
		}
		dir.release(true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil // something is in it
		}
		b.touched[base] = true
		at = filepath.Dir(at)
	}
	return nil
}

// Sync makes the names durable that were changed.
func (b *PutBack) Sync() error {
	paths := slices.Sorted(maps.Keys(b.touched))
	err := together(len(paths), func(i int) error {
		if info, err := os.Lstat(paths[i]); err != nil || !info.IsDir() {
			return nil //nolint:nilerr // it went away itself: the folder above is touched too
		}
		dir, err := os.OpenRoot(paths[i])
		if err == nil {
			err = syncFolder(dir)
			dir.Close()
		}
		if err != nil {
			return fmt.Errorf("make durable what was put back in %s: %w", paths[i], err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	clear(b.touched)
	return nil
}

// putable reports whether a path, as the disk has it, is one that things may be put at.
func putable(rel string) bool {
	if rel == "" || rel == "." || strings.IndexByte(rel, 0) >= 0 || len(rel) > maxPath || !filepath.IsLocal(rel) || filepath.Clean(rel) != rel {
		return false
	}
	return !slices.Contains(strings.Split(strings.ToLower(plainNames(filepath.ToSlash(rel))), "/"), ".git")
}

// lookAt is what stands at an absolute path in the workspace.
func (w *Workspace) lookAt(ctx context.Context, abs string) (Thing, error) {
	base, rest, err := w.deepest(filepath.Dir(abs))
	switch {
	case noFolder(err):
		return w.behind(filepath.Dir(abs))
	case err != nil:
		return Thing{}, err
	case len(rest) > 0:
		if !w.linkless(base) {
			return Thing{Kind: Foreign}, nil
		}
		return Thing{Kind: Absent, Above: len(rest)}, nil
	}
	dir, err := w.pin(base)
	if errors.Is(err, ErrChanged) {
		return Thing{Kind: Foreign}, nil // through a link
	}
	if err != nil {
		return Thing{}, err
	}
	defer dir.release(true)
	return thingIn(ctx, dir.Root, filepath.Base(abs))
}

// behind is what stands below something that is no folder: nothing below a file, and
// what is never touched below a link.
func (w *Workspace) behind(path string) (Thing, error) {
	for above := 1; path != w.root; path, above = filepath.Dir(path), above+1 {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			continue
		case info.Mode().IsRegular() && w.linkless(filepath.Dir(path)):
			return Thing{Kind: Absent, Above: above}, nil
		default:
			return Thing{Kind: Foreign}, nil
		}
	}
	return Thing{Kind: Foreign}, nil
}

// linkless reports whether a folder is reached through no link.
func (w *Workspace) linkless(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && w.standsAt(path, info)
}

// thingIn is what stands at a name in a folder that is held open.
func thingIn(ctx context.Context, dir *os.Root, name string) (Thing, error) {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Thing{Kind: Absent}, nil
	case err != nil:
		return Thing{}, err
	case info.IsDir():
		return Thing{Kind: Absent}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			return Thing{}, err
		}
		return Thing{Kind: Link, Hash: HashOf([]byte(target))}, nil
	case !info.Mode().IsRegular():
		return Thing{Kind: Foreign}, nil
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return Thing{}, err
	}
	defer f.Close()
	got, err := f.Stat()
	if err != nil || !os.SameFile(got, info) {
		return Thing{}, errors.Join(ErrChanged, err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, NewContextReader(ctx, f)); err != nil {
		return Thing{}, err
	}
	return Thing{Kind: File, Mode: got.Mode().Perm(), Hash: hex.EncodeToString(h.Sum(nil))}, nil
}

// Thing looks at a path, relative to the root. It follows no link.
func (w *Workspace) Thing(ctx context.Context, rel string) (Thing, error) {
	if !putable(rel) {
		return Thing{}, fmt.Errorf("look at %q: %w", rel, ErrPath)
	}
	t, err := w.lookAt(ctx, filepath.Join(w.root, rel))
	if err != nil {
		return Thing{}, fmt.Errorf("look at %s: %w", filepath.ToSlash(rel), err)
	}
	return t, nil
}

// ReadThing reads what stands at a path, relative to the root: a file's content, if it is
// not larger than limit bytes (0 = no limit), or where a link leads. It follows no link.
func (w *Workspace) ReadThing(ctx context.Context, rel string, limit int64) ([]byte, error) {
	if !putable(rel) {
		return nil, fmt.Errorf("read %q: %w", rel, ErrPath)
	}
	d, err := w.OpenDir(filepath.Join(w.root, filepath.Dir(rel)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	name := filepath.Base(rel)
	if target, err := d.root.Readlink(name); err == nil {
		return []byte(target), nil
	}
	f, size, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if limit > 0 && size > limit {
		return nil, &TooLargeError{Path: filepath.ToSlash(rel), Size: size, Limit: limit}
	}
	return io.ReadAll(NewContextReader(ctx, f))
}

// Missing is how many of the folders above a path, relative to the root, are not there.
func (w *Workspace) Missing(rel string) int {
	base, rest, err := w.deepest(filepath.Join(w.root, filepath.Dir(rel)))
	if err != nil || base == "" {
		t, err := w.behind(filepath.Join(w.root, filepath.Dir(rel)))
		if err != nil || t.Kind == Foreign {
			return 0
		}
		return t.Above
	}
	return len(rest)
}

// modeOf is the mode and, where one is known, the owner that a new file gets.
type modeOf struct {
	mode fs.FileMode
	sys  any
}

func likeMode(old fs.FileInfo, mode fs.FileMode) fs.FileInfo {
	m := modeOf{mode: mode.Perm()}
	if old != nil && old.Mode().IsRegular() {
		m.sys = old.Sys()
		m.mode |= old.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	}
	return m
}

func (m modeOf) Name() string       { return "" }
func (m modeOf) Size() int64        { return 0 }
func (m modeOf) Mode() fs.FileMode  { return m.mode }
func (m modeOf) ModTime() time.Time { return time.Time{} }
func (m modeOf) IsDir() bool        { return false }
func (m modeOf) Sys() any           { return m.sys }
