//go:build unix

package content

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A process that is killed anywhere in its work leaves a store that others continue with: what was named stays whole,
// what was not named is collected, no temporary file is left.
func TestKills(t *testing.T) {
	for _, place := range []string{
		"content.bundle.written", "content.bundle.named", "content.name.written", "content.name.named",
		"content.collect.written", "content.collect.removing", "content.merge.written",
	} {
		t.Run(place, func(t *testing.T) {
			s := newStore(t)
			old := commit(t, s, map[string]string{"f": "old"})
			fixture.NoError(t, s.SetName("child", old))
			fixture.NoError(t, s.SetName("other", commit(t, s, map[string]string{"f": "other", "g": "x"})))
			if strings.Contains(place, "merge") {
				for i := range mergeCount - 3 {
					add(t, s, string(rune('a'+i))+" to merge")
				}
			}
			s.Settle()
			c := start(t, s, place)
			answer := ""
			if strings.Contains(place, "collect") {
				answer = c.say("collect")
			} else {
				answer = c.say("commit new")
			}
			if answer != "" {
				t.Fatalf("the child was not killed: %s", answer)
			}
			err := c.cmd.Wait()
			if c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child ended by itself: %v", err)
			}
			o := openStore(t, s.dir)
			h := fixture.Must[Hash](t)(o.Name("child"))
			if got := files(t, o, h); got["f"] != "new" && (h != old || got["f"] != "old") {
				t.Errorf("after the kill: %s, %v", h, got)
			}
			// The same again, by another process, at once.
			h = commit(t, o, map[string]string{"f": "new"})
			fixture.NoError(t, o.SetName("child", h))
			o.Settle()
			if got := collect(t, o); got.Kept != 5 {
				t.Errorf("collected: %+v", got)
			}
			if got := listed(t, s, bundlesDir); len(got) != 1 {
				t.Errorf("bundles are left: %q", got)
			}
			for _, dir := range []string{tempDir, leasesDir} {
				if left := listed(t, s, dir); len(left) != 0 {
					t.Errorf("%s: %v is left", dir, left)
				}
			}
			verifyAll(t, s)
		})
	}
}

// Without space nothing is lost and nothing is left; with space again all continues.
func TestAFullDisk(t *testing.T) {
	full := syscall.ENOSPC
	for _, at := range []string{"create", "write", "sync", "rename", "syncdir"} {
		for skip := range 2 {
			s := newStore(t)
			old := commit(t, s, map[string]string{"f": "old"})
			fixture.NoError(t, s.SetName("t", old))
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
				if _, err = b.AddFrom(&noise{left: 9 << 20, x: 3}, 9<<20); err != nil {
					return err
				}
				h, err := commitTo(b, map[string]string{"f": "new"})
				if err == nil {
					err = b.Close()
				}
				if err == nil {
					err = s.SetName("t", h)
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
			if got := files(t, openStore(t, s.dir), fixture.Must[Hash](t)(s.Name("t"))); got["f"] != "old" && at != "syncdir" {
				t.Errorf(`got %s %d: %v, want got["f"] = "old" or at = "syncdir"`, at, skip, got)
			}
			fixture.NoError(t, s.SetName("t", commit(t, s, map[string]string{"f": "new"})))
			s.Settle()
			collect(t, s)
			verifyAll(t, s)
		}
	}
}
