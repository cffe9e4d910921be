package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/engine/budget"

	"github.com/roost-dev/roost/engine/scheduler"

	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/mcp"
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
	hub         *mcp.Hub              // connections to MCP servers, nil without any
	checkpoints *checkpoints.RunStore // nil without checkpoints
	ctx         context.Context       //nolint:containedctx // the run's own life, not a caller's
	cancel      context.CancelCauseFunc
	done        chan struct{}
	stream      *stream
	accepted    chan struct{} // closed when its input is on disk
	released    chan struct{} // closed when nobody is waited for any more
	releaseOnce sync.Once
	acceptOnce  sync.Once
	hold        time.Duration // how long a person is waited for; 0 = until somebody answers
	interactive bool
	limits      task.Limits
	found       []string // what the person should know first
	spool       string
	spoolErr    error
	outcome     Outcome
	req         Request
	slot        *scheduler.Slot // reserved for it; nil = none
	words       words
	budget      *budget.Limit       // nil when nothing limits it
	clock       clock               // of a run whose time is limited
	parent      atomic.Pointer[Run] // the run that waits for this one
	settled     chan struct{}       // closed when what follows this run is known
	next        *Run                // of the parent that its end woke
	nextErr     error

	step atomic.Uint64 // the newest commit that is more than words of a reply that comes
	last atomic.Uint64 // the newest commit of all, once the task is let go

	pumped chan struct{} // closed when all events are in the stream

	mu      sync.Mutex
	notes   notes // of what is committed and not shown yet
	answers map[string]*hearing
	active  chan struct{} // holds one token when something happened
	plan    *agent.Plan
	child   *Run // the subtask that it waits for
}

// work runs the agent and hands out its events until both are done.
func (r *Run) work(in agent.Input) {
	defer close(r.done)
	defer r.stream.end()
	if r.spoolErr != nil {
		r.outcome = Outcome{State: "failed", Code: "internal", Reason: r.spoolErr.Error(), Err: r.spoolErr}
	}
	defer func() {
		if err := spool.Remove(r.spool); err != nil {
			r.notice(err.Error())
		}
	}()
	from := r.task.State().Seq + 1
	pumpCtx, stopPump := context.WithCancel(context.Background())
	go func() {
		defer close(r.pumped)
		r.pump(pumpCtx, from)
	}()
	for _, note := range r.found {
		r.notice(note)
	}
	var watch sync.WaitGroup
	watchCtx, stopWatch := context.WithCancel(context.Background())
	if limit := time.Duration(r.limits.TotalTimeoutMS) * time.Millisecond; limit > 0 {
		r.wind()
		watch.Go(func() { r.watchTotal(watchCtx, limit) })
	}
	if limit := time.Duration(r.limits.IdleTimeoutMS) * time.Millisecond; limit > 0 {
		watch.Go(func() { r.watchIdle(watchCtx, limit) })
	}
	if r.spoolErr == nil {
		r.outcome = r.agent.Run(r.ctx, in)
	}
	r.unequip()
	if r.checkpoints != nil {
		if err := r.checkpoints.Close(); err != nil {
			r.notice(err.Error())
		}
	}
	stopWatch()
	watch.Wait()
	told := len(r.task.Intakes())
	err := r.task.Close(context.Background())
	last := r.task.State().Seq
	if err != nil {
		r.notice(fmt.Sprintf("the task is saved in its journal, but its files are not up to date: %v", err))
	}
	for _, note := range intakes(r.task.Intakes()[told:]) {
		r.notice(note) // of what came while the run went on
	}
	r.last.Store(last)
	stopPump()
	<-r.pumped
}

// pump turns commits into events, in order, once they are durable. When ctx ends, which is
// when the task was let go, it shows what it has not come to yet, however much that is.
func (r *Run) pump(ctx context.Context, from uint64) {
	reader, err := r.engine.store.Follow(r.task.Ref)
	if err != nil {
		r.notice(fmt.Sprintf("events cannot be shown: %v", err))
		return
	}
	defer reader.Close()
	run := ""
	show := func(commits iter.Seq2[journal.Commit, error], until context.Context) (over bool) {
		for c, err := range commits {
			var lost *journal.DamageError
			switch last := r.last.Load(); {
			case until.Err() != nil:
				return true
			case errors.As(err, &lost):
				continue // of another time; the store has told of it
			case err != nil:
				r.notice(fmt.Sprintf("events cannot be shown any more: %v", err))
				return false
			case last > 0 && c.Seq > last:
				return false // of who has the task now
			}
			run, from = r.show(c, run), c.Seq+1
		}
		return until.Err() != nil
	}
	if show(reader.Follow(ctx, from), ctx) && from <= r.last.Load() {
		always := context.WithoutCancel(ctx)
		show(reader.Read(always, from), always)
	}
}

// shownWithin is how long is waited for events to be shown: what is on disk always is some
// time, so that this only bounds what nobody foresaw.
const shownWithin = time.Minute

// shown waits until the stream has all that was committed, which must be on disk, or
// nothing more comes.
func (r *Run) shown(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case <-r.pumped: // its log cannot be read: the stream has said so
			cancel()
		case <-ctx.Done():
		}
	})
	r.stream.waitFor(r.task.State().Seq, shownWithin, ctx.Done())
}

