package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeback has the disk begin with a file's content, and waits for nothing. Of many files
// the first sync then finds all contents placed, and one write of the file system's log
// serves them all.
func writeback(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint: Sync reports failures
}
