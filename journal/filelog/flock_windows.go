package filelog

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lockAt is a byte far behind any content: Windows locks keep others from the
// locked bytes, and everybody must be able to read the record.
const lockAt = 0x7fffffff

func tryLock(fd uintptr, exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func unlock(fd uintptr) {
	_ = windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, &windows.Overlapped{OffsetHigh: lockAt})
}
