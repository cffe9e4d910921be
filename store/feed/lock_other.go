//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package feed

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) {
	return false, errors.New("kernel locks are not supported on this system")
}

func unlock(*os.File) {}

func openFile(path string, flag int, perm uint32) (*os.File, error) {
	return os.OpenFile(path, flag, os.FileMode(perm))
}
