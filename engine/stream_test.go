package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func durable(seq uint64) []Event {
	return []Event{{ID: fmt.Sprintf("1.%d-0", seq), Type: "x", Seq: seq}}
}

func delta(n int) Event { return Event{Type: "message.delta", Data: fmt.Append(nil, n)} }

func name(e Event) string {
	if e.ID != "" {
		return e.ID
	}
	return e.Type + " " + string(e.Data)
}

func heard(ctx context.Context, s *stream) (out []string) {
	for e := range s.follow(ctx) {
		out = append(out, name(e))
	}
	return out
}

// Whoever comes, early, late or after the end, gets every durable event from the
// first, in order and once.
func TestEveryListenerGetsAllThatIsDurable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStream("")
		total := rapid.IntRange(0, 30).Draw(t, "events")
		joins := rapid.SliceOfN(rapid.IntRange(0, total), 1, 5).Draw(t, "joins")
		var want []string
		results := make([][]string, len(joins))
		var wait sync.WaitGroup
		for i := 0; i <= total; i++ {
			for j, at := range joins {
				if at == i {
					wait.Go(func() {
						for e := range s.follow(context.Background()) {
							if e.ID != "" {
								results[j] = append(results[j], e.ID)
							}
						}
					})
				}
			}
			if i < total {
				s.live(delta(i))
				s.add(uint64(i+1), durable(uint64(i+1)))
				want = append(want, fmt.Sprintf("1.%d-0", i+1))
			}
		}
		s.end()
		wait.Wait()
		for j, got := range results {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("listener from %d (-want +got):\n%s", joins[j], diff)
			}
		}
	})
}

func TestLiveEventsComeBeforeTheCommitTheyLedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream("")
		got := make(chan []string)
		go func() { got <- heard(t.Context(), s) }()
		synctest.Wait()
		s.live(delta(1))
		s.live(delta(2))
		s.add(1, durable(1))
		synctest.Wait()
		s.live(delta(3))
		s.end()
		want := []string{"message.delta 1", "message.delta 2", "1.1-0", "message.delta 3"}
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A listener that does not come back for its events holds nobody up, and what is
// kept for it is bounded; it misses live events only.
func TestStuckListenerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream("")
		release, got := make(chan struct{}), make(chan []string)
		go func() {
			var out []string
			for e := range s.follow(t.Context()) {
				if out = append(out, name(e)); len(out) == 1 {
					<-release
				}
			}
			got <- out
		}()
		synctest.Wait()
		s.live(delta(0))
		synctest.Wait() // it is stuck now
		for i := range 3 * liveBacklog {
			s.live(delta(i))
		}
		for ear := range s.ears {
			if len(ear.heard) != liveBacklog {
				t.Errorf("%d live events are kept", len(ear.heard))
			}
		}
		for i := range 100 {
			s.add(uint64(i+1), durable(uint64(i+1)))
		}
		quick := make(chan int)
		go func() {
			n := 0
			for e := range s.follow(t.Context()) {
				if n++; e.Seq == 100 {
					break
				}
			}
			quick <- n
		}()
		if n := <-quick; n != 100 {
			t.Errorf("the other listener has %d", n)
		}
		close(release)
		s.end()
		out := <-got
		if n := len(out); n != 1+liveBacklog+100 || out[n-1] != "1.100-0" {
			t.Errorf("it has %d events, the last is %s", n, out[n-1])
		}
	})
}

// A listener's end touches nobody else, and leaves nothing behind.
func TestListenersComeAndGo(t *testing.T) {
	s := newStream("")
	s.add(1, durable(1))
	for range 10 {
		for range s.follow(t.Context()) {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := heard(ctx, s); len(got) != 0 {
		t.Errorf("after its end: %v", got)
	}
	if len(s.ears) != 0 {
		t.Errorf("%d ears stay", len(s.ears))
	}
}

// A notice that nobody hears yet waits for the first who comes; a delta does not,
// because its text comes again.
func TestNoticesWaitForAListener(t *testing.T) {
	s := newStream("")
	s.live(Event{Type: "notice", Data: []byte("early")})
	s.live(delta(1))
	s.add(1, durable(1))
	s.end()
	if diff := cmp.Diff([]string{"notice early", "1.1-0"}, heard(t.Context(), s)); diff != "" {
		t.Fatal(diff)
	}
}

// Who only waits for a commit hears nothing: a notice waits for the first who does.
func TestANoticeWhileSomebodyWaitsForACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, over := newStream(""), make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.waitFor(1, time.Hour, over)
		}()
		synctest.Wait()
		s.live(Event{Type: "notice", Data: []byte("meanwhile")})
		close(over)
		<-done
		s.end()
		if diff := cmp.Diff([]string{"notice meanwhile"}, heard(t.Context(), s)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The end of a run waits until its last commit is shown, but not for ever, and
// not for a pump that has ended.
func TestWaitingForTheLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, over := newStream(""), make(chan struct{})
		begun := time.Now()
		s.waitFor(1, 5*time.Second, over)
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("without the commit it waited %s", took)
		}
		time.AfterFunc(time.Second, func() { s.add(1, durable(1)) })
		begun = time.Now()
		s.waitFor(1, 5*time.Second, over)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it waited %s for a commit that came after 1s", took)
		}
		time.AfterFunc(time.Second, func() { close(over) })
		begun = time.Now()
		s.waitFor(2, 5*time.Second, over)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it waited %s for a pump that ended after 1s", took)
		}
		if len(s.ears) != 0 {
			t.Errorf("%d ears stay", len(s.ears))
		}
	})
}

