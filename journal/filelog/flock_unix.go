//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelog

import (
	"golang.org/x/sys/unix"
)

// tryLock takes the lock without waiting. flock belongs to the open file, so a
// second owner in the same process is refused as well. (fcntl locks belong to
// the process and vanish with any close of the file: rejected.)
func tryLock(fd uintptr, exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
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

func unlock(fd uintptr) { _ = unix.Flock(int(fd), unix.LOCK_UN) }
