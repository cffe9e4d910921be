//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package object

import (
	"errors"
	"os"
)

func tryLock(*os.File, bool) (bool, error) {
	return false, errors.New("kernel locks are not supported on this system")
}

func letGo(f *os.File) error { return f.Close() }

func syncDir(string) error { return nil }