// asks is a run with nothing but places for answers.
func asks(interactive bool) *Run {
	return &Run{TaskID: "t1", interactive: interactive, answers: map[string]*hearing{}, active: make(chan struct{}, 1)}
}

func TestAnAnswerIsTakenOnce(t *testing.T) {
	r := asks(true)
	if err := r.Answer("q1", Answer{Text: "too early"}); err == nil || !strings.Contains(err.Error(), "q1 of task t1") {
		t.Errorf("nobody asked: %v", err)
	}
	place := r.await("q1")
	if r.await("q1") != place {
		t.Error("a second place for the same question")
	}
	if err := r.Answer("q1", Answer{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Answer("q1", Answer{Text: "second"}); err == nil {
		t.Error("two answers were taken")
	}
	if got := <-place; got.Text != "first" {
		t.Errorf("%+v", got)
	}
	if asks(false).await("q1") != nil {
		t.Error("a place where nobody can answer")
	}
}

// Nobody is told of a question before it is on disk, and who has words meanwhile waits: they
// are its answer, not words for later.
func TestAQuestionIsToldOnceItIsOnDisk(t *testing.T) {
	up, r := asks(true), asks(true)
	up.TaskID, up.child = "up", r
	r.await("q")
	if got := up.askedWhat(); got != "" || r.askedBy() != "" {
		t.Errorf("%q is told before it is on disk", got)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := up.hears(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who has words did not wait: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- up.hears(t.Context()) }()
	r.opened("q")
	r.opened("q") // as often as it is asked
	r.opened("another")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := up.askedWhat(); got != "t1.q" || r.askedBy() != "q" || up.askedBy() != "" {
		t.Errorf("told: %q", got)
	}
	gone := asks(true)
	gone.settled = make(chan struct{})
	gone.await("q")
	close(gone.settled)
	if err := gone.hears(t.Context()); err != nil {
		t.Errorf("the run is over, and nothing comes: %v", err)
	}
}

// Of many that answer at once one is taken, and the others are told.
func TestAnswersRace(t *testing.T) {
	r := asks(true)
	place := r.await("q")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var taken []string
	for i := range 20 {
		wait.Go(func() {
			text := fmt.Sprint(i)
			if r.Answer("q", Answer{Text: text}) == nil {
				mu.Lock()
				taken = append(taken, text)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if got := <-place; !slices.Equal(taken, []string{got.Text}) {
		t.Fatalf("taken were %v, the agent got %q", taken, got.Text)
	}
}

// The idle limit counts from the last thing that happened, and not while a person
// is asked.
func TestIdleLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := asks(true)
		r.ctx, r.cancel = context.WithCancelCause(t.Context())
		begun := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.watchIdle(t.Context(), 10*time.Second)
		}()
		for range 3 { // something happens every 9 s
			time.Sleep(9 * time.Second)
			r.touch()
		}
		r.await("q")
		time.Sleep(time.Hour + 5*time.Second) // between two looks at the clock
		if r.ctx.Err() != nil {
			t.Fatalf("ended while a person was asked: %v", context.Cause(r.ctx))
		}
		r.mu.Lock()
		clear(r.answers)
		r.mu.Unlock()
		r.touch()
		<-done
		if took := time.Since(begun) - 32*time.Second - time.Hour; took != 10*time.Second {
			t.Errorf("ended %s after the last thing", took)
		}
		if cause := context.Cause(r.ctx); !strings.Contains(cause.Error(), "nothing happened for 10s") {
			t.Errorf("cause %v", cause)
		}
	})
}
