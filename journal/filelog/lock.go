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

	"github.com/roost-dev/roost/journal"
)

// acquire opens and locks journal.lock. Without a wait a held lock is a
// *journal.BusyError at once.
func acquire(ctx context.Context, fsys FS, dir string, wait time.Duration) (File, error) {
	path := filepath.Join(dir, lockName)
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, notSaved(fsys, "open", path, err)
	}
	deadline := time.Now().Add(wait)
	nameless := deadline.Add(unsigned)
	for {
		got, held, err := lockOnce(f)
		switch {
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("lock %s: %v: %w", path, err, journal.ErrUntrustedLocks)
		case got:
			return f, nil
		case held && time.Now().After(deadline):
			holder := readOwner(f)
			if holder.PID != 0 || time.Now().After(nameless) {
				f.Close()
				return nil, &journal.BusyError{Dir: dir, Holder: holder}
			}
			held = false // it is just coming or going
		}
		pause := 25 * time.Millisecond
		if !held { // a reader is looking; that takes it microseconds
			pause = time.Duration(rand.IntN(2000)) * time.Microsecond
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// unsigned is how long a lock may be held by somebody without a name: an owner
// signs right after it took the lock, and takes its name away right before it
// lets go.
const unsigned = 100 * time.Millisecond

// lockOnce tries the exclusive lock. If it is refused, a shared one tells
// readers, who hold it for a moment to measure the log, from an owner.
func lockOnce(f File) (got, held bool, err error) {
	if got, err = tryLock(f.Fd(), true); got || err != nil {
		return got, false, err
	}
	shared, err := tryLock(f.Fd(), false)
	if shared {
		unlock(f.Fd())
	}
	return false, !shared, err
}

// ensureDir makes a folder and what leads to it, each name durable.
func ensureDir(fsys FS, dir string) error {
	err := fsys.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := ensureDir(fsys, filepath.Dir(dir)); err != nil {
			return err
		}
		err = fsys.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // if it is no folder, what follows fails and says so
	}
	if err != nil {
		return notSaved(fsys, "make folder", dir, err)
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return notSaved(fsys, "sync folder", filepath.Dir(dir), err)
	}
	return nil
}

// trusted refuses file systems that lose locks. A folder that is not there yet
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
			return fmt.Errorf("own %s: it lies on %s; move it to a local disk, or run where the disk is: %w", dir, kind, journal.ErrUntrustedLocks)
		}
		return nil
	}
}
