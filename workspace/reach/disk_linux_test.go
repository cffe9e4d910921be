package reach

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// gitWrites matches what git prints when it cannot write a file.
var gitWrites = regexp.MustCompile("No space left|couldn't write|write error")

// A clone for which the disk has no room is an error of a write, and leaves nothing behind. The disks get larger
// until the clone fits, so that each of its steps meets a full one.
func TestCloneOntoAFullDisk(t *testing.T) {
	s, p := cloner(t)
	failed := 0
	for size := 16 << 10; ; size += 16 << 10 {
		if size > 4<<20 {
			t.Fatalf("the clone does not fit into %d bytes, want it to", size)
		}
		disk := filepath.Join(t.TempDir(), "disk")
		fixture.NoError(t, os.Mkdir(disk, 0o700))
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size="+strconv.Itoa(size)); errors.Is(err, syscall.EPERM) {
			t.Skip("this user may not mount a disk")
		} else {
			fixture.NoError(t, err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		s.clones.Dir = disk
		at, _, err := s.Clone(t.Context(), "task", p, func(string) error { return nil })
		if err == nil {
			if data, err := os.ReadFile(filepath.Join(at, "in", "a.txt")); err != nil || string(data) != "a" {
				t.Errorf("a clone of at most %d bytes: got %q, %v; want it whole", size, data, err)
			}
			break
		}
		failed++
		if !errors.Is(err, syscall.ENOSPC) && !gitWrites.MatchString(err.Error()) {
			t.Errorf("a disk of %d bytes: got %v, want an error of a write", size, err)
		}
		if left := fixture.Must[[]os.DirEntry](t)(os.ReadDir(disk)); len(left) > 0 {
			t.Errorf("a disk of %d bytes: got %v left behind, want nothing", size, left)
		}
	}
	if failed == 0 {
		t.Error("the clone fits onto the smallest disk, want one that is too small")
	}
}
