//go:build unix

package roofmt

import (
	"io/fs"
	"os"
	"syscall"
)

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// tryLockDir takes the kernel lock on an open directory. It needs no file of its own and ends with the process.
func tryLockDir(dir *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
		default:
			return false, err
		}
	}
}

func syncDir(dir *os.File) error { return dir.Sync() }

// openFlags keep an open of a named pipe from waiting for its other end.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

func pidAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}

func unlockDir(dir *os.File) error { return syscall.Flock(int(dir.Fd()), syscall.LOCK_UN) }
