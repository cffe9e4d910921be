//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package export

import (
	"os"

	"golang.org/x/sys/unix"
)

// hold marks an unfinished file as being written, as long as it is open and its process lives. held means that another
// process holds it; err, that this file system has no locks.
func hold(f *os.File) (held bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return err == unix.EWOULDBLOCK, err
}
