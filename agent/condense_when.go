package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/task"
)

// condenseRest is how many messages come before another summary is tried, after one
// that failed, and where one more would only be convenient: each costs a request.
const condenseRest = 20

// condenseAt condenses the history when it is time to: so much of the window is used
// as the task's settings say, or the next request would not fit. It reports whether the
// request became shorter. A summary that does not come is shown to the person and is
// no error of the turn: where it has to, truncation follows.
func (a *Agent) condenseAt(ctx context.Context, tokens, allowed int64) (bool, error) {
	at := int64(a.Task.Settings.Condense)
	due := tokens > allowed || tokens*100 >= at*int64(a.Model.Entry.Context)
	if at <= 0 || !due || tokens <= allowed && a.sinceSummary() < condenseRest {
		return false, nil
	}
	return a.tryCondense(ctx, asking{auto: true, told: tokens > int64(a.Model.Entry.Context)})
}

// tryCondense condenses unless that was tried in vain a short while ago.
func (a *Agent) tryCondense(ctx context.Context, how asking) (bool, error) {
	count := len(a.state().API())
	if a.condensedSince() || a.Task.Settings.Condense <= 0 || a.sending.uncondensed > 0 && count < a.sending.uncondensed+condenseRest {
		return false, nil
	}
	c, err := a.condense(ctx, how)
	switch {
	case err == nil:
		a.sending.uncondensed = 0
		a.notice(fmt.Sprintf("condensed: a summary stands for %d messages, about %d tokens are %d now; roost undo takes it back", c.Messages, c.Before, c.After))
		return c.After < c.Before, nil
	case ctx.Err() != nil:
		return false, err
	}
	a.sending.uncondensed = max(count, 1)
	if errors.Is(err, ErrTooShort) {
		return false, nil
	}
	a.notice(fmt.Sprintf("the history could not be condensed: %v", err))
	d := a.draft()
	d.row(sayRow(a.stamp(), "condense_context_error", err.Error(), nil))
	return false, d.commit(ctx)
}

// sinceSummary is how many messages came since the newest summary of ours: where a
// small part of the window is allowed, a summary and what stays may fill it, and each
// turn would else make another one.
func (a *Agent) sinceSummary() int {
	covers, n := a.state().Covers, 0
	last := uint64(0)
	for _, c := range covers {
		if c.Kind == task.Condense && !c.Off {
			last = c.Row
		}
	}
	for _, m := range a.state().API() {
		if m.ID > last {
			n++
		}
	}
	return n
}

// condensedSince reports whether a summary was made since the last reply: another one
// right behind it would not help.
func (a *Agent) condensedSince() bool {
	last := uint64(0)
	for _, m := range a.state().API() {
		if m.Kind() == "assistant" {
			last = m.ID
		}
	}
	return slices.ContainsFunc(a.state().Covers, func(c task.Cover) bool { return c.Kind == task.Condense && !c.Off && c.Message > last })
}
