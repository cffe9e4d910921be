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

	"github.com/roost-dev/roost/api"
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
	Sweep(dir)
	for range tries {
		path, err := os.MkdirTemp(dir, prefix+"*")
		if err != nil {
			return "", fmt.Errorf("make a folder for the output of commands: %w", err)
		}
		// A sweep of another process may remove the folder before the lock is held. Nothing prevents that: a folder
		// that could not be removed until it is locked would stay for ever if its maker died before.
		lock, err := filelock.TryOpen(filepath.Join(path, lockName), filelock.Exclusive)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && lock == nil:
			continue
		case err != nil:
			return "", errors.Join(fmt.Errorf("lock the folder for the output of commands: %w", err), os.RemoveAll(path))
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
	return api.Failed(os.RemoveAll(path), "remove the folder for the output of commands")
}

// Left lists the folders below dir that dead processes left, and removes nothing. dir
// "" is the system's folder for temporary files.
func Left(dir string) []string { return dead(dir, false) }

// Sweep removes the folders below dir that dead processes left, as Make does.
func Sweep(dir string) { dead(dir, true) }

// dead lists the folders of our name and user whose process is dead. It removes each while it holds the lock: two
// sweeps do not meet. A folder that cannot be listed has none: making a folder there reports the error.
func dead(dir string, remove bool) (list []string) {
	dir = cmp.Or(dir, os.TempDir())
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || !ours(info) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|noFollow, 0)
		gone := errors.Is(err, fs.ErrNotExist) && (time.Since(info.ModTime()) > unlocked || remove && os.Remove(path) == nil)
		if err == nil {
			gone, err = filelock.Try(f, filelock.Exclusive)
			gone = gone && err == nil
			if runtime.GOOS == "windows" {
				_ = filelock.Release(f) // an open file cannot be removed there
			}
		}
		if gone {
			list = append(list, path)
			if remove {
				_ = os.RemoveAll(path) // the next sweep tries again
			}
		}
		if f != nil {
			_ = filelock.Release(f) // nothing was written
		}
	}
	return list
}
