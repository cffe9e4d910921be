package content

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is an offset far behind any content: on Windows no other process can read locked bytes.
const lockAt = 0x7fffffff

// TryLock takes a kernel lock without waiting. It belongs to the open file and ends
// with it, or with the process.
func TryLock(f *os.File, exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases a lock and closes its file.
func Unlock(f *os.File) error { return f.Close() }

// syncDir does nothing: Windows keeps names durable by itself.
func syncDir(string) error { return nil }
