package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// Options are what an engine needs beside the store.
type Options struct {
	Now    func() int64 // Unix milliseconds; nil = the clock
	Config setup.Config // without Keys: from the environment
	// MaxRuns is how many runs may work at once; more wait in the queue, which holds at most
	// MaxQueue. Those that wait for a person do not count. 0 = 8 and 1000.
	MaxRuns, MaxQueue int
	// Hold is how long a run that the scheduler starts waits for a user before it releases its task, as waiting.
	// 0 = 10 minutes, negative = until there is an answer.
	Hold time.Duration
	// Confined: every task that runs or is forked works in a folder that can be a project: not
	// a disk, the home folder, Roost's own data, or what holds them.
	Confined bool
	// Observe gets each durable event of every run of this process, in the order of its run, before the run's
	// subscribers. It must be quick. It may be nil.
	Observe func(events.Event)
	// Begun gets each run that begins in this process, before it works. It must be quick. It may be nil.
	Begun func(*Run)
}

// Engine runs tasks. It is safe for concurrent use.
type Engine struct {
	store       *store.Store
	opt         Options
	resolver    setup.Resolver
	checkpoints *checkpoints.Service
	pipe        *events.Pipe

	mu        sync.Mutex
	runs      map[string]*Run
	ending    map[string]*Run // runs of which it is not known yet what follows them
	totals    budget.Totals
	closed    bool
	wait      sync.WaitGroup
	scheduler *scheduler.Scheduler
}

// ErrClosed: the engine is shutting down and starts nothing more.
var ErrClosed = errors.New("the engine is closed")

// New makes an engine.
func New(s *store.Store, o Options) *Engine {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Config.Keys == nil {
		o.Config = setup.ConfigFromEnv(os.Getenv)
	}
	resolver := setup.Resolver{Config: o.Config, Root: s.Root(), Confined: o.Confined}
	e := &Engine{
		store: s, opt: o, resolver: resolver, checkpoints: checkpoints.New(s, resolver, o.Now),
		pipe: events.New(s), runs: map[string]*Run{}, ending: map[string]*Run{},
	}
	runs, queue := cmp.Or(max(o.MaxRuns, 0), defaultMaxRuns), cmp.Or(max(o.MaxQueue, 0), defaultMaxQueue)
	e.scheduler = scheduler.New(e.busy, runs, queue)
	return e
}

// Events is the pipe with the events of all tasks, and the live events of this engine's runs.
func (e *Engine) Events() *events.Pipe { return e.pipe }

// Runs are the ids of the tasks that run in this process.
func (e *Engine) Runs() []*Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.runs))
}

// Close cancels every run, waits until each is saved, and starts no more.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, r := range e.Runs() {
		if r.parent.Load() == nil { // the parent's run stops a subtask
			r.Cancel()
		}
	}
	done := make(chan struct{})
	go func() { e.wait.Wait(); e.scheduler.Close(); e.pipe.Close(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the engine: %w", ctx.Err())
	}
}

// Request starts or continues a task. Nil and zero members mean: as the task has it, or the default for a new one.
type Request struct {
	Task   string // reference of an existing task; "" starts a new one
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without a text
	Title  string   // of a new task; "" = derived from its text

	setup.Choice

	// NoCheckpoints keeps nothing of the files that this run changes. The task does not keep this setting.
	NoCheckpoints bool

	Origin      string // cli, api, web, editor
	Interactive bool   // a client shows questions and answers them

	// RunID is the id of the run; "" = a new one. The id of a run that is queued or waits continues that run. NewTask is
	// the id of a new task.
	RunID   string
	NewTask string
	// Hold is how long an interactive run waits for the user before it releases its task, as waiting; 0 = until an answer
	// comes.
	Hold time.Duration

	// OwnSettings confirms that a task whose journal is not trusted continues, under the user's own settings.
	// TrustSettings also accepts the policy, address and limits that such a task, or one that was imported, came with:
	// never its queue or its answers. See Engine.Receive.
	OwnSettings, TrustSettings bool

	answer    *Answer // to question, which the task waits for
	question  string
	automatic bool // no caller asked for it: a task that is not trusted stays as it is
}

// Answer is an answer to a question.
type Answer = agent.Answer

// Outcome is how a run ended.
type Outcome = agent.Outcome

// RunInfo is a run as its task's journal records it, with its state, in whichever process it works.
type RunInfo struct {
	task.Run
	Ref      store.Ref
	State    string // queued, running, waiting, completed, failed, cancelled, interrupted
	Question string // the open one, as Reply takes it; "" = none
	Position int    // in this process's queue, from 1; 0 = not in it
	Here     bool   // this process works on it, or will
}

