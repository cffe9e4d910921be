package workspace

import (
	"io/fs"
	"syscall"
)

// Identity returns the numbers that distinguish the files of a disk, and the time in nanoseconds at which the system last
// noted a change of the file. All are zero where they are unknown.
func Identity(info fs.FileInfo) (ctime int64, inode, device uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano(), st.Ino, uint64(uint32(st.Dev))
	}
	return 0, 0, 0
}
