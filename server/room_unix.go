//go:build linux || darwin

package server

import "golang.org/x/sys/unix"

// kept returns why a folder cannot store more; "" if it can, or if the system does not report it.
func kept(dir string, least uint64) string {
	if unix.Access(dir, unix.W_OK) != nil {
		return "it may not be written"
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil && st.Bavail*uint64(st.Bsize) < least {
		return "the disk is full"
	}
	return ""
}
