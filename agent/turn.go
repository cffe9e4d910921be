package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// runTurn asks the model once, trying again where that can help, and commits the reply.
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
			// The failure and its repair are one commit: a restart in between would send the refused request again.
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
		} else if attempt >= refused.Tries(turnAttempts) || wait > longWait {
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

// giveUp records the last failure of a turn. Where a guess did not help, it returns the refusal that led to the
// guess.
func (a *Agent) giveUp(ctx context.Context, m *repair, failed task.TurnFailed, err error) error {
	if len(a.sending.trial) > 0 && m.cause != nil {
		a.sending.window, err = window{}, m.cause
	}
	return cmp.Or(a.commit(ctx, failed), err)
}

// requestReply sends one request, whose intent is saved before. It returns how often the provider tried again by
// itself.
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
		Run: a.Task.RunID, Turn: turn, Request: row, Provider: a.Model.Provider.Name(),
		Model: req.Model, Messages: len(req.Messages), Bytes: contentBytes(req.Messages),
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
	// The request is prepared while the disk takes the intent; nothing is sent before that. This goroutine itself waits for
	// the disk: another one may begin late on busy cores, and the disk takes longer.
	ready, learn := make(chan iter.Seq2[llm.Chunk, error], 1), a.stale.Learn(ctx)
	go func() {
		chunks := a.Model.Provider.Stream(ctx, req)
		learn()
		ready <- chunks
	}()
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

// planRequest describes what is about to be sent.
func (a *Agent) planRequest(req llm.Request) Plan {
	p := Plan{Model: req.Model, Provider: a.Model.Provider.Name()}
	bytes := int64(contentBytes(req.Messages) + len(req.System))
	p.Tokens = contextwindow.EstimateTokens(bytes, contextwindow.Calibration{})
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
