// Package spool makes the private folder in which a run keeps command output that does not fit in memory, and removes
// those that killed processes left.
//
// A folder belongs to the process that holds the kernel lock on the file in it. The lock ends with its process, however
// that ended. (A process id and a start time would have to be judged, and cannot be trusted across containers that
// share a folder.) So a folder whose lock is free is dead, and the next Make removes it.
//
// Only folders of the same user with our name count, and none that is a link. On systems without such locks (neither
// Unix nor Windows) nothing is removed.
package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
)

const (
	prefix   = "roost-spool-"
	lockName = "lock"
	// unlocked is the age from which on a folder with content and no lock file counts as dead: Roost never leaves such
	// a folder.
	unlocked = 24 * time.Hour
	// tries bounds how often a sweep of another process may remove the folder before it is locked.
	tries = 100
)

var (
	mu    sync.Mutex
	locks = map[string]*os.File{} // of this process's folders
)

// Make removes the folders of dead processes below dir and makes a new one, mode
// 0700. dir "" is the system's folder for temporary files. What cannot be removed
// is left for the next time: leftovers must not keep a run from starting.
func Make(dir string) (string, error) {
	dir = cmp.Or(dir, os.TempDir())
	sweep(dir, time.Now())
	for range tries {
		path, err := os.MkdirTemp(dir, prefix+"*")
		if err != nil {
			return "", fmt.Errorf("make a folder for the output of commands: %w", err)
		}
		lock, err := newLock(path)
		if err != nil {
			return "", errors.Join(fmt.Errorf("lock the folder for the output of commands: %w", err), os.RemoveAll(path))
		}
		if lock == nil {
			continue
		}
		mu.Lock()
		locks[path] = lock
		mu.Unlock()
		return path, nil
	}
	return "", fmt.Errorf("make a folder for the output of commands in %s: other processes removed it %d times", dir, tries)
}

// Remove removes a folder that Make made. "" is no folder.
func Remove(path string) error {
	if path == "" {
		return nil
	}
	mu.Lock()
	lock := locks[path]
	delete(locks, path)
	mu.Unlock()
	// Windows removes no open file; elsewhere the order does not matter: a process that takes the lock in between
	// removes the folder as well.
	if lock != nil {
		_ = filelock.Release(lock) // nothing was written
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove the folder for the output of commands: %w", err)
	}
	return nil
}

// newLock makes and takes the lock of a new folder. It returns nil when another process removed the folder before the
// lock was held. Nothing prevents that: a folder that could not be removed until it is locked would stay for ever if
// its maker died before.
func newLock(path string) (*os.File, error) {
	name := filepath.Join(path, lockName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	held, err := filelock.Try(f, filelock.Exclusive)
	if err == nil && held && filelock.Same(f, name) {
		return f, nil
	}
	return nil, errors.Join(err, filelock.Release(f))
}

// Left lists the folders below dir that dead processes left, and removes nothing. dir
// "" is the system's folder for temporary files.
func Left(dir string) []string {
	var out []string
	eachOurs(dir, func(path string, info fs.FileInfo) {
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|noFollow, 0)
		if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > unlocked {
			out = append(out, path)
		}
		if err != nil {
			return
		}
		defer filelock.Release(f) //nolint:errcheck // nothing was written
		if free, err := filelock.Try(f, filelock.Exclusive); err == nil && free && runtime.GOOS != "windows" {
			out = append(out, path)
		}
	})
	return out
}

// Sweep removes the folders below dir that dead processes left, as Make does.
func Sweep(dir string) { sweep(dir, time.Now()) }

// sweep removes what dead processes left.
func sweep(dir string, now time.Time) {
	eachOurs(dir, func(path string, info fs.FileInfo) { removeDead(path, info, now) })
}

// eachOurs visits the folders of our name and user. A folder that cannot be listed has none: making a folder there
// reports the error.
func eachOurs(dir string, visit func(path string, info fs.FileInfo)) {
	dir = cmp.Or(dir, os.TempDir())
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if info, err := e.Info(); err == nil && ours(info) {
			visit(filepath.Join(dir, e.Name()), info)
		}
	}
}

func removeDead(path string, info fs.FileInfo, now time.Time) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if os.Remove(path) != nil && now.Sub(info.ModTime()) > unlocked { // not empty
			_ = os.RemoveAll(path) // the next sweep tries again
		}
		return
	}
	if err != nil {
		return
	}
	defer filelock.Release(f) //nolint:errcheck // nothing was written
	if held, err := filelock.Try(f, filelock.Exclusive); err != nil || !held {
		return
	}
	// While the lock is held, two sweeps do not meet. Windows removes no open file: there an owner of an earlier version,
	// which takes no lock, keeps its lock file by having it open.
	if runtime.GOOS == "windows" {
		_ = f.Close() // it would be in the way
		if os.Remove(f.Name()) != nil {
			return
		}
	}
	_ = os.RemoveAll(path) // the next sweep tries again
}
