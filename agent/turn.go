package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

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

// giveUp records the last failure of a turn. Where a guess did not help, it returns the refusal that the guess was
// tried for.
func (a *Agent) giveUp(ctx context.Context, m *repair, failed task.TurnFailed, err error) error {
	if len(a.sending.trial) > 0 && m.cause != nil {
		a.sending.window, err = window{}, m.cause
	}
	if err := a.commit(ctx, failed); err != nil {
		return err
	}
	return err
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

// protocol is the apiProtocol that Roo writes into request rows.
func (a *Agent) protocol() string {
	if a.Model.Provider.Name() == "anthropic" {
		return "anthropic"
	}
	return "openai"
}

// planRequest describes what is about to be sent.
func (a *Agent) planRequest(req llm.Request) Plan {
	p := Plan{Messages: len(req.Messages), Model: req.Model, Provider: a.Model.Provider.Name()}
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

// cost is what usage costs in micro-dollars; false when the price is unknown.
func (a *Agent) cost(u llm.Usage) (int64, bool) {
	if len(a.Model.Entry.IDs) == 0 {
		return 0, false
	}
	return a.Model.Entry.Cost(u)
}

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
		if long && left > 30*time.Second && said-left >= min(max(said/4, time.Minute), 15*time.Minute) {
			said = left
			a.notice(fmt.Sprintf("still waiting for %s: %s left", refused.Provider, left.Round(time.Minute)))
		}
		if wait >= time.Second {
			a.live(Delta{Type: "wait.delta", TS: end.UnixMilli(), Text: left.Round(time.Second).String()})
		}
		select { // the last minute is counted down by seconds, an hour by minutes
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, max(left/60, time.Second), time.Minute)):
		}
	}
	return nil
}

// window keeps the checked messages of the visible API history, so that a turn costs what it appends. Any change but an
// append rebuilds it.
type window struct {
	builder *contextwindow.Builder
	options contextwindow.Options
	taken   []*task.Message
}

// messages is the history as it may be sent, in whichever form it is stored.
func (w *window) messages(
	api []*task.Message, o contextwindow.Options, cover func(*task.Message) []byte,
) ([]llm.Message, []contextwindow.Note, error) {
	same := w.builder != nil && w.options == o && len(w.taken) <= len(api)
	for i := 0; same && i < len(w.taken); i++ {
		same = w.taken[i] == api[i]
	}
	if !same {
		w.builder, w.options, w.taken = contextwindow.NewBuilder(o), o, nil
	}
	for _, m := range api[len(w.taken):] {
		w.builder.Append(cover(m))
		w.taken = append(w.taken, m)
	}
	return w.builder.Messages()
}

// buildRequest builds the next request from the task's history and settings alone.
func (a *Agent) buildRequest() (llm.Request, error) {
	s := a.state()
	messages, notes, err := a.sending.window.messages(s.Sent(), a.windowOptions(), a.withoutWithheld)
	if err != nil {
		return llm.Request{}, fmt.Errorf("build the request: %w", err)
	}
	for _, n := range notes {
		if !a.sending.notes[n] {
			if a.sending.notes == nil {
				a.sending.notes = map[contextwindow.Note]bool{}
			}
			a.sending.notes[n] = true
			where := fmt.Sprintf("message %d: ", n.Index)
			if n.Index < 0 { // it is about no message of its own
				where = ""
			}
			a.notice("not sent as stored: " + where + n.Text)
		}
	}
	return llm.Request{
		Model:     a.Task.Settings.Model,
		System:    a.systemPrompt(),
		Tools:     a.toolSpecs(),
		Messages:  messages,
		MaxTokens: a.Task.Settings.MaxTokens,
		Replies:   s.Replies,
		Failures:  s.Failures,
	}, nil
}

// windowOptions describe which of the model's own thinking its provider wants back.
func (a *Agent) windowOptions() contextwindow.Options {
	o := contextwindow.For(a.Model.Provider.Name())
	o.KeepReasoningContent = slices.Contains(a.state().ReasoningTo, a.serverName())
	if a.sending.unthinking {
		o.DropThinking, o.KeepReasoning, o.KeepSignatures, o.KeepDetails, o.KeepReasoningContent = true, false, false, false, false
	}
	return o
}

// serverName names the server and the model that answer, "" where there is only one.
func (a *Agent) serverName() string {
	if at, is := a.Model.Provider.(llm.Addressee); is {
		return at.Server(a.Task.Settings.Model)
	}
	return ""
}

func (a *Agent) toolSpecs() []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(a.Tools.List))
	for _, t := range a.Tools.List {
		spec := t.Spec()
		if !a.offers(spec) || a.modeLacks(spec) != nil {
			continue
		}
		specs = append(specs, llm.ToolSpec{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return specs
}
