package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// UntrustedError: this root did not write the journal of a task, and the journal holds something that a run would obey:
// settings, messages, answers, an unfinished run. The user must confirm first.
type UntrustedError struct {
	Task     string
	Standing store.Standing
	Brings   []string // what a run would obey, in words
}

func (e *UntrustedError) Error() string {
	why := map[store.Standing]string{
		store.Unsigned:  "an older Roost wrote its log, which is not signed",
		store.Elsewhere: "its log was written in another place: the root was copied, restored or moved, or belongs to another user",
		store.Altered:   "its log was changed outside of Roost, or its end is missing",
	}[e.Standing]
	text := fmt.Sprintf("task %s is not trusted here: %s", e.Task, why)
	if len(e.Brings) > 0 {
		text += "; it holds " + strings.Join(e.Brings, "; ")
	}
	return text
}

// Receive makes a task this root's own before it continues because its user asks for that. Of a journal that is not
// trusted, it ends everything that is open and removes the settings that an unknown author must not decide. A journal that
// another root signed, or that was changed, and that holds something that a run would obey, is an *UntrustedError unless
// the request confirms it. The result reports whether the task was received.
func (e *Engine) Receive(ctx context.Context, r Request) (bool, error) {
	if r.Task == "" {
		return false, nil
	}
	ref, err := e.store.FindLatest(ctx, r.Task)
	if err != nil {
		return false, err
	}
	var untrusted *UntrustedError
	var trusted *task.Reception
	asked := false
	err = e.store.WithView(ctx, ref, func(v *store.View) error {
		untrusted, err = e.checkTrust(ctx, ref, v.State)
		// A damaged journal does not match its signatures either. The run asks the user about the damage before it does
		// anything else.
		asked = len(v.State.Problems) > 0
		if v.State.Received != nil && !v.State.Received.Kept {
			trusted = v.State.Received
		}
		return err
	})
	switch {
	case err != nil:
		return false, err
	case untrusted == nil && trusted != nil && r.TrustSettings:
		return false, e.changeIdle(ctx, ref, func(t *store.Task) error {
			s := t.State().Settings.Trusting(trusted.Had)
			return t.Commit(ctx, task.Changed{Settings: &s})
		})
	case untrusted == nil:
		return false, nil
	case r.automatic, untrusted.Standing != store.Unsigned && len(untrusted.Brings) > 0 && !asked && !r.OwnSettings && !r.TrustSettings:
		return false, untrusted
	}
	return true, e.changeIdle(ctx, ref, func(t *store.Task) error {
		if t.Standing() == store.Ours {
			return nil // another process received it first
		}
		return t.Receive(ctx, string(untrusted.Standing), r.TrustSettings)
	})
}

// checkTrust is why a task must not be obeyed; nil when this root wrote its journal.
func (e *Engine) checkTrust(ctx context.Context, ref store.Ref, s *task.State) (*UntrustedError, error) {
	origin, err := e.store.Standing(ctx, ref, s.Begins)
	if err != nil || origin == store.Ours {
		return nil, err
	}
	return &UntrustedError{Task: ref.ID, Standing: origin, Brings: s.Brings()}, nil
}

// isTrusted reports whether a task may continue without its user.
func (e *Engine) isTrusted(ctx context.Context, ref store.Ref) (bool, error) {
	var untrusted *UntrustedError
	err := e.store.WithView(ctx, ref, func(v *store.View) (err error) {
		untrusted, err = e.checkTrust(ctx, ref, v.State)
		return err
	})
	return untrusted == nil, err
}

// requireTrust checks an owned task once more, before anything in it is obeyed: another process may have written to it
// since the first check.
func requireTrust(ctx context.Context, t *store.Task) error {
	if origin := t.Standing(); origin != store.Ours {
		untrusted := &UntrustedError{Task: t.Ref.ID, Standing: origin, Brings: t.State().Brings()}
		return errors.Join(untrusted, t.Close(context.WithoutCancel(ctx)))
	}
	return nil
}
