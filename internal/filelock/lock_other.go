//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package filelock

// Supported reports whether this system has kernel locks.
const Supported = false

func try(uintptr, Mode) (bool, error) { return false, ErrUnsupported }

func unlock(uintptr) error { return nil }
