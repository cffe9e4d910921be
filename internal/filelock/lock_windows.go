package filelock

import (
	"errors"

	"golang.org/x/sys/windows"
)

// Supported reports whether this system has kernel locks.
const Supported = true

// far is the high half of the offset of the locked byte, which lies after any content, so that others can read the
// content.
const far = 0x7fffffff

func try(fd uintptr, m Mode) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if m&Exclusive != 0 {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := windows.Overlapped{OffsetHigh: far}
	if m&FirstByte != 0 {
		at.OffsetHigh = 0
	}
	err := windows.LockFileEx(windows.Handle(fd), how, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func unlock(fd uintptr) (err error) {
	for _, high := range []uint32{far, 0} {
		uerr := windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, &windows.Overlapped{OffsetHigh: high})
		if !errors.Is(uerr, windows.ERROR_NOT_LOCKED) {
			err = errors.Join(err, uerr)
		}
	}
	return err
}
