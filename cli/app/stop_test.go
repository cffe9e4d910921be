package app

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/cli/failure"
)

// What each signal does, in every order that a person or a system sends them.
func TestSignalsAndAnswers(t *testing.T) {
	t.Parallel()
	const c, term = failure.ExitInterrupt, failure.ExitTerminated
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
		{"the terminal closes at the question", true, []any{c, failure.ExitHangup}, []signalAction{askWhat, stopAll}, true, failure.ExitHangup},
		{"both", true, []any{c, StopBoth}, []signalAction{askWhat}, true, c},
		{"both, and again", true, []any{c, StopBoth, c}, []signalAction{askWhat, endNow}, true, c},
		{"nothing, and again", true, []any{c, StopNothing, c}, []signalAction{askWhat, askWhat}, false, 0},
		{"one", true, []any{c, StopOne}, []signalAction{askWhat}, false, c},
		{"an answer that comes too late", true, []any{c, term, StopNothing}, []signalAction{askWhat, stopAll}, true, term},
		{"an answer that nobody asked for", true, []any{StopBoth}, nil, false, 0},
	} {
		told := 0
		s := NewStopper(context.Background(), func() { told++ })
		s.AskFirst(func() bool { return tt.asks })
		var got []signalAction
		for _, step := range tt.steps {
			switch step := step.(type) {
			case int:
				got = append(got, s.take(step))
			case StopChoice:
				s.Answered(step)
			}
			if waits := s.Asking().Err() != nil; waits != (s.open || s.Ctx.Err() != nil) {
				t.Errorf("%s: after %v somebody asks: %v", tt.name, step, waits)
			}
		}
		if len(got) != len(tt.want) || (s.Ctx.Err() != nil) != tt.stopped || s.Exit() != tt.exit || (told > 0) != tt.stopped {
			t.Errorf("%s: %v, stopped %v, told %d times, exit %d", tt.name, got, s.Ctx.Err() != nil, told, s.Exit())
		}
		for i := range min(len(got), len(tt.want)) {
			if got[i] != tt.want[i] {
				t.Errorf("%s: signal %d did %v, want %v", tt.name, i, got[i], tt.want[i])
			}
		}
		s.Stop()
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
		{"twice", []came{{0, c}, {Bounce, c}}, []int{failure.ExitInterrupt}},
		{"another signal at once", []came{{0, c}, {0, term}}, []int{failure.ExitTerminated}},
		{"a terminal that closes", []came{{0, c}, {time.Millisecond, hup}}, []int{failure.ExitHangup}},
		{"and a third", []came{{0, term}, {time.Hour, term}, {0, term}}, []int{failure.ExitTerminated}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				told := 0
				s := NewStopper(t.Context(), func() { told++ })
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
				if !slices.Equal(ends, tt.ends) || told != 1 || s.Ctx.Err() == nil || s.Exit() != SignalExit(tt.came[0].sig) {
					t.Errorf("it ended with %v, want %v; told %d times, stopped %v, exit %d", ends, tt.ends, told, s.Ctx.Err() != nil, s.Exit())
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
		var s *Stopper
		var early atomic.Bool
		stuck := make(chan struct{})
		s = NewStopper(t.Context(), func() {
			synctest.Wait()
			early.Store(s.Ctx.Err() != nil)
			<-stuck
		})
		ch, quit, ended := make(chan os.Signal, 2), make(chan struct{}), 0
		go s.listen(ch, quit, func(code int) { ended = code })
		begun := time.Now()
		ch <- syscall.SIGTERM
		<-s.Ctx.Done()
		if took := time.Since(begun); early.Load() || took != patience {
			t.Errorf("it stopped after %v, before it was told: %v", took, early.Load())
		}
		ch <- syscall.SIGTERM
		synctest.Wait()
		if ended != failure.ExitTerminated {
			t.Errorf("the second one ends with %d", ended)
		}
		close(stuck)
		close(quit)
	})
}

// Ctrl-C in an editor is the editor's; what ends programs ends the chat all the same.
func TestCtrlCInAnEditorStopsNothing(t *testing.T) {
	t.Parallel()
	s := NewStopper(t.Context(), func() {})
	back, backAgain := s.ReleaseInterrupt(), s.ReleaseInterrupt() // another editor is opened before the first one is forgotten
	for range 2 {
		if got := s.take(failure.ExitInterrupt); got != doNothing || s.Ctx.Err() != nil {
			t.Errorf("Ctrl-C does %v, %v", got, s.Ctx.Err())
		}
		back()
		back = func() {}
	}
	backAgain()
	if got := s.take(failure.ExitInterrupt); got != stopAll || s.Ctx.Err() == nil {
		t.Errorf("behind the editor Ctrl-C does %v", got)
	}
	s = NewStopper(t.Context(), func() {})
	s.ReleaseInterrupt()
	if got := s.take(failure.ExitTerminated); got != stopAll || s.Ctx.Err() == nil {
		t.Errorf("SIGTERM does %v", got)
	}
}
