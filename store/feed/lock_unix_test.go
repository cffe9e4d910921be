//go:build unix

package feed

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A command that this process is starting has all its files open until its exec. Whoever
// has a line to tell meanwhile tells it.
func TestALockIsFreeAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "feed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := create(dir, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child) //nolint:errcheck // it was not written
	if err := letGo(f); err != nil {
		t.Fatal(err)
	}
	tell(t, writer(dir), line("a", 1, 1, 4))
}
