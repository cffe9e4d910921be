package cli

import (
	"context"
	"testing"
)

// What each signal does, in every order that a person or a system sends them.
func TestSignalsAndAnswers(t *testing.T) {
	t.Parallel()
	const c, term = ExitInterrupt, ExitTerminated
	for _, tt := range []struct {
		name    string
		asks    bool
		steps   []any // exit codes of signals, and answers
		want    []signalDeed
		stopped bool
		exit    int
	}{
		{"nothing to ask about", false, []any{c}, []signalDeed{stopAll}, true, c},
		{"twice", false, []any{c, c}, []signalDeed{stopAll, endNow}, true, c},
		{"asks", true, []any{c}, []signalDeed{askWhat}, false, 0},
		{"asks, and again", true, []any{c, c}, []signalDeed{askWhat, endNow}, false, 0},
		{"who ends a program is not asked", true, []any{term}, []signalDeed{stopAll}, true, term},
		{"the terminal closes at the question", true, []any{c, ExitHangup}, []signalDeed{askWhat, stopAll}, true, ExitHangup},
		{"both", true, []any{c, stopBoth}, []signalDeed{askWhat}, true, c},
		{"both, and again", true, []any{c, stopBoth, c}, []signalDeed{askWhat, endNow}, true, c},
		{"nothing, and again", true, []any{c, stopNothing, c}, []signalDeed{askWhat, askWhat}, false, 0},
		{"one", true, []any{c, stopOne}, []signalDeed{askWhat}, false, c},
		{"an answer that comes too late", true, []any{c, term, stopNothing}, []signalDeed{askWhat, stopAll}, true, term},
		{"an answer that nobody asked for", true, []any{stopBoth}, nil, false, 0},
	} {
		told := 0
		s := newStopper(context.Background(), func() { told++ })
		s.askFirst(func() bool { return tt.asks })
		var got []signalDeed
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
