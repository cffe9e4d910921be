//go:build unix

package filelock_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/filelock"
)

// While a process starts a program, the child has all its files open until the exec, as a duplicate does here. The lock
// ends nevertheless.
func TestALockEndsWhileAChildHasItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		f, err := filelock.TryOpen(path, filelock.Exclusive)
		if f == nil || err != nil {
			t.Fatal("the lock is still held: ", err)
		}
		child, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(child) //nolint:errcheck // nothing was written
		if err := filelock.Release(f); err != nil {
			t.Fatal(err)
		}
	}
}
