package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Identity returns the numbers that distinguish the files of a disk, and the time in nanoseconds at which the system last
// noted a change of the file. All are zero where they are unknown.
func Identity(info fs.FileInfo) (ctime int64, inode, device uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano(), st.Ino, uint64(st.Dev)
	}
	return 0, 0, 0
}

// openToPass opens a folder that one may pass through, even if one may not list it.
const openToPass = unix.O_PATH

// writeback makes the disk begin to write a file's content, and waits for nothing. The first sync of many files then
// finds all contents written, and one write of the file system's log is enough for all of them.
func writeback(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint: Sync reports failures
}
