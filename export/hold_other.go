//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package export

import "os"

// hold has nothing to do: on Windows a file that is open cannot be removed.
func hold(*os.File) (held bool, err error) { return false, nil }
