//go:build unix

package content

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Without space nothing is lost and nothing is left; with space again all continues.
func TestAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and much data: the race detector finds nothing here and takes long")
	}
	full := syscall.ENOSPC
	for _, at := range []string{"create", "write", "sync", "rename", "syncdir"} {
		for skip := range 2 {
			s := newStore(t)
			old := commit(t, s, map[string]string{"f": "old"})
			fixture.NoError(t, s.SetName(context.Background(), "t", old))
			passes := skip
			s.fault = func(op string) error {
				if op == at {
					if passes--; passes < 0 {
						return full
					}
				}
				return nil
			}
			err := func() error {
				b, err := s.Begin(context.Background())
				if err != nil {
					return err
				}
				defer b.Discard()
				if _, err = b.Add(fixture.Must[[]byte](t)(io.ReadAll(&noise{left: 9 << 20, x: 3}))); err != nil {
					return err
				}
				h, err := commitTo(b, map[string]string{"f": "new"})
				if err == nil {
					err = b.Close()
				}
				if err == nil {
					err = s.SetName(context.Background(), "t", h)
				}
				return err
			}()
			if err != nil && !errors.Is(err, full) {
				t.Errorf("got %s %d: %v, want no error or errors.Is(err, full)", at, skip, err)
			}
			if skip == 0 && err == nil {
				t.Errorf("%s: nothing failed", at)
			}
			if left := listed(t, s, tempDir); len(left) != 0 {
				t.Errorf("%s %d: temporary files are left: %v", at, skip, left)
			}
			if err == nil {
				continue
			}
			if _, err := s.Collect(context.Background(), CollectOptions{}); err != nil && !errors.Is(err, full) {
				t.Errorf("%s %d: collect: %v", at, skip, err)
			}
			s.fault = func(string) error { return nil }
			if got := files(t, openStore(t, s.dir), fixture.Must[Hash](t)(s.Name(context.Background(), "t"))); got["f"] != "old" && at != "syncdir" {
				t.Errorf(`got %s %d: %v, want got["f"] = "old" or at = "syncdir"`, at, skip, got)
			}
			fixture.NoError(t, s.SetName(context.Background(), "t", commit(t, s, map[string]string{"f": "new"})))
			s.Settle()
			collect(t, s)
			verifyAll(t, s)
		}
	}
}

// A full disk has no room for a rewritten bundle. A collection still removes what needs none.
func TestCollectOnAFullDisk(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		s := newStore(t)
		ctx := context.Background()
		fixture.NoError(t, s.SetName(ctx, "stays", commit(t, s, map[string]string{"f": "needed"})))
		fixture.NoError(t, s.SetName(ctx, "also", commit(t, s, map[string]string{"g": "needed too"})))
		commit(t, s, map[string]string{"h": "unused"})
		if mixed { // a bundle with needed and unused contents
			b := fixture.Must[Batch](t)(s.Begin(ctx))
			fixture.Must[Hash](t)(b.Add([]byte("unused, too")))
			h := fixture.Must[Hash](t)(commitTo(b, map[string]string{"i": "needed, too"}))
			fixture.NoError(t, b.Close())
			fixture.NoError(t, s.SetName(ctx, "mixed", h))
		}
		s.Settle()
		s.fault = func(op string) error {
			if op == "write" {
				return syscall.ENOSPC
			}
			return nil
		}
		before := len(listed(t, s, bundlesDir))
		_, err := s.Collect(ctx, CollectOptions{})
		if full := errors.Is(err, syscall.ENOSPC); full != mixed || !full && err != nil {
			t.Errorf("mixed %v: got %v, want an error only where unused contents remain", mixed, err)
		}
		if after := len(listed(t, s, bundlesDir)); after != before-1 {
			t.Errorf("mixed %v: %d of %d bundles are left, want one less", mixed, after, before)
		}
		s.fault = func(string) error { return nil }
		collect(t, s)
		verifyAll(t, s)
	}
}
