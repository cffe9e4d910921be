package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// OpenNonblock is a flag of os.OpenFile: opening a pipe without a writer does not block.
	OpenNonblock = syscall.O_NONBLOCK
	openNoLink   = syscall.O_NOFOLLOW
)

// Identity is what tells one file of a disk from another, and when the system last noted a change of it, in nanoseconds.
// All are zero where that is unknown.
func Identity(info fs.FileInfo) (ctime int64, inode, device uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano(), st.Ino, uint64(st.Dev)
	}
	return 0, 0, 0
}

func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// openToPass opens a folder that one may pass through, also when one may not list it.
const openToPass = unix.O_PATH

// writeback has the disk begin with a file's content, and waits for nothing. Of many files
// the first sync then finds all contents placed, and one write of the file system's log
// serves them all.
func writeback(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint: Sync reports failures
}
