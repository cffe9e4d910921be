package checkpoint

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's names of contents, not a protection
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// openRoot is the workspace, held open. Names are resolved in it one by one, so that no link leads out of it or to
// another path in it.
type openRoot struct {
	*os.Root
	folders map[string]folderState // by recorded path
}

// folderState is what a folder's path turned out to be.
type folderState byte

const (
	aFolder     folderState = iota + 1
	noFolder                // nothing there, or a file
	throughLink             // a link on the way
)

func (k *Keeper) open() (*openRoot, error) {
	at := k.w.Root()
	trouble := func(err error) error { return fmt.Errorf("open workspace %s: %w", at, err) }
	root, err := os.OpenRoot(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, trouble(fmt.Errorf("%w: there is no such folder", workspace.ErrMissing))
	}
	if err != nil {
		return nil, trouble(err)
	}
	// Opened first and checked then, because a link may be created at any time.
	got, err := root.Stat(".")
	if err == nil {
		var want fs.FileInfo
		if want, err = os.Lstat(at); err == nil && !os.SameFile(got, want) {
			err = fmt.Errorf("%w: the path now leads elsewhere", workspace.ErrMissing)
		}
	}
	if err == nil {
		var now string
		if now, err = filepath.EvalSymlinks(at); err == nil && now != at {
			err = fmt.Errorf("%w: the path now leads to %s", workspace.ErrMissing, now)
		}
	}
	if err != nil {
		root.Close()
		return nil, trouble(err)
	}
	return &openRoot{Root: root, folders: map[string]folderState{".": aFolder}}, nil
}

// folder returns what the path of a folder leads to.
func (g *openRoot) folder(dir string) (folderState, error) {
	if s := g.folders[dir]; s != 0 {
		return s, nil
	}
	s, err := g.folder(path.Dir(dir))
	if err != nil {
		return 0, err
	}
	if s == aFolder {
		info, err := g.Lstat(OnDisk(dir))
		switch {
		case absent(err):
			s = noFolder
		case err != nil:
			return 0, err
		case info.Mode()&fs.ModeSymlink != 0:
			s = throughLink
		case !info.IsDir():
			s = noFolder
		}
	}
	g.folders[dir] = s
	return s, nil
}

// missing is how many of the folders above a path are not there.
func (g *openRoot) missing(p string) (n int) {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if s, err := g.folder(dir); err != nil || s != noFolder {
			break
		}
		n++
	}
	return n
}

// absent: nothing can be at such a path now.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// look returns what is at a recorded path: nil for nothing, or a folder. ok is false when the path leads through a
// link.
func (g *openRoot) look(p string) (info fs.FileInfo, ok bool, err error) {
	s, err := g.folder(path.Dir(p))
	switch {
	case err != nil:
		return nil, false, err
	case s == throughLink:
		return nil, false, nil
	case s == noFolder:
		return nil, true, nil
	}
	info, err = g.Lstat(OnDisk(p))
	if absent(err) || err == nil && info.IsDir() {
		return nil, true, nil
	}
	return info, true, err
}

// fileContent is what a file held: its name in the store, its name in git, and its size.
type fileContent struct {
	named  bool // the names are known; not when the file became shorter all the time
	stable bool // false when the file was being written to: this may be neither the old content nor the new
	blob   [sha1.Size]byte
	sum    [sha256.Size]byte
	size   int64
	data   []byte // when it was small enough to be kept in memory
	at     stat   // of the file when it was read
	read   int64  // when the reading began; Unix nanoseconds
}

// hash is the name of the content in the store.
func (c *fileContent) hash() content.Hash { return content.Hash(hex.EncodeToString(c.sum[:])) }

// errVanished: the file disappeared between the stat and the read.
var errVanished = errors.New("it is not there any more, or is no file")

// reader reads files, one at a time.
type reader struct {
	buf         []byte
	small       int64 // up to how many bytes fileContent.data is set; it holds until the next read
	sha1, sha2  hash.Hash
	interrupted func() // for tests: between two reads of a file
}

func newReader(small int64) *reader {
	return &reader{small: small, sha1: sha1.New(), sha2: sha256.New()} //nolint:gosec // as above
}

