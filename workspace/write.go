package workspace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
)

// AnyContent, given to Write as the expected hash, overwrites whatever is there.
const AnyContent = "any"

// Write replaces the file at p by data, all or nothing, and returns what is there
// now. When it returns nil, content and name are synced to disk. Missing folders
// are made. An existing file keeps its mode, and its owner where allowed; a link
// stays a link and its target is replaced.
//
// expect is the hash the file must still have: FileState.Hash of the last look,
// "" for "there is no file", or AnyContent. Otherwise the error wraps ErrChanged
// and nothing was touched. The same holds if p now leads elsewhere than when it
// was judged. What remains is the instant between this look and the rename.
func (w *Workspace) Write(ctx context.Context, p Path, data []byte, expect string) (FileState, error) {
	fail := func(err error) (FileState, error) {
		return FileState{}, fmt.Errorf("write %s: %w", p.Readable, err)
	}
	now, err := w.Resolve(p.Given)
	if err != nil {
		return fail(err)
	}
	if now.Real != p.Real {
		return fail(fmt.Errorf("%w: the path now leads to %s", ErrChanged, now.Real))
	}
	if p.Real == w.root {
		return fail(ErrNotRegular)
	}
	dir, made, err := w.openDir(p)
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	name := filepath.Base(p.Real)

	old, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return fail(err)
	case !old.Mode().IsRegular():
		return fail(ErrNotRegular)
	}
	tmp, err := writeTemp(ctx, dir, name, data, old)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = dir.Remove(tmp) }() // after the rename there is none

	if expect != AnyContent {
		// Looked at as late as possible.
		st, err := w.StatPath(ctx, p)
		if err != nil {
			return fail(err)
		}
		if st.Hash != expect {
			return fail(ErrChanged)
		}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	failpoint.Hit("tool.write.before")
	if err := rename(dir, tmp, name); err != nil {
		return fail(err)
	}
	failpoint.Hit("tool.write.after")
	if err := syncDirs(dir, made); err != nil {
		return fail(err)
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return fail(err)
	}
	return stateOf(p.Readable, info, HashOf(data)), nil
}

// openDir pins the folder of p, making it if need be, and returns the folders
// above the new ones, which must be synced for those to last. Inside the
// workspace everything goes through os.Root, which refuses links that lead out.
func (w *Workspace) openDir(p Path) (*os.Root, []string, error) {
	target := filepath.Dir(p.Real)
	base := w.root
	if p.Outside {
		for base = target; !isDir(base); base = filepath.Dir(base) {
			if filepath.Dir(base) == base {
				return nil, nil, fs.ErrNotExist
			}
		}
	}
	rel, ok := within(base, target)
	if !ok {
		return nil, nil, ErrPath
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	var made []string
	for d := rel; d != "."; d = filepath.Dir(d) {
		if _, err := root.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, filepath.Dir(filepath.Join(base, d)))
	}
	if len(made) > 0 {
		if err := root.MkdirAll(rel, 0o777); err != nil {
			return nil, nil, err
		}
	}
	dir, err := root.OpenRoot(rel)
	return dir, made, err
}

func writeTemp(ctx context.Context, dir *os.Root, name string, data []byte, old fs.FileInfo) (_ string, err error) {
	var id [6]byte
	_, _ = rand.Read(id[:])
	if len(name) > 200 {
		name = name[:200] // leave room below the limit of 255 bytes
	}
	tmp := "." + strings.ToValidUTF8(name, "_") + ".roost-" + hex.EncodeToString(id[:]) + ".tmp"
	f, err := dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = dir.Remove(tmp)
		}
	}()
	for rest := data; len(rest) > 0; {
		if err = ctx.Err(); err != nil {
			return "", err
		}
		n := min(len(rest), 1<<20)
		if _, err = f.Write(rest[:n]); err != nil {
			return "", err
		}
		rest = rest[n:]
	}
	if old != nil {
		if uid, gid, ok := owner(old); ok {
			_ = f.Chown(uid, gid) // only root may give files away
		}
		if err = f.Chmod(old.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
			return "", err
		}
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	return tmp, f.Close()
}

// rename tries again for a moment where virus scanners hold files open.
func rename(dir *os.Root, from, to string) error {
	err := dir.Rename(from, to)
	for i := 0; err != nil && runtime.GOOS == "windows" && i < 10; i++ {
		time.Sleep(20 * time.Millisecond)
		err = dir.Rename(from, to)
	}
	return err
}

func syncDirs(dir *os.Root, made []string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	err = f.Sync()
	f.Close()
	for _, m := range made {
		d, openErr := os.Open(m)
		if openErr != nil {
			return errors.Join(err, openErr)
		}
		err = errors.Join(err, d.Sync())
		d.Close()
	}
	return err
}
