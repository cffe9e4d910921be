//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package workspace

import (
	"errors"
	"os"
	"syscall"
)

// heldWhileOpen: an open file can be renamed, and keeps its lock.
const heldWhileOpen = true

// lockFile takes a lock that lasts until the file is closed. held is false when
// somebody else has it; sure is false where the file system has no locks.
func lockFile(f *os.File) (held, sure bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return true, false
	}
	ctlErr := raw.Control(func(fd uintptr) { err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, true
	case err != nil || ctlErr != nil:
		return true, false
	}
	return true, true
}