// Ticket is a run whose start, or whose entry in the queue, is on disk.
type Ticket struct {
	RunInfo
	From events.Cursor // the run's events follow this event of the task; zero = from the start
	Made bool          // the task is new
	Same bool          // the request was accepted before, and nothing was done now
}

// Message is what the user sends to a task in any state.
type Message struct {
	ID       string // a message with the same id is accepted once; "" = a new id
	Text     string
	Images   []string // data URLs
	Delivery string   // auto ("" too), queue, interrupt
	By       string   // the door it came through
	Request  Request  // how a run is started where there is none; Task, Text and Images are those of the message
}

// Sent is what a message did.
type Sent struct {
	How      string // answered, queued, started
	Ref      store.Ref
	Run      string // that has it, or will have it
	Question string // that it answered, as Reply takes it
	Input    string // its id in the task's queue
}

// Asked is an open question of some task.
type Asked struct {
	ID   string // as Reply takes it: the task's id, a dot, and the question's
	Ref  store.Ref
	Task api.Summary
	Run  string
	At   int64         // Unix milliseconds
	From events.Cursor // the event that opened it
	Here bool          // a run of this process waits with it
	api.QuestionOpened
}

// Reply is what the user replies to a question.
type Reply struct {
	ID      string // a reply with the same id gets the same result; "" = it has none
	Choice  int    // from 1; 0 = none
	Text    string //
	Approve *bool
	Always  bool
	Stop    bool           // stop and save instead
	Seen    *events.Cursor // the newest event that the user saw; one from before the question is refused
	By      string
	// Request is how the run continues where none works.
	Request Request
}

// Replied is what an answer did.
type Replied struct {
	Asked  Asked
	Answer Answer
	Run    RunInfo // that continues with it
}

// Why the engine refuses a request.
var (
	ErrRunning   = errors.New("a run works on it")                    // of this process; of another one it is journal.BusyError
	ErrNoRun     = errors.New("no such run")                          //
	ErrStale     = errors.New("something happened since it was seen") // the reply is to a state that the user has not seen
	ErrQueueFull = errors.New("the queue is full")
	ErrDraining  = scheduler.ErrDraining
	ErrInput     = errors.New("no such input waits") // it was used already, or never existed
)

// AnsweredError: another answer came first.
type AnsweredError struct {
	Question string
	Task     string
	Answer   api.QuestionClosed // the first answer, and its origin
}

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("answer %s of task %s: it was answered already, by %s", e.Question, e.Task, e.Answer.By)
}

// Is makes it an ErrNoQuestion too.
func (e *AnsweredError) Is(err error) bool { return err == ErrNoQuestion }

// RunFilter narrows a list of runs.
type RunFilter struct {
	State  string
	Limit  int
	Cursor string
}

// RecoverOptions decide what happens to runs that a dead process of this root left.
type RecoverOptions struct {
	Resume      bool // resume interrupted ones too
	MaxAttempts int  // how often in a row a task is resumed; 0 = 3
}

// RunByID finds a run; ErrNoRun when there is none. The last digits of the run's id lead to its task. Of an id that Roost
// did not make, it finds only a run of this process.
func (e *Engine) RunByID(ctx context.Context, id string) (RunInfo, error) {
	e.mu.Lock()
	run := e.runs[id]
	e.mu.Unlock()
	if run != nil {
		if info, err := e.infoOf(ctx, run.task.Ref, id); !errors.Is(err, ErrNoRun) {
			return info, err
		}
	}
	if len(id) < taskDigitCount {
		return RunInfo{}, fmt.Errorf("%w: %q", ErrNoRun, id)
	}
	refs, err := e.store.Refs(ctx)
	if err != nil {
		return RunInfo{}, err
	}
	for _, ref := range refs {
		if !strings.HasSuffix(id, taskDigits(ref.ID)) {
			continue
		}
		refs := []store.Ref{ref}
		if fork, ok := e.store.Continued(ref); ok {
			refs = append(refs, fork)
		}
		for _, ref := range refs {
			info, err := e.infoOf(ctx, ref, id)
			if !errors.Is(err, ErrNoRun) {
				return info, err
			}
		}
	}
	return RunInfo{}, fmt.Errorf("%w: %q", ErrNoRun, id)
}

// RunsOf are the runs of a task, the newest first.
func (e *Engine) RunsOf(ctx context.Context, ref string) ([]RunInfo, error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return nil, err
	}
	return e.runsOf(ctx, at)
}

func (e *Engine) runsOf(ctx context.Context, ref store.Ref) ([]RunInfo, error) {
	var out []RunInfo
	err := e.withRuns(ctx, ref, func(s *task.State) {
		// A reason that cannot be read any more leaves a run without one.
		runs, _ := s.WithReasons(s.Runs.All...)
		for _, run := range slices.Backward(runs) {
			out = append(out, e.currentRun(ctx, ref, s, run))
		}
	})
	return out, err
}

