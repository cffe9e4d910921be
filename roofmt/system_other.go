//go:build !unix

package roofmt

import (
	"io/fs"
	"os"
)

func inodeOf(fs.FileInfo) uint64 { return 0 }

// Without a lock on directories only Roo's own locks keep writers apart.
func tryLockDir(*os.File) (bool, error) { return true, nil }

// Windows does not sync directories; its file system journals renames.
func syncDir(*os.File) error { return nil }

const openFlags = os.O_RDONLY

func pidAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

func unlockDir(*os.File) error { return nil }
