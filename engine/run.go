package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Run is one run of one task in this process.
type Run struct {
	ID     string
	TaskID string

	engine *Engine
	task   *store.Task
	agent  *agent.Agent
	req    Request
	words  words
	found  []string // what the person should know first
	held   runEquipment
	life   runLife
	stream runEvents
	after  runSequel
	clock  clock               // of a run whose time is limited
	active chan struct{}       // holds one token when something happened
	parent atomic.Pointer[Run] // the run that waits for this one

	mu      sync.Mutex
	answers map[string]*hearing
	child   *Run // the subtask that it waits for
}

// runEquipment is what a run holds until its end.
type runEquipment struct {
	hub         *mcp.Hub              // connections to MCP servers, nil without any
	checkpoints *checkpoints.RunStore // nil without checkpoints
	budget      *budget.Limit         // nil when nothing limits it
	slot        *scheduler.Slot       // reserved for it; nil = none
	spool       string
	spoolErr    error
}

// runLife is how far a run is, and how it ended.
type runLife struct {
	ctx      context.Context //nolint:containedctx // the run's own life, not a caller's
	cancel   context.CancelCauseFunc
	accepted chan struct{} // closed by accept when its input is on disk
	accept   func()
	released chan struct{} // closed by release when the run waits for no user any more
	release  func()
	done     chan struct{}
	outcome  Outcome
}

// runEvents is the part of its task's events that a run makes.
type runEvents struct {
	owner    *events.Owner  // nil until the run works
	from     events.Cursor  // behind the commits before the run's first one
	lastStep atomic.Uint64  // the newest commit that is not just streamed reply text
	last     atomic.Uint64  // the newest commit of all, once the task was released
	saved    chan struct{}  // closed when last is set
	ended    bool           // the agent has ended; used by its goroutine only
	late     []events.Event // notices behind the last event
}

// runSequel is what follows a run.
type runSequel struct {
	settled chan struct{} // closed when what follows this run is known
	next    *Run          // the run of the parent that this run's end woke
	nextErr error
	instead *Run // the run that began for the message that interrupted this run; guarded by the task's lock
}

// words is the input of a resume, for the task or for the subtask whose question it answers.
type words struct {
	own   agent.Input // for the task
	child agent.Input // for the child that the task waits for when the run begins
}

// hearing waits for the answer to a question.
type hearing struct {
	ch    chan Answer
	taken bool
	open  chan struct{} // closed once the question is on disk; front doors see it only then
}

// work runs the agent and hands out its events until both are done.
func (r *Run) work(in agent.Input) {
	defer close(r.life.done)
	// Without a topic the run works all the same: its events are in the journal, and those who open the topic later get
	// the error.
	r.stream.owner, _ = r.engine.pipe.Own(context.WithoutCancel(r.life.ctx), r.task.Ref, r.task.Epoch())
	defer r.stream.owner.Release()
	if r.held.spoolErr != nil {
		r.life.outcome = Outcome{State: "failed", Code: "internal", Reason: r.held.spoolErr.Error(), Err: r.held.spoolErr}
	}
	defer func() {
		if err := spool.Remove(r.held.spool); err != nil {
			r.notice(err.Error())
		}
	}()
	stopObserving := r.observe()
	for _, note := range r.found {
		r.notice(note)
	}
	var watch sync.WaitGroup
	watchCtx, stopWatch := context.WithCancel(context.Background())
	limits := r.agent.Task.Settings.Limits
	if limit := time.Duration(limits.TotalTimeoutMS) * time.Millisecond; limit > 0 {
		r.clock.last = time.Now()
		if before := r.task.State().Run; before.Unended() {
			r.clock.used = time.Duration(before.WorkedMS) * time.Millisecond
		}
		watch.Go(func() { r.watchTotal(watchCtx, limit) })
	}
	if limit := time.Duration(limits.IdleTimeoutMS) * time.Millisecond; limit > 0 {
		watch.Go(func() { r.watchIdle(watchCtx, limit) })
	}
	if r.held.spoolErr == nil {
		r.life.outcome = r.agent.Run(r.life.ctx, in)
	}
	r.stream.ended = true
	if r.held.spoolErr == nil {
		r.agent.Ended(r.life.ctx, r.life.outcome)
	}
	// The next run opens its own connections; a server of many short runs would keep one of each for a minute and a half.
	if r.held.hub != nil {
		r.held.hub.Close()
	}
	if p, ok := r.agent.Model.Provider.(interface{ CloseIdle() }); ok {
		p.CloseIdle()
	}
	if r.held.checkpoints != nil {
		if err := r.held.checkpoints.Close(); err != nil {
			r.notice(err.Error())
		}
	}
	stopWatch()
	watch.Wait()
	known := len(r.task.Intakes())
	err := r.task.Close(context.Background())
	r.stream.last.Store(r.task.State().Seq)
	close(r.stream.saved)
	if err != nil {
		r.notice(fmt.Sprintf("the task is saved in its journal, but its files are not up to date: %v", err))
	}
	for _, note := range describeIntakes(r.task.Intakes()[known:]) {
		r.notice(note) // of what other programs wrote during the run
	}
	stopObserving()
}

