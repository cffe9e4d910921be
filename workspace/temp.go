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
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/lazyregexp"
)

// temp is a temporary file with new content, beside the file that it will replace. The writer holds a lock on the
// temporary file (if the system has such locks), so that others do not mistake it for a leftover. A lock ends with
// its process, whereas process numbers in a name would have to be interpreted across restarts and containers.
type temp struct {
	dir  *os.Root
	name string
	f    *os.File
}

// tempName is ".NAME.roost-XXXXXXXXXXXX.tmp".
var tempName = lazyregexp.New(`(?s)^\..+\.roost-[0-9a-f]{12}\.tmp$`)

// IsTemporary reports whether a name is one of the temporary files of writes.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && tempName().MatchString(name)
}

// heldWhileOpen reports whether an open file can be renamed and keeps its lock. Windows may refuse to rename one.
const heldWhileOpen = filelock.Supported && runtime.GOOS != "windows"

// lockFile takes the lock that marks a temporary file as being made. It lasts until the file is closed. The error is
// for a file system or a system on which such locks are not certain: there nothing counts as a leftover.
func lockFile(f *os.File) (held bool, err error) {
	if !heldWhileOpen {
		return false, filelock.ErrUnsupported
	}
	return filelock.Try(f, filelock.Exclusive)
}

// newTemp writes data to a file of its own and syncs it. From its first byte on, the file has the mode of the old
// file: others can read a private file at no moment.
func newTemp(ctx context.Context, dir *os.Root, name string, data []byte, old fs.FileInfo) (*temp, error) {
	t, err := createTemp(dir, name, old != nil)
	if err != nil {
		return nil, err
	}
	err = t.fill(ctx, data)
	if err == nil && old != nil {
		err = t.like(old.Mode(), old)
	}
	if err == nil {
		err = syncFile(t.f)
	}
	if err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// tempNameFor returns the temporary name of a file that will be renamed to name; id makes it unique. The pattern
// tempName matches it.
func tempNameFor(name, id string) string {
	name = name[:min(len(name), 200)] // leaves room below the limit of 255 bytes
	return "." + strings.ToValidUTF8(name, "_") + ".roost-" + id + ".tmp"
}

// randomTemp returns a temporary name that no other file has.
func randomTemp(name string) string {
	var id [6]byte
	_, _ = rand.Read(id[:])
	return tempNameFor(name, hex.EncodeToString(id[:]))
}

func createTemp(dir *os.Root, name string, private bool) (*temp, error) {
	mode := fs.FileMode(0o666)
	if private {
		mode = 0o600
	}
	// A sweep may remove the file before it is locked: then make another.
	for range 10 {
		t := &temp{dir: dir, name: randomTemp(name)}
		var err error
		if t.f, err = dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
			return nil, err
		}
		if held, err := lockFile(t.f); !held && err == nil {
			t.discard()
			continue
		}
		if info, err := dir.Lstat(t.name); err == nil {
			if own, err := t.f.Stat(); err == nil && os.SameFile(info, own) {
				return t, nil
			}
		}
		t.discard()
	}
	return nil, errors.New("another program removed its temporary file each time")
}

// fill writes the content; it syncs nothing.
func (t *temp) fill(ctx context.Context, data []byte) error {
	for part := range slices.Chunk(data, 1<<20) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := t.f.Write(part); err != nil {
			return err
		}
	}
	failpoint.Hit("tool.write.filled")
	return nil
}

// like sets the mode and, where there is an old file, its owner.
func (t *temp) like(mode fs.FileMode, old fs.FileInfo) error {
	keep := fs.ModePerm | fs.ModeSticky
	if old != nil {
		if uid, gid, ok := owner(old); ok && t.f.Chown(uid, gid) == nil {
			keep |= fs.ModeSetuid | fs.ModeSetgid // they mean "as the owner": only with the same one
		}
	}
	return t.f.Chmod(mode & keep)
}

// rename gives the file its name. With fresh the name must be free; if the system has links, the system itself
// refuses a name that is taken.
func (t *temp) rename(name string, fresh bool) (fs.FileInfo, error) {
	if !heldWhileOpen {
		if err := t.f.Close(); err != nil {
			return nil, err
		}
	}
	linked := false
	if fresh {
		err := t.dir.Link(t.name, name)
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%w: a file of this name was made", ErrChanged)
		}
		linked = err == nil
	}
	if linked {
		failpoint.Hit("tool.write.linked")
		if err := t.dir.Remove(t.name); err != nil {
			return nil, err
		}
	} else if err := atomicfile.RenameIn(t.dir, t.name, name); err != nil {
		return nil, err
	}
	t.name = ""
	if !heldWhileOpen {
		return t.dir.Lstat(name)
	}
	return t.f.Stat()
}

// discard closes the file and removes it, unless it got its name.
func (t *temp) discard() {
	if t.name != "" {
		_ = t.dir.Remove(t.name)
	}
	t.f.Close()
}

// maxSwept bounds how many names of a folder a sweep reads.
const maxSwept = 100_000

// Sweep removes the temporary files that killed writes left in the folder of p, and returns how many. Sweep touches
// only files with such a name and of this user that no process holds.
func (w *Workspace) Sweep(p Path) (int, error) {
	if p.Real == w.root {
		return 0, nil
	}
	dir, err := w.OpenDir(filepath.Dir(p.Real))
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return 0, nil // no folder, no leftovers
	case err != nil:
		return 0, fmt.Errorf("look for leftovers: %w", err)
	}
	defer dir.Close()
	return sweep(dir), nil
}

// sweepOnce sweeps a folder before the first write to it.
func (w *Workspace) sweepOnce(path string, dir *os.Root) {
	w.mu.Lock()
	seen := w.swept[path]
	w.swept[path] = true
	w.mu.Unlock()
	if !seen {
		sweep(dir)
	}
}

func sweep(dir *os.Root) (removed int) {
	f, err := dir.Open(".")
	if err != nil {
		return 0
	}
	defer f.Close()
	for looked := 0; looked < maxSwept; {
		names, err := f.Readdirnames(1024)
		looked += len(names)
		for _, name := range names {
			if IsTemporary(name) && removeLeftover(dir, name) {
				removed++
			}
		}
		if err != nil {
			break
		}
	}
	return removed
}

// maxUnlocked is the longest time between a writer's making of a file and its locking.
const maxUnlocked = time.Second

// awaitLock waits while a writer may have made a file a moment ago and not locked it yet. Otherwise a sweep that
// watches the folder can remove every file that a writer makes, one after the other, because the new file wakes the
// sweep. A file with content is locked, or is a leftover.
func awaitLock(dir *os.Root, name string, info fs.FileInfo) {
	var err error
	for begin := time.Now(); err == nil && info.Size() == 0 && time.Since(info.ModTime()) < maxUnlocked &&
		time.Since(begin) < maxUnlocked; {
		time.Sleep(maxUnlocked / 200)
		info, err = dir.Lstat(name)
	}
}

func removeLeftover(dir *os.Root, name string) bool {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if uid, _, ok := owner(info); !ok || uid != os.Geteuid() && os.Geteuid() != 0 {
		return false
	}
	awaitLock(dir, name, info)
	f, err := dir.OpenFile(name, os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	// The sweep holds the lock while it removes the file, so a writer that has made the file just now notices.
	if held, err := lockFile(f); !held || err != nil {
		return false
	}
	return dir.Remove(name) == nil
}
