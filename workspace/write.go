package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/roost-dev/roost/internal/failpoint"
)

// AnyContent, given to Write as the expected hash, overwrites any content.
const AnyContent = "any"

// Write replaces the file at p by data, all or nothing, and returns what is there
// now. When it returns nil, content and name are synced to disk. Missing folders
// are made, and taken away again when the write fails. An existing file keeps its
// mode, and its owner where allowed; a link stays a link and its target is
// replaced. A file that may not be written to is not replaced either, although a
// rename could: the error wraps fs.ErrPermission.
//
// expect is the hash the file must still have: FileState.Hash of the last look,
// "" for "there is no file", or AnyContent. Otherwise the error wraps ErrChanged
// and nothing was touched. The same holds if p now leads elsewhere than when it
// was judged, up to the last moment: all is done in a folder that is held open and
// was seen to be the one at the judged path. What remains, for a file that exists,
// is the instant between the look at its content and the rename, in which another
// program may change it.
func (w *Workspace) Write(ctx context.Context, p Path, data []byte, expect string) (FileState, error) {
	st, err := w.write(ctx, p, data, expect)
	if err != nil {
		return FileState{}, fmt.Errorf("write %s: %w", p.Readable, err)
	}
	return st, nil
}

func (w *Workspace) write(ctx context.Context, p Path, data []byte, expect string) (st FileState, err error) {
	now, err := w.Resolve(p.Given)
	if err != nil {
		return st, err
	}
	if now.Real != p.Real {
		return st, fmt.Errorf("%w: the path now leads to %s", ErrChanged, now.Real)
	}
	if p.Real == w.root {
		return st, ErrNotRegular
	}
	dir, err := w.pinFolder(filepath.Dir(p.Real))
	if err != nil {
		return st, err
	}
	defer func() { dir.release(err == nil) }()
	w.sweepOnce(filepath.Dir(p.Real), dir.Root)
	name := filepath.Base(p.Real)
	old, err := checkReplaceable(dir.Root, name)
	if err != nil {
		return st, err
	}
	tmp, err := newTemp(ctx, dir.Root, name, data, old)
	if err != nil {
		return st, err
	}
	defer tmp.discard()
	w.replaceMu.Lock() // between our own writers there is no such instant
	defer w.replaceMu.Unlock()
	if expect != AnyContent {
		// Looked at as late as possible.
		hash, err := hashAt(ctx, dir.Root, name)
		if err != nil {
			return st, err
		}
		if hash != expect {
			return st, ErrChanged
		}
	}
	if err := ctx.Err(); err != nil {
		return st, err
	}
	failpoint.Hit("tool.write.before")
	info, err := tmp.rename(name, expect == "")
	if err != nil {
		return st, err
	}
	failpoint.Hit("tool.write.after")
	if err := syncFolder(dir.Root); err != nil {
		return st, err
	}
	return stateOf(p.Readable, info, HashOf(data)), nil
}

// checkReplaceable returns the file at name, nil when there is none. It opens the file to learn
// whether it may be written, since only the system knows all rules; it checks the mode too,
// since the system refuses root nothing.
func checkReplaceable(dir *os.Root, name string) (fs.FileInfo, error) {
	old, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case old.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: it is a link now", ErrChanged) // p.Real had none in it
	case !old.Mode().IsRegular():
		return nil, ErrNotRegular
	case old.Mode().Perm()&0o222 == 0:
		return nil, fmt.Errorf("the file is read-only: %w", fs.ErrPermission)
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|OpenNonblock, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err == nil {
		f.Close()
	}
	return old, nil // a program that runs may not be written to, but replaced
}

// hashAt gives the hash of a file's content, "" when there is none.
func hashAt(ctx context.Context, dir *os.Root, name string) (string, error) {
	want, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !want.Mode().IsRegular() {
		return "", ErrChanged
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|OpenNonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrChanged
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if got, err := f.Stat(); err != nil || !os.SameFile(got, want) {
		return "", errors.Join(ErrChanged, err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, NewContextReader(ctx, f)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// syncFile makes a file or a folder durable; tests look when.
var syncFile = (*os.File).Sync

func syncFolder(dir *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFile(f)
}
