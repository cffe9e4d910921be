// Package service is what Roost does for a caller: one method for each act, from listing tasks to restoring files. A
// method takes ids and documents of package api and returns documents; a caller needs to know no package below. The
// HTTP server calls it for every route, and so does everything that works through a client.
//
// Errors are *api.Problem where the act itself refuses; Problem turns every other error into one.
//
// A Call names a change: a change with the same key has an effect once, also after a kill, because the commits that it
// makes carry the key. A change does not stop when the context of its caller ends; reading does.
//
// A service without an engine only reads.
package service

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// Options are the options of a service.
type Options struct {
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // of failures that no caller sees; nil: no log
	Secrets []redact.Known   // masked in exports for readers, besides what looks like a secret
	Restart Restart          // which tasks calls may restart
}

// Service does what callers ask of one store and its engine. It is safe for concurrent use.
type Service struct {
	store  *store.Store
	engine *engine.Engine // nil: the service only reads
	pipe   *events.Pipe
	opt    Options
}

// New makes a service of a store and the engine that runs its tasks; nil: the service only reads. It starts nothing.
// The caller closes the engine after the service.
func New(st *store.Store, e *engine.Engine, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
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

// ReadOnly is the problem of a call that needs an engine; nil when there is one.
func (s *Service) ReadOnly() *api.Problem {
	if s.engine != nil {
		return nil
	}
	return problem(http.StatusServiceUnavailable, "read_only", "This server only reads",
		"it was started without what works on tasks", "roost serve")
}

// writable is ReadOnly as an error.
func (s *Service) writable() error {
	if p := s.ReadOnly(); p != nil {
		return p
	}
	return nil
}

// Root is the folder of Roost's own tasks.
func (s *Service) Root() string { return s.store.Root() }

// IdempotencySeal signs the records of answered requests with the key of the root; nil when it has none.
func (s *Service) IdempotencySeal() *journal.Seal { return s.store.Seal("idempotency") }

// Problem is the problem of an error about a task.
func (s *Service) Problem(ctx context.Context, err error, id string) *api.Problem {
	return report.ProblemOf(ctx, s.store, err, id)
}

// Call names a change and its caller.
type Call struct {
	Key   string // a UUID; a call with the same key takes effect once. "" = the call has no key
	Again bool   // an earlier attempt of this call may have taken effect
	Door  string // the front door: terminal, cli, api
	// Seen is the task as the caller saw it: a change that finds it otherwise is refused. nil: the caller did not look.
	Seen *api.Summary
}

// acting is a context for a change: it outlives its caller, and commits made in it carry the call's key.
func (c Call) acting(ctx context.Context) context.Context {
	return store.Acting(context.WithoutCancel(ctx), c.Key)
}

// runFor is the id of the run that the call starts for a task; "" without a key. Like every run id it ends in digits of
// the task's id.
func (c Call) runFor(task string) string {
	if c.Key == "" {
		return ""
	}
	const digits = 8
	return c.Key[:len(c.Key)-digits] + hash(task)[:digits]
}

// keptFor is how long a repeated call finds the commits of its earlier attempt.
const keptFor = 48 * time.Hour

func problem(status int, code, title, detail string, suggestions ...string) *api.Problem {
	return api.NewProblem(status, code, title, detail, suggestions...)
}

func keep(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