// infoOf is one run of a task.
func (e *Engine) infoOf(ctx context.Context, ref store.Ref, run string) (RunInfo, error) {
	out, found := RunInfo{}, false
	err := e.withRuns(ctx, ref, func(s *task.State) {
		if r := s.Runs.Find(run); r != nil {
			whole, _ := s.WithReasons(r)
			out, found = e.currentRun(ctx, ref, s, whole[0]), true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrNoRun, run)
	}
	return out, err
}

// withRuns folds the runs of a task up to the end of its journal and lends them to f: see task.NewRuns. A task
// without a journal has none. Callers act on them, so a snapshot counts only when this root wrote it.
func (e *Engine) withRuns(ctx context.Context, ref store.Ref, f func(*task.State)) error {
	log, err := e.store.Verified(ref)
	if errors.Is(err, journal.ErrNotFound) {
		f(task.New(nil))
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	s, err := fold.Runs(ctx, log)
	if err != nil {
		return fmt.Errorf("fold the runs of task %s: %w", ref.ID, err)
	}
	f(s)
	return nil
}

// currentRun is a run of s with its state now. A run without an end that no process works on is interrupted,
// although no event records that yet. But the run may have ended and been released after s was folded and before
// we looked for its process, so the journal is folded once more then.
func (e *Engine) currentRun(ctx context.Context, ref store.Ref, s *task.State, run task.Run) RunInfo {
	info := e.runInfo(ref, s, run)
	if info.State != "interrupted" || info.Outcome != "" || run.ID != s.Run.ID {
		return info
	}
	_ = e.withRuns(ctx, ref, func(s *task.State) {
		now := s.Runs.Find(run.ID)
		if now == nil || now == s.Run && now.Outcome == "" && now.Waiting == "" {
			return // no process worked on it then, and it has no end
		}
		info = e.runInfo(ref, s, *now)
	})
	return info
}

// runInfo is a run of s with its state.
func (e *Engine) runInfo(ref store.Ref, s *task.State, run task.Run) RunInfo {
	info := RunInfo{Run: run, Ref: ref}
	e.mu.Lock()
	here := e.runs[info.ID]
	e.mu.Unlock()
	info.Here = here != nil
	asked := here.openQuestion()
	switch {
	case info.Outcome == "limit", info.Outcome == "denied":
		info.State = "interrupted" // as its task is
	case info.Outcome != "":
		info.State = info.Outcome
	case s.Run.ID != run.ID:
		info.State = "interrupted"
	case run.Waiting != "":
		info.State, info.Question = "waiting", ref.ID+"."+run.Waiting
		if run.ChildQuestion != "" {
			info.Question = run.Waiting + "." + run.ChildQuestion
		}
	case asked != "":
		info.State, info.Question = "waiting", asked
	case here != nil:
		info.State = "running"
	case info.Started == 0:
		info.State, info.Position = "queued", e.scheduler.Position(info.ID)
		info.Here = info.Position > 0
	default:
		info.State = "interrupted"
		if _, held := e.store.Holder(info.Ref); held {
			info.State = "running"
		}
		for _, q := range s.Questions {
			if q.Run == info.ID && q.Kind != agent.KindMistake {
				info.Question = info.Ref.ID + "." + q.Question
			}
		}
		if info.State == "running" && info.Question != "" {
			info.State = "waiting"
		}
	}
	return info
}

// openQuestion is the question that the run, or a subtask below it, has open, as Reply takes it; "" for none.
func (r *Run) openQuestion() string {
	for ; r != nil; r = r.Subtask() {
		r.mu.Lock()
		for q, p := range r.answers {
			if isClosed(p.open) {
				r.mu.Unlock()
				return r.TaskID + "." + q
			}
		}
		r.mu.Unlock()
	}
	return ""
}

// activeStates are the states that AllRuns shows first.
var activeStates = []string{"running", "waiting", "queued"}

// AllRuns are the newest runs of all tasks, one of each task: those that work, wait or are queued first, then in the order
// in which their tasks were last written to. A cursor is a position in that order.
func (e *Engine) AllRuns(ctx context.Context, f RunFilter) (runs []RunInfo, next string, err error) {
	from := 0
	if f.Cursor != "" {
		if from, err = strconv.Atoi(f.Cursor); err != nil || from < 0 {
			return nil, "", fmt.Errorf("cursor %q: want a next_cursor of a list", f.Cursor)
		}
	}
	refs, err := e.tasksInOrder(ctx, f.State)
	if err != nil {
		return nil, "", err
	}
	for i, ref := range refs {
		if i < from {
			continue
		}
		var newest *RunInfo
		if err := e.withRuns(ctx, ref, func(s *task.State) {
			if s.Run != nil {
				newest = new(e.currentRun(ctx, ref, s, *s.Run))
			}
		}); err != nil || newest == nil || f.State != "" && newest.State != f.State {
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			}
			continue // a task that cannot be read must not break the list
		}
		if f.Limit > 0 && len(runs) == f.Limit {
			return runs, strconv.Itoa(i), nil
		}
		runs = append(runs, *newest)
	}
	return runs, "", nil
}

// tasksInOrder are the tasks that may have a run of that state, "" = any, in the order of AllRuns.
func (e *Engine) tasksInOrder(ctx context.Context, state string) ([]store.Ref, error) {
	var out []store.Ref
	seen := map[string]bool{}
	add := func(ref store.Ref) {
		if !seen[ref.Log] {
			seen[ref.Log] = true
			out = append(out, ref)
		}
	}
	statuses := append(slices.Clone(activeStates), "delegated")
	active, err := e.listTasks(ctx, statuses...)
	if err != nil {
		return nil, err
	}
	for _, status := range statuses {
		for _, t := range active {
			if t.Status == status {
				add(t.ref)
			}
		}
	}
	if slices.Contains(activeStates, state) {
		return out, nil
	}
	every, err := e.store.Refs(ctx)
	if err != nil {
		return nil, err
	}
	recent, err := e.store.Recent(ctx, 0, len(every)+1)
	if err != nil {
		return nil, err
	}
	byLog := make(map[string]store.Ref, len(every))
	for _, ref := range every {
		byLog[ref.Log] = ref
	}
	for _, r := range recent {
		if ref, ok := byLog[r.Log]; ok {
			add(ref)
		}
	}
	return out, nil
}

// listed is a task of a list.
type listed struct {
	api.Summary
	ref store.Ref
}

// listTasks are the tasks of those statuses that have a journal. Finding each one by itself would read the folders once
// for each.
func (e *Engine) listTasks(ctx context.Context, statuses ...string) ([]listed, error) {
	got, err := e.store.List(ctx, store.Filter{Statuses: statuses, Logged: true})
	if err != nil || len(got.Items) == 0 {
		return nil, err
	}
	refs, err := e.store.Refs(ctx)
	byKey := make(map[string]store.Ref, len(refs))
	for _, ref := range refs {
		byKey[keyOf(ref)] = ref
	}
	var out []listed
	for _, t := range got.Items {
		if ref, ok := byKey[t.Source+":"+t.ID]; ok { // else it was removed after the list was read
			out = append(out, listed{t, ref})
		}
	}
	return out, err
}

// CancelTask stops the run of a task that works in this process, waits in its queue or waits for an answer. It returns
// when the run has ended: within two seconds, saved, with no process left. A run that ended before stays as it is, and
// is returned.
func (e *Engine) CancelTask(ctx context.Context, ref string) (RunInfo, error) {
	at, err := e.store.FindLatest(ctx, ref)
	if err != nil {
		return RunInfo{}, err
	}
	if info, ok, err := e.cancelRun(ctx, at); ok {
		return info, err
	}
	done, err := e.scheduler.LockTask(ctx, keyOf(at))
	if err != nil {
		return RunInfo{}, err
	}
	defer done()
	if info, ok, err := e.cancelRun(ctx, at); ok { // it began before the lock was free
		return info, err
	}
	e.scheduler.Dequeue(keyOf(at))
	runs, err := e.runsOf(ctx, at)
	if err != nil {
		return RunInfo{}, err
	}
	if len(runs) == 0 {
		return RunInfo{}, fmt.Errorf("task %s: %w", at.ID, ErrNoRun)
	}
	newest := runs[0]
	if newest.Outcome != "" {
		return newest, nil
	}
	err = e.changeIdle(ctx, at, func(t *store.Task) error {
		if run := t.State().Run; run == nil || run.ID != newest.ID || run.Outcome != "" {
			return nil // another process ended it first
		}
		return t.Commit(ctx, task.RunEnded{Run: newest.ID, Outcome: "cancelled", Reason: "cancelled"})
	})
	if err != nil {
		return newest, err
	}
	return e.infoOf(ctx, at, newest.ID)
}

// cancelRun stops the run of a task that works in this process, and the one that follows when the first was at its end
// already; false when there is none.
func (e *Engine) cancelRun(ctx context.Context, ref store.Ref) (RunInfo, bool, error) {
	run := e.working(keyOf(ref))
	if run == nil {
		return RunInfo{}, false, nil
	}
	for {
		run.Cancel()
		if err := run.settle(ctx); err != nil {
			return RunInfo{}, true, err
		}
		if run.after.next == nil || keyOf(run.after.next.task.Ref) != keyOf(run.task.Ref) {
			break
		}
		run = run.after.next // for an input that came at the last moment
	}
	info, err := e.infoOf(ctx, ref, run.ID)
	return info, true, err
}
