package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal"
)

// acquire opens and locks journal.lock. Without a wait a held lock is a
// *journal.BusyError at once.
func acquire(ctx context.Context, fsys FS, dir string, wait time.Duration) (File, error) {
	path := filepath.Join(dir, lockName)
	deadline := time.Now().Add(wait)
	for range 100 {
		f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, notSaved(fsys, "open", path, err)
		}
		if err := await(ctx, f, dir, deadline); err != nil {
			f.Close()
			return nil, err
		}
		if stillNamed(fsys, path, f) {
			return f, nil
		}
		_ = filelock.Release(f) // nothing was written
	}
	return nil, fmt.Errorf("lock %s: the path names another file each time: %w", path, journal.ErrUntrustedLocks)
}

// stillNamed reports whether a file is still the one under its name. Between our opening and locking it another
// process may have moved the folder away and made another one in its place: the lock of the one does not protect the
// log of the other.
func stillNamed(fsys FS, path string, f File) bool {
	now, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	held, herr := f.Stat()
	return err != nil || herr != nil || !now.Mode().IsRegular() || fileID(now) == fileID(held)
}

// await takes the lock of an open file.
func await(ctx context.Context, f File, dir string, deadline time.Time) error {
	nameless := deadline.Add(unsigned)
	for {
		got, held, err := lockOnce(f)
		switch {
		case err != nil:
			return fmt.Errorf("lock %s: %v: %w", filepath.Join(dir, lockName), err, journal.ErrUntrustedLocks)
		case got:
			return nil
		case held && time.Now().After(deadline):
			holder := readHolder(f)
			if holder.PID != 0 || time.Now().After(nameless) {
				return &journal.BusyError{Dir: dir, Holder: holder}
			}
			held = false // it is just coming or going
		}
		pause := 25 * time.Millisecond
		if !held { // a reader is looking; that takes it microseconds
			pause = time.Duration(rand.IntN(2000)) * time.Microsecond
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// unsigned is how long a process without a name may hold a lock: an owner signs right after it took the lock, and
// removes its name right before it releases it. On a busy machine it may sleep between the two. A killed owner's name
// stays until the next one signs, and the command that it was starting has the lock until its exec.
const unsigned = 5 * time.Second

// lockOnce tries the exclusive lock. If it is refused, a shared one separates readers, which hold the lock for a
// moment to measure the log, from an owner.
func lockOnce(f File) (got, held bool, err error) {
	if got, err = filelock.Try(f, filelock.Exclusive); got || err != nil {
		return got, false, err
	}
	shared, err := filelock.Try(f, filelock.Shared)
	if shared {
		err = filelock.Unlock(f)
	}
	return false, !shared, err
}

// Trusted refuses, with journal.ErrUntrustedLocks, a folder on a file system that is not known to keep locks.
func Trusted(dir string) error { return trusted(OS, dir) }

// trusted is Trusted on any file system. A folder that is not there yet
// is judged by the first one above it that is.
func trusted(fsys FS, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		kind, ok, err := fsys.LocksTrusted(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at:
			continue
		case err != nil:
			return fmt.Errorf("look at the file system of %s: %w", dir, err)
		case !ok:
			return fmt.Errorf("use %s: it is on %s, which is not known to keep locks; move it to a local disk, or run where "+
				"the disk is: %w", dir, kind, journal.ErrUntrustedLocks)
		}
		return nil
	}
}
