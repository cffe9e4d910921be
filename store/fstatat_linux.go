//go:build amd64 || arm64

package store

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fstatat is unix.Fstatat without a copy of the name on the heap: a list calls it fifty
// thousand times, and a tenth of its time went into them. It may write behind the name.
func fstatat(fd int, name []byte, st *unix.Stat_t, flags int) error {
	if bytes.IndexByte(name, 0) >= 0 {
		return unix.EINVAL
	}
	name = append(name, 0)
	_, _, errno := unix.Syscall6(sysFstatat, uintptr(fd), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(st)), uintptr(flags), 0, 0) //nolint:gosec // as package unix does it
	if errno != 0 {
		return errno
	}
	return nil
}
