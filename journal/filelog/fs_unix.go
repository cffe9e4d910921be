//go:build unix

package filelog

import (
	"io/fs"
	"syscall"
)

// fileID returns the inode number.
func fileID(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// names returns the number of names (hard links) of a file, -1 if the system does not report it.
func names(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return -1
}
