//go:build unix && !linux

package workspace

import "golang.org/x/sys/unix"

// openToPass opens a folder that the user may list.
const openToPass = unix.O_RDONLY
