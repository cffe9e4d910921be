package workspace

import (
	"io/fs"
	"syscall"
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
		return st.Ctimespec.Nano(), st.Ino, uint64(uint32(st.Dev))
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