// tries is how often a file is read that changes while it is read.
const tries = 3

// read reads a regular file at a recorded path.
func (r *reader) read(ctx context.Context, g *openRoot, p string) (c fileContent, err error) {
	for range tries {
		if c, err = r.once(ctx, g, p); err != nil || c.stable {
			return c, err
		}
	}
	return c, nil
}

func (r *reader) once(ctx context.Context, g *openRoot, p string) (c fileContent, err error) {
	want, ok, err := g.look(p)
	if err != nil {
		return c, err
	}
	if !ok || want == nil || !want.Mode().IsRegular() {
		return c, errVanished
	}
	c.read = time.Now().UnixNano()
	f, err := g.OpenFile(OnDisk(p), os.O_RDONLY|workspace.OpenNonblock, 0)
	if absent(err) {
		return c, errVanished
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	if !os.SameFile(want, info) || !info.Mode().IsRegular() {
		return c, nil // replaced since the stat: not stable
	}
	c.at, c.size = statOf(info), info.Size()
	if err := r.fill(ctx, f, &c); err != nil {
		return c, err
	}
	after, err := f.Stat()
	if err != nil {
		return c, err
	}
	c.stable = statOf(after) == c.at && c.size == c.at.size
	return c, nil
}

// fill reads as many bytes as the file had when it was opened: for a log that grows all the time that is at least
// something it once held.
func (r *reader) fill(ctx context.Context, f io.Reader, c *fileContent) error {
	if c.size <= r.small {
		if int64(cap(r.buf)) < c.size {
			r.buf = make([]byte, c.size+c.size/4)
		}
		n, err := io.ReadFull(workspace.NewContextReader(ctx, f), r.buf[:c.size])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		r.pause()
		c.data, c.size = r.buf[:n], int64(n)
		r.whole(c)
		return nil
	}
	r.begin(c.size)
	n, err := io.Copy(io.MultiWriter(r.sha1, r.sha2), io.LimitReader(workspace.NewContextReader(ctx, f), c.size))
	if err != nil {
		return err
	}
	r.pause()
	if n != c.size {
		c.size = n // its names belong to no content; it is not stable, so it is read again
		return nil
	}
	r.end(c)
	return nil
}

func (r *reader) begin(size int64) {
	r.sha1.Reset()
	r.sha2.Reset()
	r.sha1.Write(append(strconv.AppendInt([]byte("blob "), size, 10), 0))
}

// whole names a content that is in memory.
func (r *reader) whole(c *fileContent) {
	r.begin(c.size)
	r.sha1.Write(c.data)
	r.sha2.Write(c.data)
	r.end(c)
}

func (r *reader) end(c *fileContent) {
	c.named = true
	r.sha1.Sum(c.blob[:0])
	r.sha2.Sum(c.sum[:0])
}

func (r *reader) pause() {
	if r.interrupted != nil {
		r.interrupted()
	}
}

// linkTo is a link's target as a content.
func linkTo(target string) fileContent {
	c := fileContent{data: []byte(target), size: int64(len(target)), stable: true}
	r := newReader(c.size)
	r.whole(&c)
	return c
}

// version is the record of a content of a kind; blob is its name in the store, "" when it is not kept.
func (c *fileContent) version(kind string, mode fs.FileMode, blob string) api.FileVersion {
	v := api.FileVersion{Kind: kind, Mode: uint32(mode.Perm()), Size: c.size, Hash: hex.EncodeToString(c.sum[:])}
	if kind == api.KindLink {
		v.Mode = 0 // links have none, though some systems report 0777
	}
	v.Blob = blob
	return v
}

// Applied is what Apply did.
type Applied struct {
	Files int      // files that hold their target now, including those that already did
	Left  []string // files that held something else than the intent expects: left alone; by path
}

// ErrStuck: a restore failed half-way, and not all of its changes could be undone. The error names the files. The
// intent still holds their targets: Apply can be repeated.
var ErrStuck = errors.New("some files were put back and could not be changed back")

// Apply puts the files of an intent in their place: a file that is still From becomes To, one that is To already is
// done, and everything else is left alone. So it can be repeated after a kill, by any process. Deletions come first,
// then all others, so that files can take the place of folders and the other way round. Folders that are made on the
// way stay within the workspace, and nothing is written through a link. All is durable when it returns nil.
//
// Missing contents, of a file's target or of what would be lost, are found before the first file is touched; the error
// wraps ErrUnkept. When something fails later, Apply undoes its changes, and the error wraps ErrStuck where that fails
// too. The changes of an earlier call that was killed stay: the reversed intent (task.Swapped) undoes all of them.
func (k *Keeper) Apply(ctx context.Context, files []task.RestoreFile) (Applied, error) {
	for _, f := range files {
		if err := k.ready(ctx, f); err != nil {
			return Applied{}, fmt.Errorf("put files back: %w", err)
		}
	}
	done, out, err := k.apply(ctx, files)
	if err == nil {
		return out, nil
	}
	err = fmt.Errorf("put files back: %w", err)
	// The caller may have given up, but half-done changes must not stay for that. Changes that something else made
	// since stay.
	if _, _, bad := k.apply(context.WithoutCancel(ctx), task.Swapped(done)); bad != nil {
		return Applied{}, fmt.Errorf("%w; %w: %w", err, ErrStuck, bad)
	}
	return Applied{}, err
}

// apply also returns what it changed.
func (k *Keeper) apply(ctx context.Context, files []task.RestoreFile) (done []task.RestoreFile, out Applied, err error) {
	b := k.w.NewRestorer()
	list := ordered(files)
	orders := make([]workspace.RestoreStep, len(list))
	for i, f := range list {
		orders[i] = workspace.RestoreStep{
			Path: OnDisk(f.Path), From: thing(f.From), To: thing(f.To),
			Data: func() ([]byte, error) { return k.Content(ctx, f.To, 0) },
		}
	}
	failed, err := b.RestoreAll(ctx, orders, func(i int, put workspace.RestoreResult) {
		if put == workspace.LeftAlone {
			out.Left = append(out.Left, list[i].Path)
			return
		}
		if put == workspace.Restored {
			done = append(done, list[i])
			failpoint.Hit("restore.applied-one")
		}
		out.Files++
	})
	if err != nil {
		// It may be half done, for example where a folder was made for it.
		return append(done, list[failed]), out, err
	}
	failpoint.Hit("restore.applied-all")
	slices.Sort(out.Left)
	return done, out, b.Sync()
}

// ready reports whether a file that is From could be put in its place, and back.
func (k *Keeper) ready(ctx context.Context, f task.RestoreFile) error {
	kept := func(v api.FileVersion) bool {
		return !present(v) || k.has(v) // the safety checkpoint's ref holds it
	}
	if kept(f.From) && kept(f.To) || f.From.Kind == f.To.Kind && f.From.Hash != "" && f.From.Hash == f.To.Hash {
		return nil
	}
	now, err := k.Look(ctx, []string{f.Path})
	if err != nil || !now[f.Path].Same(f.From) {
		return err // it is not touched
	}
	return fmt.Errorf("%s: %w", f.Path, ErrUnkept)
}

// ordered puts deletions first, deepest paths first.
func ordered(files []task.RestoreFile) []task.RestoreFile {
	var gone, rest []task.RestoreFile
	for _, f := range files {
		if present(f.To) {
			rest = append(rest, f)
		} else {
			gone = append(gone, f)
		}
	}
	byPath := func(a, b task.RestoreFile) int { return strings.Compare(a.Path, b.Path) }
	slices.SortStableFunc(gone, func(a, b task.RestoreFile) int { return byPath(b, a) })
	slices.SortStableFunc(rest, byPath)
	return append(gone, rest...)
}

// thing is a version as the workspace knows it.
func thing(v api.FileVersion) workspace.Entry {
	switch v.Kind {
	case api.KindFile:
		return workspace.Entry{Kind: workspace.File, Mode: fs.FileMode(v.Mode), Hash: v.Hash}
	case api.KindLink:
		return workspace.Entry{Kind: workspace.Link, Hash: v.Hash}
	case api.KindGone:
		return workspace.Entry{Kind: workspace.Absent, MissingParents: v.Dirs}
	}
	return workspace.Entry{Kind: workspace.Foreign}
}
