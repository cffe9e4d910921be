//go:build unix

package sqlitefile

import (
	"os"
	"syscall"
)

// openFlags keep an open of a named pipe from waiting for its other end.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK
