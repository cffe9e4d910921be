//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// While a program is started it has all files open that this process has. A lock that was
// given back is free all the same.
func TestALockIsGivenBackWhoeverElseHasItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f := must[*os.File](t)(os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600))
	if got, err := lock(f, true); err != nil || !got {
		t.Fatal(got, err)
	}
	theirs := must[int](t)(syscall.Dup(int(f.Fd())))
	defer syscall.Close(theirs) //nolint:errcheck // it was only held
	if err := letGo(f); err != nil {
		t.Fatal(err)
	}
	next := must[*os.File](t)(os.OpenFile(name, os.O_RDWR, 0o600))
	if got, err := lock(next, true); err != nil || !got {
		t.Errorf("it is still held: %v, %v", got, err)
	}
	if err := letGo(next); err != nil {
		t.Error(err)
	}
}
