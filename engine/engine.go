package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace/reach"
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
	// Contents keeps what files held, for several servers; nil: the root does.
	Contents checkpoints.Shared
	// Reach finds the workspaces that this server of a group has; nil without a group: a workspace is the folder at its path.
	Reach *reach.Server
	// Observe gets each durable event of every run of this process, in the order of its run, before the run's
	// subscribers. It must be quick. It may be nil.
	Observe func(events.Event)
	// Page is the address of the server whose pages show the tasks, for notifications; "" = there is none.
	Page string
	// NotifyFailed gets why a notification failed. It must be quick. It may be nil.
	NotifyFailed func(why string)
	// Begun gets each run that begins in this process, before it works. It must be quick. It may be nil.
	Begun func(*Run)
}

// Engine runs tasks. It is safe for concurrent use.
type Engine struct {
	store       *store.Store
	opt         Options
	resolving   atomic.Pointer[setup.Resolver]
	checkpoints *checkpoints.Service
	pipe        *events.Pipe
	notifier    *notify.Notifier

	mu        sync.Mutex
	runs      map[string]*Run
	ending    map[string]*Run // ended runs whose successor is not known yet
	totals    budget.Totals
	closed    bool
	wait      sync.WaitGroup
	scheduler *scheduler.Scheduler
}

// Defaults of Options.
const (
	defaultMaxRuns  = 8
	defaultMaxQueue = 1000
	defaultHold     = 10 * time.Minute
)

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
	e := &Engine{store: s, opt: o, pipe: events.New(s), runs: map[string]*Run{}, ending: map[string]*Run{}}
	e.Configure(o.Config)
	e.checkpoints = checkpoints.New(s, o.Contents, e.resolver, o.Now)
	e.notifier = e.notifying()
	runs, queue := cmp.Or(max(o.MaxRuns, 0), defaultMaxRuns), cmp.Or(max(o.MaxQueue, 0), defaultMaxQueue)
	e.scheduler = scheduler.New(e.busy, runs, queue)
	return e
}

// notifying makes the notifier, which follows the user's settings.
func (e *Engine) notifying() *notify.Notifier {
	return notify.New(notify.Options{
		Settings: func() notify.Config { return e.resolver().Config.Notify },
		Base:     e.opt.Page,
		Look:     e.lookAt,
		Mask:     e.masked,
		Failed:   e.opt.NotifyFailed,
	})
}

// masked hides the keys of the user's settings in a text.
func (e *Engine) masked(text string) string {
	text, _ = redact.New(e.resolver().Config.KnownKeys()...).String(text)
	return text
}

// lookAt returns the title of a task, and whether a question of it is open.
func (e *Engine) lookAt(ctx context.Context, id, question string) (title string, open bool, err error) {
	ref, err := e.store.Find(ctx, id)
	if err != nil {
		return "", false, err
	}
	t := e.store.SummaryOf(ctx, ref)
	if question == "" {
		return t.Title, false, nil
	}
	asked, err := e.openQuestions(ctx, ref)
	return t.Title, slices.ContainsFunc(asked, func(a Asked) bool { return a.Question == question }), err
}

// Notifications returns what the notifier did so far; nil when the settings ask for none and it did nothing.
func (e *Engine) Notifications() *api.Notifications { return e.notifier.State() }

// Configure replaces the user's configuration. Runs that begin from now on use it; runs that work keep theirs.
func (e *Engine) Configure(c setup.Config) {
	e.resolving.Store(&setup.Resolver{Config: c, Root: e.store.Root(), Confined: e.opt.Confined, Reach: e.opt.Reach})
}

// FindWorkspace is setup.Resolver.FindWorkspace.
func (e *Engine) FindWorkspace(s task.Settings) (string, error) { return e.resolver().FindWorkspace(s) }

func (e *Engine) resolver() setup.Resolver { return *e.resolving.Load() }

// Events returns the pipe with the events of all tasks, and the live events of this engine's runs.
func (e *Engine) Events() *events.Pipe { return e.pipe }

// Runs returns the runs of this process.
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
	go func() { e.wait.Wait(); e.notifier.Close(); e.scheduler.Close(); e.pipe.Close(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the engine: %w", ctx.Err())
	}
}

// busy counts the runs that hold a slot, and those that returned it while they wait for the user.
func (e *Engine) busy() (running, waiting int) {
	for _, r := range e.Runs() {
		switch {
		case r.parent.Load() != nil:
		case r.asking():
			waiting++
		default:
			running++
		}
	}
	return running, waiting
}

// hold returns how long a scheduled run waits for the user before it releases its task; 0 = until an answer comes.
func (e *Engine) hold() time.Duration { return max(cmp.Or(e.opt.Hold, defaultHold), 0) }

// admits returns nil while the engine starts new runs, else why it starts none.
func (e *Engine) admits() error {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case e.Draining():
		return ErrDraining
	}
	return nil
}

// Draining reports whether Drain or Refuse was called, and Admit not since.
func (e *Engine) Draining() bool { return e.scheduler.Refusing() }

