//go:build unix && !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package filelog

import "errors"

func tryLock(uintptr, bool) (bool, error) {
	return false, errors.New("kernel locks are not supported on this system")
}

func unlock(uintptr) {}
