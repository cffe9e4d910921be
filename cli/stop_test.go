package cli

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What each signal does, in every order that a person or a system sends them.
func TestSignalsAndAnswers(t *testing.T) {
	t.Parallel()
	const c, term = ExitInterrupt, ExitTerminated
	for _, tt := range []struct {
		name    string
		asks    bool
		steps   []any // exit codes of signals, and answers
		want    []signalAction
		stopped bool
		exit    int
	}{
		{"nothing to ask about", false, []any{c}, []signalAction{stopAll}, true, c},
		{"twice", false, []any{c, c}, []signalAction{stopAll, endNow}, true, c},
		{"asks", true, []any{c}, []signalAction{askWhat}, false, 0},
		{"asks, and again", true, []any{c, c}, []signalAction{askWhat, endNow}, false, 0},
		{"who ends a program is not asked", true, []any{term}, []signalAction{stopAll}, true, term},
		{"the terminal closes at the question", true, []any{c, ExitHangup}, []signalAction{askWhat, stopAll}, true, ExitHangup},
		{"both", true, []any{c, stopBoth}, []signalAction{askWhat}, true, c},
		{"both, and again", true, []any{c, stopBoth, c}, []signalAction{askWhat, endNow}, true, c},
		{"nothing, and again", true, []any{c, stopNothing, c}, []signalAction{askWhat, askWhat}, false, 0},
		{"one", true, []any{c, stopOne}, []signalAction{askWhat}, false, c},
		{"an answer that comes too late", true, []any{c, term, stopNothing}, []signalAction{askWhat, stopAll}, true, term},
		{"an answer that nobody asked for", true, []any{stopBoth}, nil, false, 0},
	} {
		told := 0
		s := newStopper(context.Background(), func() { told++ })
		s.askFirst(func() bool { return tt.asks })
		var got []signalAction
		for _, step := range tt.steps {
			switch step := step.(type) {
			case int:
				got = append(got, s.take(step))
			case stopChoice:
				s.answered(step)
			}
			if waits := s.asking().Err() != nil; waits != (s.open || s.ctx.Err() != nil) {
				t.Errorf("%s: after %v somebody asks: %v", tt.name, step, waits)
			}
		}
		if len(got) != len(tt.want) || (s.ctx.Err() != nil) != tt.stopped || s.exit() != tt.exit || (told > 0) != tt.stopped {
			t.Errorf("%s: %v, stopped %v, told %d times, exit %d", tt.name, got, s.ctx.Err() != nil, told, s.exit())
		}
		for i := range min(len(got), len(tt.want)) {
			if got[i] != tt.want[i] {
				t.Errorf("%s: signal %d did %v, want %v", tt.name, i, got[i], tt.want[i])
			}
		}
		s.stop()
	}
}

// One Ctrl-C that arrives twice, from the terminal and from a wrapper, is one; a second one,
// and another signal at any time, ends the process at once.
func TestWhichSignalIsTheSecond(t *testing.T) {
	t.Parallel()
	const c, term, hup = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP
	type came struct {
		after time.Duration
		sig   os.Signal
	}
	for _, tt := range []struct {
		name string
		came []came
		ends []int
	}{
		{"one", []came{{0, c}}, nil},
		{"twice at once", []came{{0, c}, {0, c}}, nil},
		{"three wrappers", []came{{0, c}, {100 * time.Millisecond, c}, {199 * time.Millisecond, c}}, nil},
		{"twice", []came{{0, c}, {bounce, c}}, []int{ExitInterrupt}},
		{"another signal at once", []came{{0, c}, {0, term}}, []int{ExitTerminated}},
		{"a terminal that closes", []came{{0, c}, {time.Millisecond, hup}}, []int{ExitHangup}},
		{"and a third", []came{{0, term}, {time.Hour, term}, {0, term}}, []int{ExitTerminated}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				told := 0
				s := newStopper(t.Context(), func() { told++ })
				ch, quit := make(chan os.Signal, 2), make(chan struct{})
				var ends []int
				go s.listen(ch, quit, func(code int) { ends = append(ends, code) })
				for _, one := range tt.came {
					time.Sleep(one.after)
					ch <- one.sig
				}
				synctest.Wait()
				close(quit)
				synctest.Wait()
				if !slices.Equal(ends, tt.ends) || told != 1 || s.ctx.Err() == nil || s.exit() != signalExit(tt.came[0].sig) {
					t.Errorf("it ended with %v, want %v; told %d times, stopped %v, exit %d", ends, tt.ends, told, s.ctx.Err() != nil, s.exit())
				}
			})
		})
	}
}

// What a signal does is said before it is done: what a run says about its end stands behind it.
// A terminal that takes nothing keeps it from nothing, and the second signal comes through.
func TestASignalIsToldBeforeItCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *stopper
		var early atomic.Bool
		stuck := make(chan struct{})
		s = newStopper(t.Context(), func() {
			synctest.Wait()
			early.Store(s.ctx.Err() != nil)
			<-stuck
		})
		ch, quit, ended := make(chan os.Signal, 2), make(chan struct{}), 0
		go s.listen(ch, quit, func(code int) { ended = code })
		begun := time.Now()
		ch <- syscall.SIGTERM
		<-s.ctx.Done()
		if took := time.Since(begun); early.Load() || took != patience {
			t.Errorf("it stopped after %v, before it was told: %v", took, early.Load())
		}
		ch <- syscall.SIGTERM
		synctest.Wait()
		if ended != ExitTerminated {
			t.Errorf("the second one ends with %d", ended)
		}
		close(stuck)
		close(quit)
	})
}