// observedWithin bounds how long the end of a run waits until its events were observed. Its commits are on disk, so the
// topic reads them within milliseconds unless the journal cannot be read.
const observedWithin = time.Minute

// observe passes the run's durable events to Options.Observe and to the notifier. stop waits until all were passed.
func (r *Run) observe() (stop func()) {
	if r.engine.opt.Observe == nil && !r.engine.notifier.Wanted() || r.stream.owner == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.follow(ctx, r.stream.owner.Topic().Subscribe(r.stream.from), r.stream.saved, func(i events.Item) bool {
			if i.Live {
				return true
			}
			r.engine.notifier.Observe(i.Event)
			if r.engine.opt.Observe != nil {
				r.engine.opt.Observe(i.Event)
			}
			return true
		})
	}()
	return func() {
		select {
		case <-ended:
		case <-time.After(observedWithin):
		}
		cancel()
		<-ended
	}
}

// follow gives the events of the run's task until over is closed and the run's last commit was given, or until give
// returns false, the topic ends or ctx ends.
func (r *Run) follow(ctx context.Context, sub *events.Subscriber, over <-chan struct{}, give func(events.Item) bool) {
	enough := errors.New("enough")
	for ended := false; ; {
		err := sub.Read(ctx, func(i events.Item) error {
			if last := r.stream.last.Load(); last > 0 && i.Seq > last || !give(i) {
				return enough
			}
			return nil
		})
		if err != nil || ended && sub.Cursor().Seq >= r.stream.last.Load() {
			return
		}
		select {
		case <-sub.Changed():
		case <-over:
			ended, over = true, nil
		case <-ctx.Done():
			return
		}
	}
}

// Start returns the cursor behind the events before the run's first one.
func (r *Run) Start() string { return r.stream.from.String() }

// Late returns the notices that came behind the run's last event. Call it once Wait has returned.
func (r *Run) Late() []events.Event { return r.stream.late }

// Wait returns the outcome once the run has ended and everything is written.
func (r *Run) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-r.life.done:
	case <-ctx.Done():
		if !isClosed(r.life.done) { // a select takes any of two that are ready
			return Outcome{}, ctx.Err()
		}
	}
	return r.life.outcome, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// abandon lets go of a run that never began.
func (r *Run) abandon() error {
	return errors.Join(r.task.Close(context.WithoutCancel(r.life.ctx)), spool.Remove(r.held.spool))
}

// Cancel stops the run, and the subtask that it waits for, within two seconds, saved, with no process left behind.
func (r *Run) Cancel() { r.life.cancel(errors.New("cancelled by the user")) }

// errAlone stops a run and leaves the subtask that it waits for.
var errAlone = errors.New("cancelled by the user, without its subtask")

// CancelAlone stops the run and lets the subtask that it waits for run to its end. The
// task gets the result when it is resumed.
func (r *Run) CancelAlone() { r.life.cancel(errAlone) }

// Release lets the run release its task, as waiting, as soon as the run waits for a person, which may be now.
func (r *Run) Release() { r.life.release() }

// Accepted returns when the run's input is on disk. The error says why it never was: the run ended before.
func (r *Run) Accepted(ctx context.Context) error {
	select {
	case <-r.life.accepted:
	case <-r.life.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case isClosed(r.life.accepted):
		return nil
	case r.life.outcome.Err != nil:
		return r.life.outcome.Err
	case r.life.outcome.State == "waiting": // whether to begin at all
		return nil
	case r.life.outcome.State == "denied":
		return &DeniedError{Task: r.TaskID, Reason: r.life.outcome.Reason}
	}
	return fmt.Errorf("start a run of task %s: it ended before its first step: %s", r.TaskID, r.life.outcome.Reason)
}

// isEnding reports whether a run has come to its end and only writes the task's files.
func (r *Run) isEnding() (over bool) {
	if isClosed(r.life.done) || !isClosed(r.life.accepted) {
		return isClosed(r.life.done)
	}
	r.task.View(func(s *task.State) {
		over = s.Run != nil && s.Run.ID == r.ID && (s.Run.Outcome != "" || s.Run.Waiting != "")
	})
	return over
}

// adopt records the subtask that a run waits for.
func (r *Run) adopt(child *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child = child
}

