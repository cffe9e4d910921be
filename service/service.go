// Package service does what a caller asks of Roost: it has one method for each act, from listing tasks to restoring files.
// A method takes ids and documents of package api and returns documents, so that a caller needs no package below. The HTTP
// server calls it for every route, and therefore so does every client.
//
// An act that refuses a call returns an *api.Problem; the method Problem turns every other error into one.
//
// A Call names a change. Changes with the same key take effect once, also after a kill, because the commits of a change
// carry the key. A change does not stop when the context of its caller ends. Reading stops then, and so do Import and
// Check, which a second call continues.
//
// A service without an engine only reads: callers must not use its methods that change something, or that are about runs,
// questions and checkpoints. The server refuses the routes that need them with ReadOnly.
package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mention/complete"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/reach"
)

// Options are the options of a service.
type Options struct {
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // gets failures that no caller sees; nil: no log
	Place   *config.Place    // where the user's settings are; nil: the service knows and changes none
	Secrets []redact.Known   // masked in exports for readers, besides what looks like a secret
	Restart Restart          // which tasks calls may restart
	Temp    string           // the folder of temporary files, where killed runs may have left output; "" = the system's
	// Servers lists the running servers of the group; nil: there is no group.
	Servers func(context.Context) ([]api.GroupServer, error)
	// Database fails while the database of the tasks does not answer; nil: tasks are in folders.
	Database func(context.Context) error
}

// Service does what callers ask of one store and its engine. It is safe for concurrent use.
type Service struct {
	store  *store.Store
	engine *engine.Engine // nil: the service only reads
	pipe   *events.Pipe
	files  complete.Files
	opt    Options

	writing sync.Mutex                     // one change of the user's settings at a time
	applied string                         // the texts of the settings files that the engine uses; guarded by writing
	known   atomic.Pointer[[]redact.Known] // replaces opt.Secrets once the settings were read again
}

// New makes a service of a store and the engine that runs its tasks; without an engine the service only reads. New starts
// nothing. The caller closes the engine after the service.
func New(st *store.Store, e *engine.Engine, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Restart.MaxAttempts = cmp.Or(o.Restart.MaxAttempts, 3)
	if o.Restart.LoadTimeout <= 0 {
		o.Restart.LoadTimeout = 10 * time.Second
	}
	s := &Service{store: st, engine: e, opt: o}
	if e != nil {
		s.pipe = e.Events()
	} else {
		s.pipe = events.New(st)
	}
	return s
}

// Close ends the topics of a service without an engine; an engine ends its own.
func (s *Service) Close() {
	if s.engine == nil {
		s.pipe.Close()
	}
}

// ReadOnly returns the problem of a call that needs an engine, on a service without one; nil if there is an engine.
func (s *Service) ReadOnly() *api.Problem {
	if s.engine != nil {
		return nil
	}
	return problem(http.StatusServiceUnavailable, "read_only", "This server only reads",
		"it was started for reading alone, so it neither runs nor changes tasks", "roost serve")
}

// Root returns the folder of Roost's own tasks.
func (s *Service) Root() string { return s.store.Root() }

// IdempotencySeal signs the records of answered requests with the key of the root; nil if the root has none.
func (s *Service) IdempotencySeal() *journal.Seal { return s.store.Seal("idempotency") }

// Problem returns the problem of an error about a task.
func (s *Service) Problem(ctx context.Context, err error, id string) *api.Problem {
	if p := settingsProblem(err); p != nil {
		return p
	}
	return report.ProblemOf(ctx, s.store, err, id)
}

// Call names a change and its caller.
type Call struct {
	Key   string // a UUID; a call with the same key takes effect once. "" = the call has no key
	Again bool   // an earlier attempt of this call may have taken effect
	Door  string // the front door: terminal, cli, web, api
	// Seen is the task as the caller saw it: a change of labels is refused if the task has others. nil: the caller did not
	// look.
	Seen *api.Summary
}

