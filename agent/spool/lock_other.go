//go:build !unix

package spool

import (
	"io/fs"
	"os"
	"runtime"
)

const noFollow = 0

// tryLock needs no lock on Windows: an open file there cannot be removed, so the
// removal itself tells whether the owner lives. Elsewhere nothing is known, and
// nothing is removed.
func tryLock(*os.File) (bool, error) { return runtime.GOOS == "windows", nil }

// letGo closes a lock's file, which is all that there is to let go.
func letGo(f *os.File) error { return f.Close() }

// removeLocked removes the lock file first: while the owner lives that fails, and
// the rest is left alone.
func removeLocked(path string, f *os.File) {
	name := f.Name()
	_ = f.Close() // ours would be in the way
	if os.Remove(name) == nil {
		_ = os.RemoveAll(path) // tried again by the next one
	}
}

func ours(fs.FileInfo) bool { return true }
