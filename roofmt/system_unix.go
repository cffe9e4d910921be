//go:build unix

package roofmt

import (
	"io/fs"
	"os"
	"syscall"
)

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// openFlags keep an open of a named pipe from waiting for its other end.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK
