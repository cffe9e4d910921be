package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
)

// Who waits for a subtask is not idle while that one is not.
func TestASubtaskKeepsItsParentAwake(t *testing.T) {
	top, middle, below := asks(true), asks(true), asks(true)
	middle.parent.Store(top)
	below.parent.Store(middle)
	below.touch()
	for name, run := range map[string]*Run{"its parent": middle, "that one's": top} {
		select {
		case <-run.active:
		default:
			t.Errorf("%s heard nothing", name)
		}
	}
}

// A drain whose time is over interrupts who is at the top, who stops what is below.
func TestADrainInAHurryInterruptsFromTheTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, top := idleEngine(Options{})
		_, below := idleEngine(Options{})
		below.ID = "below"
		below.parent.Store(top)
		below.life.cancel = func(err error) { t.Errorf("who is below was stopped: %v", err) }
		top.life.cancel = func(err error) {
			if !errors.Is(err, agent.ErrDrained) {
				t.Error(err)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			clear(e.runs)
		}
		e.runs = map[string]*Run{top.ID: top, below.ID: below}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Drain(over); err != nil {
			t.Error(err)
		}
	})
}

// A no to a model that went wrong ends a run that waits. Where none does there is nothing to
// end, and it is no answer.
func TestANoToAMistakeThatNobodyWaitsWith(t *testing.T) {
	s, ref := startedTask(t)
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	no := false
	q := Asked{ID: ref.ID + ".q", Ref: ref, QuestionOpened: api.QuestionOpened{Question: "q", Kind: agent.KindMistake}}
	if _, err := e.replyToReleased(t.Context(), q, Answer{Approve: &no}, Reply{}); !errors.Is(err, ErrAnswer) {
		t.Error(err)
	}
}