// acting returns a context for a change: it outlives its caller, and commits made in it carry the call's key.
func (c Call) acting(ctx context.Context) context.Context {
	return store.Acting(context.WithoutCancel(ctx), c.Key)
}

// runFor returns the id of the run that the call starts for a task; "" without a key. Like every run id, it ends in
// digits of a hash of the task's id.
func (c Call) runFor(task string) string {
	if c.Key == "" {
		return ""
	}
	const digits = 8
	return c.Key[:len(c.Key)-digits] + workspace.HashOf([]byte(task))[:digits]
}

// keptFor is how long a repeated call can find the commits of its earlier attempt.
const keptFor = 48 * time.Hour

var problem = api.NewProblem

func keep(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// Task names a task that was found; the value may be copied. The task itself can change or vanish at any time.
type Task struct {
	of  *Service
	ref store.Ref
}

// Find finds a task by its id, by the start or end of one that no other task has, or by a source and an id.
func (s *Service) Find(ctx context.Context, given string) (Task, error) {
	ref, err := s.store.Find(ctx, given)
	return Task{s, ref}, err
}

// FindLatest is Find, except that it finds another tool's task in Roost's own root if Roost continued the task there.
func (s *Service) FindLatest(ctx context.Context, given string) (Task, error) {
	ref, err := s.store.FindLatest(ctx, given)
	return Task{s, ref}, err
}

// FindOwn is Find for the whole id of a task; of several tasks with the id it finds Roost's own.
func (s *Service) FindOwn(ctx context.Context, id string) (Task, error) {
	t, err := s.Find(ctx, store.OwnSource+":"+id)
	if errors.Is(err, store.ErrNotFound) { // another tool's task, which Roost continues in its place
		return s.Find(ctx, id)
	}
	return t, err
}

// ID returns the task's id.
func (t Task) ID() string { return t.ref.ID }

// Name returns the task's id with its source: no other task has it.
func (t Task) Name() string { return t.ref.Source + ":" + t.ref.ID }

// Document returns a task's row with two additions, its model's context window and why no server takes the task over,
// and the cursor after its newest commit.
func (t Task) Document(ctx context.Context) (row api.Summary, head events.Cursor, err error) {
	v, err := t.of.store.Read(ctx, t.ref)
	if err != nil {
		return row, head, err
	}
	row, err = t.of.documentOf(ctx, v)
	return row, events.AfterCommit(v.State.Seq), errors.Join(err, v.Close())
}

// documentOf returns the document of a task that was read.
func (s *Service) documentOf(ctx context.Context, v *store.View) (api.Summary, error) {
	row := v.Summary
	m, _ := catalogue.Find(row.Provider, row.Model) // rows of lists are kept longer than the catalogue is valid
	row.ContextWindow = int64(m.Context)
	if row.Status != "interrupted" || !v.Ref.InDatabase() {
		return row, nil
	}
	running, err := s.Servers(ctx)
	if err == nil {
		row.Unreached = reach.Unreached(v.State.Settings.Folder, running)
	}
	return row, err
}

// Database fails while the database of the tasks does not answer. It never fails where tasks are in folders.
func (s *Service) Database(ctx context.Context) error {
	if s.opt.Database == nil {
		return nil
	}
	return s.opt.Database(ctx)
}

// Servers returns the running servers of the group; none without a group.
func (s *Service) Servers(ctx context.Context) ([]api.GroupServer, error) {
	if s.opt.Servers == nil {
		return nil, nil
	}
	return s.opt.Servers(ctx)
}

// Elsewhere is for an error that reports a missing workspace. It returns the address of a running server that has the
// workspace, or that may clone it for a run; "" = there is no such server, or the error is another one.
func (s *Service) Elsewhere(ctx context.Context, err error) string {
	lacks, is := errors.AsType[*setup.WorkspaceError](err)
	if !is || lacks.Of == (api.FolderID{}) {
		return ""
	}
	running, err := s.Servers(ctx)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(running, func(g api.GroupServer) bool { return reach.Has(g, lacks.Of) })
	if i < 0 && lacks.Runs {
		i = slices.IndexFunc(running, func(g api.GroupServer) bool { return reach.Clones(g, lacks.Of) })
	}
	if i < 0 {
		return ""
	}
	return running[i].URL
}

// Expecting returns a context in which changes of the task are refused unless its newest commit is the one of a
// cursor. The condition ends with done.
func (t Task) Expecting(ctx context.Context, head events.Cursor) (_ context.Context, done func()) {
	return store.Expecting(ctx, t.ref, head.Seq)
}

// ChangedBy reports whether an earlier attempt of a call changed the task.
func (t Task) ChangedBy(ctx context.Context, c Call) bool {
	if !c.Again || c.Key == "" {
		return false
	}
	if _, err := t.of.engine.RunByID(ctx, c.runFor(t.ref.ID)); err == nil || t.of.engine.Took(ctx, t.ref, c.Key) {
		return true
	}
	done, err := t.of.store.CommitsBy(ctx, t.ref, c.Key, t.of.since())
	return err == nil && len(done) > 0
}

// since returns the oldest time that a commit of an earlier attempt of a call can have, in Unix milliseconds.
func (s *Service) since() int64 { return s.opt.Now().Add(-keptFor).UnixMilli() }

// Holder returns the address of another process that works on the task, "" = it has none, and who that is, for people; ok is
// false if none does. The kernel's lock shows that it lives.
func (t Task) Holder(ctx context.Context) (address, who string, ok bool) {
	held, alive := t.of.store.Holder(ctx, t.ref)
	if !alive || held.Address == t.of.store.Address() {
		return "", "", false
	}
	return held.Address, held.Who(), true
}

// HeldHere reports whether this process works on the task.
func (t Task) HeldHere(ctx context.Context) bool {
	held, alive := t.of.store.Holder(ctx, t.ref)
	return alive && held.Address == t.of.store.Address()
}

// WaitForRelease waits for runs of this process that hold the task and are about to end; free reports whether the task is
// free then.
func (t Task) WaitForRelease(ctx context.Context) (free bool, err error) {
	return t.of.engine.WaitForRelease(ctx, t.Name())
}

// Topic returns the topic of the task's events; release must be called.
func (t Task) Topic() (topic *events.Topic, release func(), err error) { return t.of.pipe.Task(t.ref) }

// Newest returns the cursor of the task's newest event; ok is false when it has none.
func (t Task) Newest(ctx context.Context) (at events.Cursor, ok bool, err error) {
	return events.Newest(ctx, t.of.store, t.ref)
}

// HasEvent reports whether a cursor names an event of the task.
func (t Task) HasEvent(ctx context.Context, at events.Cursor) (bool, error) {
	return events.Exists(ctx, t.of.store, t.ref, at)
}

// AllTopic returns the topic of the events of all tasks; release must be called.
func (s *Service) AllTopic() (topic *events.Topic, release func(), err error) { return s.pipe.All() }

// NewestEvent returns the cursor after the newest event of all tasks. A caller that first takes the cursor, then
// reads tasks, and then follows the events from the cursor misses no change.
func (s *Service) NewestEvent(ctx context.Context) (string, error) {
	topic, release, err := s.AllTopic()
	if err != nil {
		return "", err
	}
	defer release()
	newest, err := topic.Newest(ctx)
	return newest.String(), err
}

// HasLine reports whether a cursor names an event of the topic of all tasks.
func (s *Service) HasLine(ctx context.Context, at events.Cursor) (bool, error) {
	return s.pipe.HasLine(ctx, at)
}

// Topics counts the open topics, and the bytes that they keep.
func (s *Service) Topics() (topics, bytes int) { return s.pipe.Size() }

// FollowHolders sets follow, which brings the live events of another process into a topic:
func (s *Service) FollowHolders(follow func(ctx context.Context, t Task, publish func(events.Event))) {
	s.pipe.SetRemote(func(ctx context.Context, ref store.Ref, publish func(events.Event)) {
		follow(ctx, Task{s, ref}, publish)
	})
}
