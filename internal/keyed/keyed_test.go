package keyed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func take(t *testing.T, m *Mutex[string], key string) func() {
	t.Helper()
	unlock, err := m.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

func TestOneHoldsAKey(t *testing.T) {
	var m Mutex[int]
	var wait sync.WaitGroup
	counts := [3]int{}
	for n := range 30 {
		wait.Go(func() {
			for range 100 {
				unlock, err := m.Lock(t.Context(), n%3)
				if err != nil {
					t.Error(err)
					return
				}
				counts[n%3]++ // the race detector reports two at once
				unlock()
			}
		})
	}
	wait.Wait()
	if counts != [3]int{1000, 1000, 1000} {
		t.Errorf("got %v", counts)
	}
	if len(m.locks) != 0 {
		t.Errorf("got %d keys in memory, want none", len(m.locks))
	}
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var m Mutex[string]
	defer take(t, &m, "a")()
	defer take(t, &m, "b")()
	if unlock, ok := tryLock(&m, "a"); ok {
		unlock()
		t.Error("a held key was locked")
	}
	unlock, ok := tryLock(&m, "c")
	if !ok {
		t.Fatal("a free key was not locked")
	}
	unlock()
}

func TestUnlockTwice(t *testing.T) {
	var m Mutex[string]
	first := take(t, &m, "a")
	first()
	second := take(t, &m, "a")
	first()
	if unlock, ok := tryLock(&m, "a"); ok {
		unlock()
		t.Error("the second call of an unlock released the next holder's key")
	}
	second()
}

func TestAContextEndsAWait(t *testing.T) {
	var m Mutex[string]
	unlock := take(t, &m, "a")
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := m.Lock(ctx, "a")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("got %v from a wait for a held key", err)
	case <-time.After(10 * time.Millisecond):
	}
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	unlock()
	if len(m.locks) != 0 {
		t.Errorf("got %d keys in memory, want none", len(m.locks))
	}
	if unlock, err := m.Lock(ctx, "a"); err != nil { // a free key needs no wait
		t.Error(err)
	} else {
		unlock()
	}
}

// tryLock locks the key if it is free: a context that has ended waits for none.
func tryLock(m *Mutex[string], key string) (unlock func(), ok bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, err := m.Lock(ctx, key)
	return unlock, err == nil
}
