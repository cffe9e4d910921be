package object

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// On a very slow disk many processes that change refs stand in a row: each waits its
// turn, long, and who gives up says for what and what to do.
func TestARefWaitsForItsTurn(t *testing.T) {
	for _, c := range []struct {
		name, lock string
		do         func(*Store, ID) error
		what       string
	}{
		{"set", lockRefs, func(s *Store, id ID) error { return s.SetRef("refs/roost/t", id) }, "another process changes a ref"},
		{"delete", lockRefs, func(s *Store, _ ID) error { return s.DeleteRef("refs/roost/t") }, "another process changes a ref"},
		{"rely on a pack", lockRemove, func(s *Store, _ ID) error {
			defer s.Keep()()
			return s.rely(packNameOf(s))
		}, "another process holds or removes packs"},
	} {
		for held, fails := range map[time.Duration]bool{50 * time.Second: false, 70 * time.Second: true} {
			synctest.Test(t, func(t *testing.T) {
				s := made(t)
				id := commit(t, s, map[string]string{"f": "x"})
				s.Settle()
				free := must[func()](t)(s.lock(context.Background(), c.lock, true))
				done := make(chan error)
				go func() { done <- c.do(s, id) }()
				time.Sleep(held)
				free()
				err := <-done
				if (err != nil) != fails {
					t.Fatalf("%s: held for %s: %v", c.name, held, err)
				}
				if fails && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.what) || !strings.Contains(err.Error(), s.path("roost", c.lock))) {
					t.Errorf("%s: %v", c.name, err)
				}
			})
		}
	}
}

func packNameOf(s *Store) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name := range s.known.packs {
		return name
	}
	return ""
}