// register adds a run to those of this process, unless the engine was closed while the run was prepared: after Close has
// returned there must be no new run.
func (e *Engine) register(run *Run) bool {
	return e.scheduler.Register(run.held.slot, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.closed {
			return false
		}
		e.runs[run.ID] = run
		if e.opt.Begun != nil {
			e.opt.Begun(run)
		}
		e.wait.Add(1)
		return true
	})
}

// working returns the run of this process that works on a task, or that has just ended and may be followed by another
// one: taking the task between the two would take it away from the next run. nil when there is none.
func (e *Engine) working(key string) *Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, runs := range []map[string]*Run{e.runs, e.ending} {
		for _, r := range runs {
			if keyOf(r.task.Ref) == key {
				return r
			}
		}
	}
	return nil
}

// atWork returns the run of this process that works on a task; nil when there is none. It waits for a run that has come to
// its end: such a run takes nothing any more, and another one may follow it.
func (e *Engine) atWork(ctx context.Context, key string) (*Run, error) {
	for {
		run := e.working(key)
		if run == nil || !run.isEnding() {
			return run, nil
		}
		if err := run.settle(ctx); err != nil {
			return nil, err
		}
	}
}

// lockLatest finds a task. The caller alone then starts, queues or answers for it, until unlock is called.
func (e *Engine) lockLatest(ctx context.Context, given string) (ref store.Ref, unlock func(), err error) {
	if ref, err = e.store.FindLatest(ctx, given); err == nil {
		unlock, err = e.scheduler.LockTask(ctx, keyOf(ref))
	}
	return ref, unlock, err
}

// keyOf returns a task's key in the tables of this process, and a reference that Find takes.
func keyOf(ref store.Ref) string { return ref.Source + ":" + ref.ID }

// changeIdle takes a task that no run works on, calls f, which may commit to it, and waits until the commits are on disk.
func (e *Engine) changeIdle(ctx context.Context, ref store.Ref, f func(*store.Task) error) error {
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return err
	}
	t := owned.Task
	err = f(t)
	if err == nil {
		err = t.Barrier(ctx)
	}
	return t.CloseChanged(context.WithoutCancel(ctx), err)
}

// changeWorking calls f with a task that a run of this process works on; false when none does. f is called again when the run
// let go of the task before it took the change: the next run may have begun, for an input that came at the last moment.
func (e *Engine) changeWorking(ctx context.Context, ref store.Ref, f func(*store.Task) error) (works bool, err error) {
	for run := e.working(keyOf(ref)); run != nil; run = e.working(keyOf(ref)) {
		if !run.isEnding() {
			if err := f(run.task); !errors.Is(err, store.ErrLetGo) {
				return true, err
			}
		}
		if err := run.settle(ctx); err != nil {
			return true, err
		}
	}
	return false, nil
}

// isBusy reports whether an act failed because another process holds the task, or another program works on its files.
func isBusy(err error) bool {
	var busy *journal.BusyError
	return errors.As(err, &busy) || errors.Is(err, store.ErrForeignBusy)
}

// Request starts or continues a task. Nil and zero members mean: as the task has it, or the default for a new one.
type Request struct {
	Task   string // reference of an existing task; "" starts a new one
	Text   string
	Images []string // data URLs
	Yes    bool     // continue without a text
	Title  string   // of a new task; "" = derived from its text

	setup.Choice

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
	// Person is the caller; "" without accounts. A new task is theirs. A task that holds another person's orders is
	// received, like one from elsewhere, before it runs for them: nothing in it is obeyed.
	Person string
	// NoApprovals: the caller may not answer a question that wants a yes or no.
	NoApprovals bool

	input     string  // the name of the words; words with a name answer no question
	queued    bool    // the words are in the task's queue already
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
	Same bool          // the request was accepted before, and nothing was done now

	run *Run // nil = Same
}

// Message is what the user sends to a task in any state: a text, images or both.
type Message struct {
	ID       string // a message with the same id is accepted once; "" = a new id
	Text     string
	Images   []string // data URLs
	Delivery string   // auto ("" too), queue, interrupt
	By       string   // the door it came through
	Request  Request  // how a run is started where there is none; Task, Text and Images are those of the message
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
	ID      string   // a reply with the same id gets the same result; "" = it has none
	Choice  int      // from 1; 0 = none
	Text    string   //
	Images  []string // data URLs that come with Text
	Approve *bool
	Always  bool
	Seen    *events.Cursor // the newest event that the user saw; one from before the question is refused
	By      string
	// Request is how the run continues where none works.
	Request Request
}

// Why the engine refuses a request.
var (
	ErrRunning   = errors.New("a run works on the task")                        // in this process; elsewhere: journal.BusyError
	ErrNoRun     = errors.New("no such run")                                    //
	ErrStale     = errors.New("the task changed after the client last read it") // the reply is to a state that the user has not seen
	ErrQueueFull = errors.New("the queue is full")
	ErrDraining  = scheduler.ErrDraining
	ErrInput     = errors.New("no such input waits") // it was used already, or never existed
)

// ErrNoQuestion: the question is not open, or was answered already.
var ErrNoQuestion = errors.New("no such open question")

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

	// Lost are the only tasks that Recover looks at: those of servers that have died. The error names those whose workspace
	// this server lacks. nil: all tasks.
	Lost []store.Ref
}
