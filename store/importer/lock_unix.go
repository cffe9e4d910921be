//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package importer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// takeLock takes the lock of imports into a root. It ends with the process, and
// its file is never removed.
func takeLock(path string) (free func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock imports: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrRunning
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		// A command that this process is starting has the file open, too, until its exec.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		f.Close()
	}, nil
}
