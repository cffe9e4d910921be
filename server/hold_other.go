//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package server

import (
	"errors"
	"os"
)

func lock(*os.File, bool) (bool, error) {
	return false, errors.New("kernel locks are not supported on this system")
}

func unlock(*os.File) error { return nil }
