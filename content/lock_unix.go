//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package content

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes a kernel lock without waiting. It belongs to the open file and ends
// with it, or with the process.
func TryLock(f *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, err
		}
	}
}

// Unlock releases a lock and closes its file. Closing is not enough: a child that is being started by another
// goroutine has the file open until it runs its program, and the lock with it.
func Unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// syncDir makes the names in a folder durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // this file system has no sync for folders
	}
	return errors.Join(err, d.Close())
}
