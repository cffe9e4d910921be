package object

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

// keepOpen has the open file of a path open a second time, as a program has that another
// goroutine is just starting.
func keepOpen(t *testing.T, path string) {
	t.Helper()
	found := false
	for _, d := range must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd")) {
		if to, err := os.Readlink("/proc/self/fd/" + d.Name()); err != nil || to != path {
			continue
		}
		var fd int
		for _, c := range d.Name() {
			fd = fd*10 + int(c-'0')
		}
		twin := must[int](t)(syscall.Dup(fd))
		t.Cleanup(func() { _ = syscall.Close(twin) })
		found = true
	}
	if !found {
		t.Fatalf("%s is not open", path)
	}
}

// A lock that is given back is free, whoever has its file open besides.
func TestALockIsGivenBackWhileAProgramIsStarted(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"f": "kept"})
	ok(t, s.SetRef("refs/roost/t", id))
	commit(t, s, map[string]string{"f": "garbage"})
	for _, name := range []string{lockRemove, lockCollect, lockRefs} {
		free := must[func()](t)(s.lock(context.Background(), name, true))
		keepOpen(t, s.path("roost", name))
		free()
		again, got, err := s.tryLock(name, true)
		if err != nil || !got {
			t.Fatalf("the lock %s is still held: %v", name, err)
		}
		again()
	}
	// So it is with a lease: what it held is collected.
	keepOpen(t, s.held.lease.Name())
	name := s.held.lease.Name()
	s.Settle()
	if held := must[[]lease](t)(s.leases(false)); len(held) > 0 {
		t.Fatalf("%s counts still: %v", strings.TrimPrefix(name, s.dir), held)
	}
	if got := collect(t, s); got.Removed != 3 {
		t.Errorf("collected: %+v", got)
	}
}
