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
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/scheduler"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
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
		pipe: events.New(s), runs: map[string]*Run{},
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
