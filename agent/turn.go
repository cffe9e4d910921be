package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// turnAttempts is how often one turn is tried before the run gives up.
const turnAttempts = 4

// turn asks the model once, trying again where that can help, and commits the
// reply.
func (a *Agent) runTurn(ctx context.Context) error {
	var m repair
	defer func() { a.sending.trial = nil }()
	for attempt, waits := 1, 0; ; attempt++ {
		if err := a.fitWindow(ctx); err != nil {
			return err
		}
		retries, err := a.requestReply(ctx)
		// A provider that tried again by itself has used up tries of ours: two layers
		// that each try four times ask a provider in trouble sixteen times.
		attempt += retries
		if err == nil {
			return nil
		}
		var refused *llm.Error
		if !errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		failed := task.TurnFailed{
			Run: a.Task.RunID, Turn: a.state().Turns, Kind: string(refused.Kind),
			Status: refused.Status, Error: refused.Message,
		}
		if !refused.Retryable() {
			d, did, mended := a.repairRequest(ctx, &m, refused)
			if !mended {
				return a.giveUp(ctx, &m, failed, err)
			}
			attempt--
			// In one commit with what was done about it: a restart in between would ask
			// for the same refusal again.
			failed.ReasoningTo = m.reasoningTo
			d.Put(failed)
			failpoint.Hit("turn.mending")
			if err := d.commit(ctx); err != nil {
				return err
			}
			failpoint.Hit("turn.mended")
			a.notice(fmt.Sprintf("%v; %s", refused, did))
			continue
		}
		wait := backoff(attempt, refused.RetryAfterMS)
		quota := wait > longWait && waits < quotaWaits
		if quota {
			attempt, waits = 0, waits+1
			failed.Until = a.Host.Now() + wait.Milliseconds()
		} else if attempt >= turnAttempts || wait > longWait {
			return a.giveUp(ctx, &m, failed, err)
		}
		failed.WaitMS = wait.Milliseconds()
		if err := a.commit(ctx, failed); err != nil {
			return err
		}
		if err := a.waitForProvider(ctx, refused, wait, quota); err != nil {
			return err
		}
	}
}

// giveUp records the last failure of a turn. Where a guess did not help, the refusal
// that it was tried for is what there is to tell.
func (a *Agent) giveUp(ctx context.Context, m *repair, failed task.TurnFailed, err error) error {
	if len(a.sending.trial) > 0 && m.cause != nil {
		a.sending.window, err = window{}, m.cause
	}
	if err := a.commit(ctx, failed); err != nil {
		return err
	}
	return err
}

// backoff doubles from half a second, with full jitter, and honours what the
// provider asked for.
func backoff(attempt int, askedMS int64) time.Duration {
	if askedMS > 0 {
		return time.Duration(min(askedMS, 24*60*60*1000)) * time.Millisecond
	}
	top := 500 * time.Millisecond << min(attempt-1, 6)
	return top/2 + rand.N(top/2)
}

// attempt is one request: its intent is saved before it goes out. It tells how
// often the provider tried again by itself.
func (a *Agent) requestReply(ctx context.Context) (retries int, err error) {
	req, err := a.buildRequest()
	if err != nil {
		return 0, err
	}
	s, d := a.state(), a.draft()
	ts := a.stamp()
	row := d.addRow(rows.Request(ts, rows.RequestInfo{Protocol: a.protocol()}))
	turn := s.Turns + 1
	d.Put(task.TurnStarted{
		Run: a.Task.RunID, Turn: turn, Request: row,
		Provider: a.Model.Provider.Name(), Model: req.Model,
		Messages: len(req.Messages), Bytes: contentBytes(req.Messages),
	})
	if a.loop.first && a.User.Observer != nil {
		if err := a.User.Observer.Expect(a.planRequest(req)); err != nil {
			return 0, err
		}
	}
	a.loop.first = false
	if err := d.commit(ctx); err != nil {
		return 0, err
	}
	ready := a.openStream(ctx, req)
	err = a.saveJournal(ctx)
	chunks := <-ready
	if err != nil {
		return 0, err
	}
	failpoint.Hit("turn.requested")
	r := &reply{agent: a, turn: turn, request: row, requestTS: ts}
	err = r.receive(ctx, chunks)
	return r.retries, err
}

// prepare makes the request ready while the disk takes the intent: it is not sent before.
// The disk is asked by the caller itself, since a goroutine may begin late where the cores
// are busy, and what the disk takes is longer.
func (a *Agent) openStream(ctx context.Context, req llm.Request) <-chan iter.Seq2[llm.Chunk, error] {
	ready, learn := make(chan iter.Seq2[llm.Chunk, error], 1), a.stale.Learn(ctx)
	go func() {
		chunks := a.Model.Provider.Stream(ctx, req)
		learn()
		ready <- chunks
	}()
	return ready
}

// protocol is the apiProtocol that Roo writes into request rows.
func (a *Agent) protocol() string {
	if a.Model.Provider.Name() == "anthropic" {
		return "anthropic"
	}
	return "openai"
}

// plan tells a person what is about to be sent.
func (a *Agent) planRequest(req llm.Request) Plan {
	p := Plan{Messages: len(req.Messages), Model: req.Model, Provider: a.Model.Provider.Name()}
	p.Tokens = estimateTokens(contentBytes(req.Messages) + len(req.System))
	if cost, ok := a.cost(llm.Usage{Input: p.Tokens}); ok {
		p.CostMicro, p.CostKnown = cost, true
	}
	return p
}

func contentBytes(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += len(m.Content) + len(m.ReasoningContent)
	}
	return n
}

// cost is what usage costs in micro-dollars; false when the price is unknown.
func (a *Agent) cost(u llm.Usage) (int64, bool) {
	if len(a.Model.Entry.IDs) == 0 {
		return 0, false
	}
	return a.Model.Entry.Cost(u)
}

// longWait is the wait above which a person wants to know of it, and a task says
// that it waits: a used-up quota. It is not counted among the tries of a turn, but
// a provider that puts a run off more than quotaWaits times is not waited for.
const (
	longWait   = 2 * time.Minute
	quotaWaits = 24
)

// How long a wait lasts before the person is notified of files that change during it.
const (
	attendQuestion = 300 * time.Millisecond
	attendCommand  = 5 * time.Second
)

// waitOut waits until the provider may be asked again. A long wait is durable
// before it begins: after a kill the task says until when it waits, and whoever
// resumes it earlier asks at once. The clock on the wall decides, so that a machine
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

// tick is how often the time that is left is shown.
func countdownStep(left time.Duration) time.Duration {
	switch {
	case left > time.Hour:
		return time.Minute
	case left > 2*time.Minute:
		return 15 * time.Second
	}
	return time.Second
}

// wordEvery is how often a long wait is worth a line of its own: rarely while there
// is much left.
func reminderStep(left time.Duration) time.Duration {
	switch {
	case left > time.Hour:
		return 15 * time.Minute
	case left > 10*time.Minute:
		return 5 * time.Minute
	}
	return time.Minute
}
