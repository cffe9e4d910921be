//go:build unix && !(linux && (amd64 || arm64))

package store

import "golang.org/x/sys/unix"

func fstatat(fd int, name []byte, st *unix.Stat_t, flags int) error {
	return unix.Fstatat(fd, string(name), st, flags)
}
