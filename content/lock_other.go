//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package content

import (
	"errors"
	"os"
)

func TryLock(*os.File, bool) (bool, error) {
	return false, errors.New("kernel locks are not supported on this system")
}

func Unlock(f *os.File) error { return f.Close() }

func syncDir(string) error { return nil }
