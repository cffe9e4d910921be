//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package store

import "errors"

func LockImport(string) (func(), error) {
	return nil, errors.New("kernel locks are not supported on this system")
}
