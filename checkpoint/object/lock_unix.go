//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package object

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes a kernel lock without waiting. It belongs to the open file and ends
// with it, or with the process.
func tryLock(f *os.File, exclusive bool) (bool, error) {
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

// letGo gives a lock back and closes its file. To close it is not enough: while another
// goroutine starts a program, that has the file open as well until it runs, and the lock with it.
func letGo(f *os.File) error {
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
