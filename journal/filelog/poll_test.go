package filelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/journal"
)

func never() bool { return false }

func ownHere(t *testing.T, dir string) *owner {
	t.Helper()
	o, err := Own(t.Context(), dir, Options{By: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o.(*owner)
}

func say(t *testing.T, o journal.Owner, n int) {
	t.Helper()
	for i := range n {
		if _, err := o.Append(t.Context(), journal.Draft{At: time.Now().UnixNano(), Events: []journal.Event{fmt.Appendf(nil, `{"n":%d}`, i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stranger is a reader that does not know of an owner in its own process, as one
// in another process does not.
func stranger(t *testing.T, dir string) *reader {
	t.Helper()
	r, err := openReader(OS, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	r.key += "#elsewhere"
	return r
}

// Without any notification followers look by themselves, and miss nothing.
func TestFollowWithoutNotifications(t *testing.T) {
	dir := t.TempDir()
	o := ownHere(t, dir)
	r := stranger(t, dir)
	const total = 30
	got := make(chan journal.Commit)
	ended := make(chan error, 1)
	go func() {
		ended <- r.follow(t.Context(), 1, nil, never, func(c journal.Commit, err error) bool {
			if err != nil {
				t.Error(err)
			}
			got <- c
			return c.Seq < total+1
		})
	}()
	if c := <-got; c.Seq != 1 {
		t.Fatalf("first %d", c.Seq)
	}
	for i := range total {
		say(t, o, 1)
		select {
		case c := <-got:
			if c.Seq != uint64(i+2) {
				t.Fatalf("got %d, want %d", c.Seq, i+2)
			}
		case <-time.After(time.Minute):
			t.Fatalf("commit %d never came", i+2)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// The pauses between looks start at 5 ms, grow to 40 ms, and start anew when
// something came.
func TestPollingSlowsDown(t *testing.T) {
	dir := t.TempDir()
	appendTo(t, dir, logLine(1, 1))
	synctest.Test(t, func(t *testing.T) {
		r := stranger(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var looks []time.Duration
		last := time.Now()
		told := func() bool { // asked before each pause
			looks = append(looks, time.Since(last).Round(time.Millisecond))
			last = time.Now()
			switch len(looks) {
			case 8:
				appendTo(t, dir, logLine(2, 1))
			case 12:
				cancel()
			}
			return false
		}
		err := r.follow(ctx, 1, nil, told, func(journal.Commit, error) bool { return true })
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		want := "[0s 5ms 10ms 20ms 40ms 40ms 40ms 40ms 40ms 5ms 10ms 20ms]"
		if got := fmt.Sprint(looks); got != want {
			t.Fatalf("pauses %s, want %s", got, want)
		}
	})
}

func appendTo(t *testing.T, dir string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// Followers are woken by an owner in this process, and by its end.
func TestHubWakesFollowers(t *testing.T) {
	h := hub{owners: map[string]int{}}
	wake, cancel := h.Subscribe("/x")
	woken := func(by string) {
		t.Helper()
		select {
		case <-wake:
		default:
			t.Errorf("%s did not wake the follower", by)
		}
	}
	h.own("/x", +1)
	woken("the owner's beginning")
	if !h.owned("/x") || h.owned("/y") {
		t.Errorf("got owners of /x and /y: %v, %v; want one of /x alone", h.owned("/x"), h.owned("/y"))
	}
	for range 2 { // the follower reads nothing between the two
		h.Wake("/x")
	}
	woken("two commits")
	h.own("/x", -1)
	woken("the owner's end")
	if h.owned("/x") {
		t.Error("got an owner after its end, want none")
	}
	cancel()
	if len(h.owners) != 0 || len(h.Logs()) != 0 {
		t.Errorf("got %v and %v, want nothing left behind", h.owners, h.Logs())
	}
}
