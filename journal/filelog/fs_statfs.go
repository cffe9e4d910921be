//go:build linux || darwin

package filelog

import "golang.org/x/sys/unix"

func freeSpace(name string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
