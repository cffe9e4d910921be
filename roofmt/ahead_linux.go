package roofmt

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ahead advises the system to read the file soon. No caller waits for it.
func ahead(f *os.File, size int64) {
	onFD(f, func(fd int) { _ = unix.Fadvise(fd, 0, min(size, mostAhead), unix.FADV_WILLNEED) })
}

// onDisk reports whether the end of a file is certainly not in memory. It does not block.
func onDisk(f *os.File, size int64) (cold bool) {
	onFD(f, func(fd int) {
		var last [1]byte
		_, err := unix.Preadv2(fd, [][]byte{last[:]}, size-1, unix.RWF_NOWAIT)
		cold = errors.Is(err, unix.EAGAIN)
	})
	return cold
}

// onFD calls fn without changing the file's mode: os.File.Fd would make it blocking.
func onFD(f *os.File, fn func(fd int)) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { fn(int(fd)) }) // it fails for a file that was closed, and then no caller reads it
	}
}
