//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import "golang.org/x/sys/unix"

// Supported reports whether this system has kernel locks.
const Supported = true

func try(fd uintptr, m Mode) (bool, error) {
	how := unix.LOCK_SH
	if m&Exclusive != 0 {
		how = unix.LOCK_EX
	}
	for {
		switch err := unix.Flock(int(fd), how|unix.LOCK_NB); err {
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

func unlock(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_UN) }