// show hands out the events of a commit; run is the newest run at the one before.
func (r *Run) show(c journal.Commit, run string) string {
	r.touch()
	n, ok := r.notes.take(c.Seq)
	if !ok {
		n.Run = run // the store's own commit: it is no step of the agent
	}
	shown := events.Render(r.TaskID, c, n)
	r.engine.observe(shown)
	r.stream.add(c.Seq, shown)
	return n.Run
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
	}
	select {
	case <-r.done: // a select takes any of two that are ready
		return r.outcome, nil
	default:
		return Outcome{}, ctx.Err()
	}
}

// abandon lets go of a run that never began.
func (r *Run) abandon() error {
	return errors.Join(r.task.Close(context.WithoutCancel(r.ctx)), spool.Remove(r.spool))
}

// Cancel stops the run, and the subtask that it waits for, within two seconds, saved, with no process left behind.
func (r *Run) Cancel() { r.cancel(errors.New("cancelled by the user")) }

// interrupt stops the run, and the subtask that it waits for: it is to be gone on with later.
func (r *Run) interrupt() { r.cancel(agent.ErrDrained) }

// Release lets the task go, as waiting, once the run waits for a person; one that does
// already does so at once.
func (r *Run) Release() { r.releaseOnce.Do(func() { close(r.released) }) }

// Accepted returns when what the run was started with is on disk. An error is why it
// never was: the run ended before.
func (r *Run) Accepted(ctx context.Context) error {
	select {
	case <-r.accepted:
		return nil
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.accepted:
		return nil
	default:
	}
	if r.outcome.Err != nil {
		return r.outcome.Err
	}
	if r.outcome.State == "waiting" { // whether to begin at all
		return nil
	}
	return fmt.Errorf("start a run of task %s: it ended before it began: %s", r.TaskID, r.outcome.Reason)
}

func (r *Run) accept() { r.acceptOnce.Do(func() { close(r.accepted) }) }

// Enqueue gives words to the run, which takes them in with its next user turn. They are
// on disk when it returns. store.ErrLetGo: the run has ended. store.ErrInputTaken: words of
// that name are in its hands.
func (r *Run) Enqueue(ctx context.Context, q task.InputQueued) error {
	if err := r.task.Enqueue(ctx, q); err != nil {
		return err
	}
	r.touch()
	return nil
}

// Plan is what the first request was to send and to cost; nil before it.
func (r *Run) Plan() *agent.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan
}

// observer is a run's agent.Observer.
type observer struct{ run *Run }

// Accepted notes that the run's input is durable.
func (o observer) Accepted() { o.run.accept() }

// Expect shows what the first request sends and costs.
func (o observer) Expect(p agent.Plan) error { return o.run.expect(p) }

// Live broadcasts streamed text.
func (o observer) Live(d agent.Delta) { o.run.live(d) }

// Notice broadcasts a warning.
func (o observer) Notice(text string) { o.run.notice(text) }

func (r *Run) expect(p agent.Plan) error {
	r.mu.Lock()
	r.plan = &p
	r.mu.Unlock()
	cost := "at an unknown price"
	if p.CostKnown {
		cost = fmt.Sprintf("about $%.4f uncached", float64(p.CostMicro)/1e6)
	}
	messages := fmt.Sprintf("%d messages", p.Messages)
	if p.Messages == 1 {
		messages = "one message"
	}
	r.tell("plan", fmt.Sprintf("sending %s, about %d tokens, to %s %s: %s", messages, p.Tokens, p.Provider, p.Model, cost))
	return nil
}

func (r *Run) notice(text string) { r.tell("warning", text) }

// tell is a notice of a kind: a plan is progress and may be left out, a warning
// may not.
func (r *Run) tell(kind, text string) {
	var o esjson.Object
	o.String("type", "notice")
	o.String("kind", kind)
	o.String("task_id", r.TaskID)
	o.String("run_id", r.ID)
	o.String("text", text)
	r.stream.live(Event{Type: "notice", Task: r.TaskID, Run: r.ID, Behind: r.head(), At: r.engine.opt.Now(), Data: o.Bytes()})
}

func (r *Run) live(d agent.Delta) {
	if d.Type != "wait.delta" { // to wait is to be idle
		r.touch()
	}
	var o esjson.Object
	o.String("type", d.Type)
	o.String("task_id", r.TaskID)
	o.String("run_id", r.ID)
	if d.Message != 0 {
		o.Int("message", int64(d.Message))
	}
	if d.Call != "" {
		o.String("call", d.Call)
	}
	o.Int("ts", d.TS)
	o.Int("offset", int64(d.Offset))
	o.String("text", d.Text)
	r.stream.say(Event{Type: d.Type, Task: r.TaskID, Run: r.ID, Behind: r.head(), At: r.engine.opt.Now(), Data: o.Bytes()}, r.step.Load())
}

// head is the newest commit, durable or not.
func (r *Run) head() (seq uint64) {
	r.task.View(func(s *task.State) { seq = s.Seq })
	return seq
}

// mode is the current mode of the run's task. Only the agent may call it: the agent changes the mode.
func (r *Run) mode() string { return r.agent.Task.Settings.Mode }
