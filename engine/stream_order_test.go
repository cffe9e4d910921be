package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// What a model says behind a commit comes behind that commit, also when the disk is
// slower than the model: a reply's words never stand in front of the outcome that the
// reply is an answer to. That holds for a subtask as its parent tells it.
func TestLiveEventsComeBehindTheCommitThatTheyFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, s := newStream(""), newStream("")
		s.join(up)
		got, above := make(chan []string), make(chan []string)
		go func() { got <- heard(t.Context(), s) }()
		go func() { above <- heard(t.Context(), up) }()
		synctest.Wait()
		s.add(1, durable(1))
		s.say(delta(1), 2) // commit 2 is on its way to the disk
		s.say(delta(2), 3)
		synctest.Wait()
		s.add(2, durable(2))
		s.say(delta(3), 3) // in its order, although it could come at once later
		s.add(3, durable(3))
		s.say(delta(4), 3)
		s.say(delta(5), 9) // that commit never comes: the end lets it out
		s.end()
		up.end()
		want := []string{"1.1-0", "1.2-0", "message.delta 1", "1.3-0", "message.delta 2", "message.delta 3", "message.delta 4", "message.delta 5"}
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, <-above); diff != "" {
			t.Errorf("above: %s", diff)
		}
	})
}

// While nothing can be saved, what is said meanwhile is bounded, and a warning is told
// at once.
func TestAStuckDiskHoldsDeltasOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream("")
		ctx, done := context.WithCancel(t.Context())
		got := make(chan []string)
		go func() { got <- heard(ctx, s) }()
		synctest.Wait()
		for i := range 3 * liveBacklog {
			s.say(delta(i), 1)
		}
		s.live(Event{Type: "notice", Data: fmt.Append(nil, "disk full")})
		synctest.Wait()
		done()
		if diff := cmp.Diff([]string{"notice disk full"}, <-got); diff != "" {
			t.Error(diff)
		}
		if len(s.held) != liveBacklog {
			t.Errorf("%d are held", len(s.held))
		}
	})
}
