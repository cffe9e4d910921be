package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
)

const (
	// turnAttempts is how often one turn is tried before the run gives up.
	turnAttempts = 4
	// longWait is the wait from which on a person wants to know of it: a used-up quota. The task then records the time
	// until which it waits, and the wait is no attempt of the turn.
	longWait = 2 * time.Minute
	// quotaWaits bounds the long waits of one turn: a provider that puts a run off more often is given up.
	quotaWaits = 24
)

// How long a wait lasts before the person is notified of files that change during it.
const (
	attendQuestion = 300 * time.Millisecond
	attendCommand  = 5 * time.Second
)

// backoff doubles from half a second, with full jitter, and honours what the provider asked for.
func backoff(attempt int, askedMS int64) time.Duration {
	if askedMS > 0 {
		return time.Duration(min(askedMS, 24*60*60*1000)) * time.Millisecond
	}
	top := 500 * time.Millisecond << min(attempt-1, 6)
	return top/2 + rand.N(top/2)
}

// waitForProvider waits until the provider may be asked again. A long wait is durable before it begins: after a kill
// the task shows until when it waits, and a resume before that asks at once. The wall clock decides, so that a machine
// that slept does not wait longer.
func (a *Agent) waitForProvider(ctx context.Context, refused *llm.Error, wait time.Duration, long bool) error {
	if !long {
		a.notice(fmt.Sprintf("%v; trying again in %s", refused, wait.Round(100*time.Millisecond)))
	} else {
		if err := a.saveJournal(ctx); err != nil {
			return err
		}
		failpoint.Hit("quota.waiting")
		defer a.stale.Attend(ctx, "the run waits", attendQuestion)()
	}
	end := time.Now().Round(0).Add(wait)
	said := wait
	if long {
		a.notice(fmt.Sprintf("%v; waiting until %s (%s); stop it and the task keeps its place, resume it to ask at once",
			refused, end.Format("Jan 2 15:04"), wait.Round(time.Second)))
	}
	for left := wait; left > 0; left = time.Until(end) {
		if long && said-left >= reminderStep(said) {
			said = left
			a.notice(fmt.Sprintf("still waiting for %s: %s left", refused.Provider, left.Round(time.Second)))
		}
		if wait >= time.Second {
			a.live(Delta{Type: "wait.delta", TS: end.UnixMilli(), Text: left.Round(time.Second).String()})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, countdownStep(left))):
		}
	}
	return nil
}

// countdownStep is how often the remaining time is shown.
func countdownStep(left time.Duration) time.Duration {
	switch {
	case left > time.Hour:
		return time.Minute
	case left > 2*time.Minute:
		return 15 * time.Second
	}
	return time.Second
}

// reminderStep is how often a long wait is worth a notice: rarely while much is left.
func reminderStep(left time.Duration) time.Duration {
	switch {
	case left > time.Hour:
		return 15 * time.Minute
	case left > 10*time.Minute:
		return 5 * time.Minute
	}
	return time.Minute
}
