package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Run is one run of one task in this process.
type Run struct {
	ID     string
	TaskID string

	engine      *Engine
	task        *store.Task
	agent       *agent.Agent
	ctx         context.Context //nolint:containedctx // the run's own life, not a caller's
	cancel      context.CancelCauseFunc
	done        chan struct{}
	stream      *stream
	interactive bool
	limits      task.Limits
	notes       []string
	spool       string
	spoolErr    error
	outcome     Outcome

	mu      sync.Mutex
	answers map[string]chan Answer
	active  chan struct{} // holds one token when something happened
	plan    *agent.Plan
}

// work runs the agent and hands out its events until both are done.
func (r *Run) work(in agent.Input) {
	defer close(r.done)
	defer r.stream.end()
	if r.spoolErr != nil {
		r.outcome = Outcome{State: "failed", Code: "internal", Reason: r.spoolErr.Error(), Err: r.spoolErr}
	}
	defer os.RemoveAll(r.spool)
	from := r.task.State().Seq + 1
	pumpCtx, stopPump := context.WithCancel(context.Background())
	var pump sync.WaitGroup
	pump.Go(func() { r.pump(pumpCtx, from) })
	for _, note := range r.notes {
		r.notice(note)
	}
	ctx, stop := r.timed()
	var watch sync.WaitGroup
	watchCtx, stopWatch := context.WithCancel(context.Background())
	if limit := time.Duration(r.limits.IdleTimeoutMS) * time.Millisecond; limit > 0 {
		watch.Go(func() { r.watchIdle(watchCtx, limit) })
	}
	if r.spoolErr == nil {
		r.outcome = r.agent.Run(ctx, in)
	}
	stopWatch()
	watch.Wait()
	stop()
	last := r.task.State().Seq
	if err := r.task.Close(context.Background()); err != nil {
		r.notice(fmt.Sprintf("the task is saved in its journal, but its files are not up to date: %v", err))
	}
	r.stream.waitFor(last, 5*time.Second)
	stopPump()
	pump.Wait()
}

// timed bounds the run by its total time limit.
func (r *Run) timed() (context.Context, context.CancelFunc) {
	if r.limits.TotalTimeoutMS <= 0 {
		return r.ctx, func() {}
	}
	return context.WithTimeoutCause(r.ctx, time.Duration(r.limits.TotalTimeoutMS)*time.Millisecond, agent.ErrTimeout)
}

// pump turns commits into events, in order, once they are durable.
func (r *Run) pump(ctx context.Context, from uint64) {
	reader, err := r.engine.store.Follow(r.task.Ref)
	if err != nil {
		r.notice(fmt.Sprintf("events cannot be shown: %v", err))
		return
	}
	defer reader.Close()
	state := task.New(store.Payloads(reader))
	for c, err := range reader.Follow(ctx, 1) {
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		r.touch()
		events := render(state, r.TaskID, c)
		if c.Seq >= from {
			r.stream.add(c.Seq, events)
		}
	}
}

// Events yields the run's durable events from its first one, in order and each
// once, and live deltas as they come, until the run has ended or ctx ends.
func (r *Run) Events(ctx context.Context) iter.Seq[Event] { return r.stream.follow(ctx) }

// Wait returns the outcome once the run has ended and everything is written.
func (r *Run) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-r.done:
		return r.outcome, nil
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
}

// Cancel stops the run within two seconds, saved, with no process left behind.
func (r *Run) Cancel() { r.cancel(errors.New("cancelled by the user")) }

// Plan is what the first request was to send and to cost; nil before it.
func (r *Run) Plan() *agent.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan
}

func (r *Run) expect(p agent.Plan) error {
	r.mu.Lock()
	r.plan = &p
	r.mu.Unlock()
	cost := "at an unknown price"
	if p.CostKnown {
		cost = fmt.Sprintf("about $%.4f uncached", float64(p.CostMicro)/1e6)
	}
	r.notice(fmt.Sprintf("sending %d messages, about %d tokens, to %s %s: %s", p.Messages, p.Tokens, p.Provider, p.Model, cost))
	return nil
}

func (r *Run) notice(text string) {
	data, err := json.Marshal(map[string]string{"type": "notice", "task_id": r.TaskID, "run_id": r.ID, "text": text})
	if err != nil {
		return // a map of strings always marshals
	}
	r.stream.live(Event{Type: "notice", Task: r.TaskID, Run: r.ID, At: r.engine.opt.Now(), Data: data})
}

func (r *Run) live(d agent.Delta) {
	r.touch()
	body := map[string]any{
		"type": d.Type, "task_id": r.TaskID, "run_id": r.ID, "ts": d.TS, "offset": d.Offset, "text": d.Text,
	}
	if d.Message != 0 {
		body["message"] = d.Message
	}
	if d.Call != "" {
		body["call"] = d.Call
	}
	data, err := json.Marshal(body)
	if err != nil {
		return // only strings and numbers
	}
	r.stream.live(Event{Type: d.Type, Task: r.TaskID, Run: r.ID, At: r.engine.opt.Now(), Data: data})
}
