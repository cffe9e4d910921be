package service

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
)

// RunsOf are the runs of a task, newest first.
func (s *Service) RunsOf(ctx context.Context, id string) ([]api.Run, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	all, err := s.engine.RunsOf(ctx, id)
	return runsOf(all), err
}

func runsOf(all []engine.RunInfo) []api.Run {
	out := make([]api.Run, len(all))
	for i, r := range all {
		out[i] = report.RunOf(r)
	}
	return out
}

// RunFilter narrows a list of runs.
type RunFilter struct {
	State  string // "" = any
	Limit  int
	Cursor string
}

// Runs is a page of the runs of all tasks: those that work or wait first, then newest first.
func (s *Service) Runs(ctx context.Context, f RunFilter) (api.Page[api.Run], error) {
	if err := s.writable(); err != nil {
		return api.Page[api.Run]{}, err
	}
	found, next, err := s.engine.AllRuns(ctx, engine.RunFilter{State: f.State, Limit: f.Limit, Cursor: f.Cursor})
	return api.PageOf(runsOf(found), next), err
}

// Run is a run. Silent is the process that works on it and does not answer, for the document of a run that this process
// does not work on; "" = there is none.
func (s *Service) Run(ctx context.Context, id, silent string) (api.Run, error) {
	if err := s.writable(); err != nil {
		return api.Run{}, err
	}
	info, err := s.engine.RunByID(ctx, id)
	doc := report.RunOf(info)
	if moving(info) && !info.Here {
		doc.Silent = silent
	}
	return doc, err
}

// moving reports whether a run may continue without the user.
func moving(r engine.RunInfo) bool { return slices.Contains([]string{"queued", "running"}, r.State) }

// settledPoll is how often Settled reads a run of whose task no event comes: the run may be in a queue, or its process
// may have died.
const settledPoll = 500 * time.Millisecond

// Settled waits until a run has ended or waits for the user, until patience is over, or until stop is closed. The events
// of the task wake it.
func (s *Service) Settled(ctx context.Context, id string, patience time.Duration, stop <-chan struct{}) (api.Run, error) {
	if err := s.writable(); err != nil {
		return api.Run{}, err
	}
	info, err := s.engine.RunByID(ctx, id)
	if err != nil || !moving(info) {
		return report.RunOf(info), err
	}
	topic, leave, err := s.pipe.Task(info.Ref)
	if err != nil {
		return report.RunOf(info), nil //nolint:nilerr // the pipe is closing: the state that is known is the answer
	}
	defer leave()
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(settledPoll)
	defer tick.Stop()
	for moving(info) {
		change := topic.Changed()
		if info, err = s.engine.RunByID(ctx, id); err != nil || !moving(info) {
			break
		}
		select {
		case <-change:
		case <-tick.C:
		case <-over.C:
			return report.RunOf(info), nil
		case <-stop:
			return report.RunOf(info), nil
		case <-ctx.Done():
			return report.RunOf(info), ctx.Err()
		}
	}
	return report.RunOf(info), err
}

// Cancel stops what works on a task or waits in the queue, saved.
func (s *Service) Cancel(ctx context.Context, id string) (api.Run, error) {
	if err := s.writable(); err != nil {
		return api.Run{}, err
	}
	info, err := s.engine.CancelTask(ctx, id)
	if errors.Is(err, engine.ErrNoRun) {
		return api.Run{}, problem(http.StatusConflict, "run_not_active", "Nothing works on the task",
			"it neither runs nor waits in the queue", "GET /v1/tasks/"+url.PathEscape(id)+"/runs")
	}
	return report.RunOf(info), err
}

// CancelRun stops a run, saved.
func (s *Service) CancelRun(ctx context.Context, c Call, id string) (api.Run, error) {
	if err := s.writable(); err != nil {
		return api.Run{}, err
	}
	info, err := s.engine.RunByID(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	if c.Again && info.State == "cancelled" { // by the first attempt
		return report.RunOf(info), nil
	}
	if !moving(info) && info.State != "waiting" {
		p := problem(http.StatusConflict, "run_not_active", "The run has ended", "it is "+info.State,
			"GET /v1/runs/"+url.PathEscape(info.ID))
		p.Task = info.Ref.ID
		return api.Run{}, p
	}
	done, err := s.engine.CancelTask(ctx, info.Ref.Source+":"+info.Ref.ID)
	return report.RunOf(done), err
}

// RunTask is the task of a run, and the run.
func (s *Service) RunTask(ctx context.Context, run string) (Task, api.Run, error) {
	if err := s.writable(); err != nil {
		return Task{}, api.Run{}, err
	}
	info, err := s.engine.RunByID(ctx, run)
	return Task{s, info.Ref}, report.RunOf(info), err
}

// RunOver reports whether a run has ended, also one that was killed. A run that waits for the user has not.
func (s *Service) RunOver(ctx context.Context, run string) bool {
	if s.engine == nil {
		return false
	}
	info, err := s.engine.RunByID(ctx, run)
	return err == nil && !moving(info) && info.State != "waiting"
}

// EndsRun reports whether an event ends a run.
func EndsRun(run string) func(events.Item) bool {
	return func(i events.Item) bool { return i.Type == "run.ended" && i.Run == run }
}

// SawEnd reports whether a run has ended before or with the event of a cursor.
func (t Task) SawEnd(ctx context.Context, run api.Run, at events.Cursor) (bool, error) {
	if run.EndedAt == nil {
		return false, nil
	}
	more := false
	err := events.ReadJournal(ctx, t.of.store, t.ref, at, func(i events.Item) error {
		more = more || EndsRun(run.ID)(i)
		return nil
	})
	return !more, err
}

// Load counts the runs of this process.
func (s *Service) Load() (running, waiting, queued int) {
	if s.engine == nil {
		return 0, 0, 0
	}
	return s.engine.Load()
}

// Drain makes the service start no more runs; those that work continue, and queued ones stay queued.
func (s *Service) Drain() {
	if s.engine != nil {
		s.engine.Refuse()
	}
}

// Undrain starts runs again, the queued ones first.
func (s *Service) Undrain() {
	if s.engine != nil {
		s.engine.Admit()
	}
}

// Draining reports whether the service starts no more runs.
func (s *Service) Draining() bool { return s.engine != nil && s.engine.Draining() }
