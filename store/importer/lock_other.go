//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package importer

import "errors"

func takeLock(string) (func(), error) {
	return nil, errors.New("kernel locks are not supported on this system")
}
