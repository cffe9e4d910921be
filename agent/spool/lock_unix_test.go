//go:build unix

package spool

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// While a program is started it has all files open that this process has. A lock that was
// given back is free all the same: a dead folder that was looked at can be swept at once.
func TestALockIsGivenBackWhoeverElseHasItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), lockName)
	for range 2 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tryLock(f); err != nil || !got {
			t.Fatalf("it is still held: %v, %v", got, err)
		}
		theirs, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(theirs) //nolint:errcheck // it was only held
		if err := letGo(f); err != nil {
			t.Fatal(err)
		}
	}
}
