//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package export

import "os"

// hold does nothing: Windows does not remove an open file.
func hold(*os.File) (held bool, err error) { return false, nil }
