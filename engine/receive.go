package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// UntrustedError: the log of a task is not this root's own, and it holds something that would be
// obeyed: settings of its own, words, answers, an unfinished run. Its user must confirm first.
type UntrustedError struct {
	Task     string
	Standing store.Standing
	Brings   []string // what it holds, in words
}

func (e *UntrustedError) Error() string {
	why := map[store.Standing]string{
		store.Unsigned:  "an older Roost wrote its log, which is not signed",
		store.Elsewhere: "its log was written in another place: the root was copied, restored or moved, or it is somebody else's",
		store.Altered:   "its log was changed outside of Roost, or its end is missing",
	}[e.Standing]
	text := fmt.Sprintf("task %s is not trusted here: %s", e.Task, why)
	if len(e.Brings) > 0 {
		text += "; it holds " + strings.Join(e.Brings, "; ")
	}
	return text
}

// Receive makes a task this root's own before it goes on at its user's word: of a log that is not
// proven, it ends all that is open, and takes away the settings that a stranger may not decide.
// A log that somebody signed elsewhere, or that was changed, and that holds something that would be
// obeyed, is an *UntrustedError unless the request confirms. It reports whether it did so.
func (e *Engine) Receive(ctx context.Context, r Request) (bool, error) {
	if r.Task == "" {
		return false, nil
	}
	ref, err := e.store.FindLatest(ctx, r.Task)
	if err != nil {
		return false, err
	}
	var held *UntrustedError
	var trusted *task.Reception
	asked := false
	err = e.store.WithView(ctx, ref, func(v *store.View) error {
		held, err = e.held(ctx, ref, v.State)
		// A damaged log does not match its signatures either. There the run asks about the
		// damage, before anything else.
		asked = len(v.State.Problems) > 0
		if v.State.Received != nil && !v.State.Received.Kept {
			trusted = v.State.Received
		}
		return err
	})
	switch {
	case err != nil:
		return false, err
	case held == nil && trusted != nil && r.TrustSettings:
		return false, e.own(ctx, ref, func(t *store.Task) error {
			s := t.State().Settings.Trusting(trusted.Had)
			return t.Commit(ctx, task.Changed{Settings: &s})
		})
	case held == nil:
		return false, nil
	case r.automatic, held.Standing != store.Unsigned && len(held.Brings) > 0 && !asked && !r.OwnSettings && !r.TrustSettings:
		return false, held
	}
	return true, e.own(ctx, ref, func(t *store.Task) error {
		if t.Standing() == store.Ours {
			return nil // somebody was faster
		}
		return t.Receive(ctx, string(held.Standing), r.TrustSettings)
	})
}

// held tells why a task is not to be obeyed; nil when its log is this root's own.
func (e *Engine) held(ctx context.Context, ref store.Ref, s *task.State) (*UntrustedError, error) {
	stands, err := e.store.Standing(ctx, ref, s.Begins)
	if err != nil || stands == store.Ours {
		return nil, err
	}
	return &UntrustedError{Task: ref.ID, Standing: stands, Brings: s.Brings()}, nil
}

// trusts reports whether a task may go on by itself.
func (e *Engine) trusts(ctx context.Context, ref store.Ref) (bool, error) {
	var held *UntrustedError
	err := e.store.WithView(ctx, ref, func(v *store.View) (err error) {
		held, err = e.held(ctx, ref, v.State)
		return err
	})
	return held == nil, err
}

// obeyed is the last look, with the task owned and before anything of it is acted on: between the
// first one and this another process may have had it.
func obeyed(ctx context.Context, t *store.Task) error {
	if stands := t.Standing(); stands != store.Ours {
		held := &UntrustedError{Task: t.Ref.ID, Standing: stands, Brings: t.State().Brings()}
		return errors.Join(held, t.Close(context.WithoutCancel(ctx)))
	}
	return nil
}
