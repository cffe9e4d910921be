package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/workspace"
)

// Options are what an engine needs beside the store.
type Options struct {
	Now    func() int64 // Unix milliseconds; nil = the clock
	Config Config       // without Keys: from the environment
	// MaxRuns is how many runs may work at once; more wait in the queue, which holds at most
	// MaxQueue. Those that wait for a person do not count. 0 = 8 and 1000.
	MaxRuns, MaxQueue int
	// Hold is how long a run waits for a person before it lets its task go, as waiting: of
	// runs that the desk starts. 0 = 10 minutes, negative = until somebody answers.
	Hold time.Duration
	// Confined: every task that runs or is forked works in a folder that can be a project: not
	// a disk, the home folder, Roost's own data, or what holds them.
	Confined bool
	// Observe is told of each durable event of every run of this process, in each run's
	// order, before those who follow the run. It must be quick. nil: nobody.
	Observe func(Event)
}

// Config is what the user has set up outside any task.
type Config struct {
	Provider string // for new tasks
	Model    string
	BaseURLs map[string]string // by provider
	Keys     map[string]string // by provider
	Zone     string            // the user's time zone
	Linter   string            // the command line whose findings @problems stands for; "" = none

	// MaxDayMicros is what all tasks together may cost on one day, in micro-dollars; 0 =
	// no limit. It belongs to the machine and not to a task.
	MaxDayMicros int64
	// Guarded are Roost's own folders and files beside the store's root, absolute. No
	// policy lets a tool write there unasked.
	Guarded []string

	// ModeFiles hold the user's own modes (Roo's custom_modes.yaml), absolute, the first
	// one first; they need not exist. Home is where the user's own rules lie, below .roo;
	// "" = there are none.
	ModeFiles []string
	Home      string
	// Servers are where MCP servers are named. Env is what variables in their definitions
	// stand for; nil = the environment.
	Servers mcp.Files
	Env     func(string) string
	// Settings is the folder of the user's settings, absolute, with the rules of imported
	// modes; "" = there are none.
	Settings string
	// ModeProfiles names the profile that answers in a mode, by slug, where a task was not
	// told whom to ask.
	ModeProfiles map[string]string

	// LateKeys get a provider's key when a task needs it, and not before: it may take time,
	// and ask a person. A key in Keys goes before it.
	LateKeys map[string]func() (string, error)

	// IncludeTools are offered beside the usual tools, ExcludeTools never, and calls of
	// those are refused. Of the machine and not of a task.
	IncludeTools, ExcludeTools []string

	// NoCheckpoints keeps nothing of the files that runs change. The others bound what is
	// kept, in bytes: of one file, of one look at a workspace before a command, and of a
	// workspace's store; 0 = the defaults.
	NoCheckpoints                                     bool
	CheckpointFile, CheckpointSurvey, CheckpointStore int64

	// Defaults fills what a request for a new task leaves open from the user's settings,
	// and says whether the request or the environment names who is asked; nil = there are
	// no settings. It is the one place where settings become a task's, behind every door.
	Defaults func(Request) (filled Request, named bool)

	Profiles       map[string]Profile // by name
	SourceProfiles map[string]string  // by source: the profile, or provider, for tasks whose own profile is unknown
}

// Engine runs tasks. It is safe for concurrent use.
type Engine struct {
	store *store.Store
	opt   Options
	pipe  *events.Pipe

	mu     sync.Mutex
	runs   map[string]*Run
	ending map[string]*Run // runs of which it is not known yet what follows them
	began  bool            // a run has begun
	ledger ledger
	closed bool
	wait   sync.WaitGroup
	desk   desk
}

// ErrClosed: the engine is shutting down and starts nothing more.
var ErrClosed = errors.New("the engine is closed")

// New makes an engine.
func New(s *store.Store, o Options) *Engine {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Config.Keys == nil {
		o.Config = ConfigFromEnv(os.Getenv)
	}
	return &Engine{store: s, opt: o, pipe: events.New(s), runs: map[string]*Run{}}
}

// Events is the pipe with the events of all tasks, and the live events of this engine's runs.
func (e *Engine) Events() *events.Pipe { return e.pipe }

// Start starts or continues a task and returns once its input is durable or the
// reason why not is known. ctx bounds only starting; the run lives on.
func (e *Engine) Start(ctx context.Context, r Request) (*Run, error) {
	if err := e.admits(); err != nil {
		return nil, err
	}
	p, err := e.seat()
	if err != nil {
		return nil, err
	}
	defer p.give()
	return e.start(ctx, r, p)
}

// start is Start for a run that has a place.
func (e *Engine) start(ctx context.Context, r Request, p *place) (*Run, error) {
	if err := e.admits(); err != nil {
		return nil, err
	}
	run, err := e.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	run.place = p
	if err := e.launch(run); err != nil {
		return nil, err
	}
	return run, nil
}

