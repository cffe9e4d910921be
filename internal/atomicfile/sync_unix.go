//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes the names in a folder durable. Where folders cannot be synced it does nothing.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = syncFile(f)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // this file system has no sync for folders
	}
	return errors.Join(err, f.Close())
}
