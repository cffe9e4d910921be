package workspace

import (
	"io/fs"
	"syscall"
)

const (
	OpenNonblock = syscall.O_NONBLOCK // a pipe must not block the open
	openNoLink   = syscall.O_NOFOLLOW
)

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