// admit counts a run in, unless the engine was closed while it was prepared: a
// Close that has returned must not find a run after it.
func (e *Engine) admit(run *Run) bool {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	run.place.fill() // with that lock held: it is never counted twice, nor not at all
	e.runs[run.ID] = run
	e.began = true
	e.wait.Add(1)
	return true
}

// prepare checks everything that can be checked before anything is written, then
// takes the task.
func (e *Engine) prepare(ctx context.Context, r Request) (*Run, error) {
	if r.Task == "" {
		return e.prepareNew(ctx, r)
	}
	if _, err := e.Receive(ctx, r); err != nil {
		return nil, err
	}
	ref, err := e.store.Find(ctx, r.Task)
	if err != nil {
		return nil, err
	}
	// Read first: a refusal must leave nothing behind.
	latest := ref
	if fork, ok := e.store.Continued(ref); ok {
		latest = fork
	}
	view, err := e.store.ReadToContinue(ctx, latest)
	if err != nil {
		return nil, err
	}
	if err := nothingSaid(view.State, r); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	has := view.State.Settings
	if queued := view.State.Run; queued.Waits() && queued.ID == r.RunID {
		has = queued.Settings // it was settled when it was queued
	}
	r, told, err := e.sticky(ref, has, e.defaults(has, r))
	var said words
	if err == nil {
		said, err = e.divert(ctx, latest, view, r)
	}
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	was := view.Summary.Model // what the histories say, where the settings say nothing
	r = e.withItsModel(has, was, r)
	settings, err := e.settings(has, r)
	if errors.Is(err, errNoWorkspace) {
		err = noWorkspace(ref.ID, view.Summary.Workspace)
	}
	if err == nil {
		err = e.project(settings.Workspace)
	}
	if err == nil && has.Model == "" && was != "" && settings.Model != was {
		if !e.modelNamed(r) {
			err = &OtherModelError{Task: ref.ID, Was: was, Provider: settings.Provider, Model: settings.Model}
		}
		told = append(told, fmt.Sprintf("model: %s -> %s", was, settings.Model))
	}
	foreign := view.Log == nil
	if err := errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	settings, served := e.byMode(has, settings, r)
	parts, err := e.parts(settings)
	if err == nil {
		err = parts.enter(&settings, r)
	}
	if err != nil {
		return nil, err
	}
	parts.notes = append(parts.notes, served...)
	owned, err := e.store.Own(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := obeyed(ctx, owned.Task); err != nil {
		return nil, err
	}
	finished, err := e.finishRestore(ctx, owned.Task)
	if err != nil {
		return nil, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
	}
	run := e.newRun(owned.Task, settings, parts, r)
	run.words = said
	if finished != "" {
		run.found = append(run.found, finished)
	}
	run.found = append(append(append(run.found, describe(owned, foreign)...), told...), differences(owned.Task.State(), settings, run.agent.Task.Head)...)
	return run, nil
}

// nothingSaid refuses to go on with a task in which nobody has said anything, and nobody does
// now: the program that began it was ended before its first step was saved.
func nothingSaid(s *task.State, r Request) error {
	if r.Text != "" || len(r.Images) > 0 || len(s.UI())+len(s.API())+len(s.Queue)+len(s.Problems) > 0 {
		return nil
	}
	resume := "roost resume " + r.Task
	if s.Settings.Workspace == "" {
		resume += " -C DIR"
	}
	return &ConfigError{
		What: "go on with task " + r.Task,
		Why:  "it holds no message yet: the program that began it was ended before the first one was saved",
		Try:  resume + ` "what to do"  # or start anew with roost run, and remove this one: roost delete ` + r.Task,
	}
}

func (e *Engine) prepareNew(ctx context.Context, r Request) (*Run, error) {
	if r.Text == "" && len(r.Images) == 0 {
		return nil, &ConfigError{What: "start a task", Why: "there is no prompt", Try: `roost run "what to do"`}
	}
	r = e.defaults(task.Settings{}, r)
	settings, parts, err := e.fresh(r)
	if err != nil {
		return nil, err
	}
	owned, err := e.store.Create(ctx, task.Created{
		Task: r.NewTask, Title: r.Title, Origin: originOf(r), Number: 1, CreatedAt: e.opt.Now(), Settings: settings,
	})
	if err != nil {
		return nil, err
	}
	run := e.newRun(owned, settings, parts, r)
	run.words.own = agent.Input{Text: r.Text, Images: r.Images, Yes: r.Yes}
	return run, nil
}

// fresh are the settings of a new task, and what its first run works with.
func (e *Engine) fresh(r Request) (task.Settings, parts, error) {
	settings, err := e.settings(task.Settings{}, r)
	if err == nil {
		err = e.project(settings.Workspace)
	}
	if err != nil {
		return settings, parts{}, err
	}
	settings, served := e.byMode(task.Settings{}, settings, r)
	parts, err := e.parts(settings)
	if err == nil {
		err = parts.enter(&settings, r)
	}
	parts.notes = append(parts.notes, served...)
	return settings, parts, err
}

// parts are what a run works with.
type parts struct {
	provider  providerChoice
	workspace *workspace.Workspace
	model     catalogue.Model
	modes     mode.Set
	notes     []string // what the person should know
}

func (e *Engine) parts(s task.Settings) (parts, error) {
	if !filepath.IsAbs(s.Workspace) { // another machine's: here it would name some folder below the current one
		return parts{}, &ConfigError{
			What: "open the workspace " + s.Workspace, Why: "it is no absolute folder on this machine",
			Try: "name the folder with -C DIR",
		}
	}
	ws, err := workspace.Open(s.Workspace)
	if err != nil {
		return parts{}, &ConfigError{
			What: "open the workspace " + s.Workspace, Why: err.Error(),
			Try: "name the folder with -C DIR",
		}
	}
	ws.Guard(append([]string{e.store.Root()}, e.opt.Config.Guarded...)...)
	choice, err := e.provider(s)
	if err != nil {
		return parts{}, err
	}
	model, _ := catalogue.Find(s.Provider, s.Model)
	modes, notes := Modes(ws.Root(), e.opt.Config)
	return parts{provider: choice, workspace: ws, model: model, modes: modes, notes: notes}, nil
}

func (e *Engine) newRun(t *store.Task, s task.Settings, p parts, r Request) *Run {
	id := r.RunID
	if id == "" {
		id = runID(t.Ref.ID)
	}
	t.By(id)
	below := r // what holds for subtasks
	below.RunID, below.NewTask, below.answer = "", "", nil
	ctx, cancel := context.WithCancelCause(context.Background())
	dir, err := spool.Make("")
	run := &Run{
		ID: id, TaskID: t.Ref.ID, engine: e, task: t, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), accepted: make(chan struct{}), released: make(chan struct{}), hold: r.Hold, stream: newStream(dir), spool: dir, spoolErr: err, interactive: r.Interactive,
		answers: map[string]*hearing{}, limits: s.Limits, active: make(chan struct{}, 1),
		req: r, settled: make(chan struct{}), pumped: make(chan struct{}), budget: e.shared(t, s.Limits, r),
	}
	purse := e.ledger.open(t.State().Usage.CostMicros)
	if run.budget != nil {
		run.budget.purse = purse
	}
	run.found = append(append(append(run.found, p.notes...), e.priceless(s, p, r)...), e.endStrays(t.Ref)...)
	root := p.workspace.Root()
	run.agent = &agent.Agent{
		Task: agent.Task{
			Journal:  recorder{t, run, purse},
			RunID:    id,
			Settings: s,
			Policy:   policy(s),
			Head:     gitHead(root),
		},
		Model: agent.Model{
			Provider: p.provider.llm,
			Entry:    p.model,
		},
		Tools: agent.Tools{
			List:     e.tools(t.Ref.ID),
			Offer:    e.offer(),
			Subtasks: &family{run, below},
			Outputs:  historytool.Beside(t.Ref.Dir),
		},
		User: agent.User{
			Asker:    asker{run},
			Attended: r.Interactive,
			Observer: observer{run},
			Zone:     e.opt.Config.Zone,
			Modes:    &p.modes,
			Setup:    modeSetup{e, root, r},
		},
		Host: agent.Host{
			Now:        e.opt.Now,
			Workspace:  p.workspace,
			Mentions:   e.world(t.Ref, p.workspace, run.mode),
			SpoolDir:   dir,
			Masks:      p.provider.masks,
			Budget:     runBudget{run},
			OtherTasks: otherTasks{e, root, t.Ref.ID},
		},
	}
	if kept := e.checkpoints(t, p.workspace, r); kept != nil {
		run.kept, run.agent.Host.Checkpoints = kept, kept
	}
	run.stream.air = func(live Event) { e.pipe.Publish(t.Ref, live) }
	run.equip(p, t)
	return run
}

// Runs are the ids of the tasks that run in this process.
func (e *Engine) Runs() []*Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*Run, 0, len(e.runs))
	for _, r := range e.runs {
		out = append(out, r)
	}
	return out
}

// Close cancels every run, waits until each is saved, and starts no more.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, r := range e.Runs() {
		if r.parent.Load() == nil { // who waits for a subtask stops it
			r.Cancel()
		}
	}
	done := make(chan struct{})
	go func() { e.wait.Wait(); e.shutDesk(); e.pipe.Close(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the engine: %w", ctx.Err())
	}
}
