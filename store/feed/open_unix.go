//go:build unix

package feed

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFile is os.OpenFile in one system call where that takes eight: it also asks whether the
// file can be waited for, and a writer opens it with every sync.
func openFile(path string, flag int, perm uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, perm)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
