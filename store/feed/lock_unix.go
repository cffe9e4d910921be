//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package feed

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFile is os.OpenFile in one system call where that takes eight: it also asks whether the
// file can be waited for, and a writer opens it with every sync.
func openFile(path string, flag int, perm uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, perm)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// tryLock takes the lock of an open file, if it is free.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
