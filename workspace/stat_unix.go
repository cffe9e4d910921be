//go:build linux || darwin

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

func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