// Subtask returns the run of the subtask that the task waits for; nil when it waits for none that is at work here.
func (r *Run) Subtask() *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// DeniedError: the user refused what the run needs to begin.
type DeniedError struct{ Task, Reason string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("the run of task %s was denied what it needs: %s", e.Task, e.Reason)
}

// Enqueue queues an input for the run, which takes it with its next user turn. The input is on disk when Enqueue
// returns. store.ErrLetGo: the run has ended. store.ErrInputTaken: the run has taken an input of that name.
func (r *Run) Enqueue(ctx context.Context, q task.InputQueued) error {
	if err := r.task.ChangeInput(ctx, q); err != nil {
		return err
	}
	r.touch()
	return nil
}

func (r *Run) notice(text string) { r.publishNotice("warning", text) }

// publishNotice publishes a notice. kind tells a client what it may leave out: a plan is progress, a warning is not.
func (r *Run) publishNotice(kind, text string) {
	var newest uint64 // commit, durable or not
	r.task.View(func(s *task.State) { newest = s.Seq })
	e := r.liveEvent("notice", newest, func(o *esjson.Object) {
		o.String("kind", kind)
		o.String("text", text)
	})
	if r.stream.ended {
		r.stream.late = append(r.stream.late, e)
	}
	r.stream.owner.Publish(e)
}

// liveEvent returns a live event of the run that follows a commit; fill adds its payload.
func (r *Run) liveEvent(typ string, behind uint64, fill func(*esjson.Object)) events.Event {
	var o esjson.Object
	o.String("type", typ)
	o.String("task_id", r.TaskID)
	o.String("run_id", r.ID)
	fill(&o)
	return events.Event{Type: typ, Task: r.TaskID, Run: r.ID, Behind: behind, At: r.engine.opt.Now(), Data: o.Bytes()}
}

// mode returns the current mode of the run's task. Only the agent may call it: the agent changes the mode.
func (r *Run) mode() string { return r.agent.Task.Settings.Mode }

// Next returns the run that this run's end started: of the parent that waited for its task, or of the same task, for an
// input that came at the last moment; nil when there is none. Next returns once that is known. The error says why a run
// that should follow did not start.
func (r *Run) Next(ctx context.Context) (*Run, error) {
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	return r.after.next, r.after.nextErr
}

// settle waits until a run has released its task and the run that follows it is known.
func (r *Run) settle(ctx context.Context) error {
	select {
	case <-r.after.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runID makes an id for a run of a task. It ends in digits that follow from the task's id, so that the run's task is found
// from the id alone, among the ids of all tasks, without an index that could be outdated.
func runID(task string) string {
	id := uuid.NewString()
	return id[:len(id)-taskDigitCount] + taskDigits(task)
}

const taskDigitCount = 8

// taskDigits returns the digits that the ids of a task's runs end in.
func taskDigits(task string) string {
	sum := sha256.Sum256([]byte(task))
	return hex.EncodeToString(sum[:taskDigitCount/2])
}

// touch records that something happened in the run. It never blocks.
func (r *Run) touch() {
	select {
	case r.active <- struct{}{}:
	default: // it is recorded already
	}
	if up := r.parent.Load(); up != nil {
		up.touch() // a run that waits for a subtask is as active as the subtask
	}
}

// asking reports whether a question of this run waits for the user, whose time does not count as the run's.
func (r *Run) asking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answers) > 0 || r.child != nil && r.child.asking()
}

// watchIdle ends the run when nothing happened for limit: no event, no streamed text. It returns when ctx ends.
func (r *Run) watchIdle(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.active:
			timer.Reset(limit)
		case <-timer.C:
			if r.asking() {
				timer.Reset(limit)
				continue
			}
			r.life.cancel(fmt.Errorf("nothing happened for %s: %w", limit, agent.ErrTimeout))
			return
		}
	}
}

// clock counts how long a run worked, including the earlier part of a run that continues under the same id, and without
// the time in which it waited for the user.
type clock struct {
	mu   sync.Mutex
	used time.Duration
	last time.Time // of the last count; zero = the run's time is not limited
}

// worked counts the time since the last count and returns the total. It is called whenever the run begins or ends to wait
// for the user, and often enough in between to notice waiting subtasks.
func (r *Run) worked() time.Duration {
	asking := r.asking()
	c := &r.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return 0
	}
	now := time.Now()
	if !asking {
		c.used += now.Sub(c.last)
	}
	c.last = now
	return c.used
}

// watchTotal ends the run when it worked for limit. It returns when ctx ends.
func (r *Run) watchTotal(ctx context.Context, limit time.Duration) {
	tick := time.NewTicker(min(max((limit-r.worked())/20, 5*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if r.worked() >= limit {
				r.life.cancel(agent.ErrTimeout)
				return
			}
		}
	}
}
