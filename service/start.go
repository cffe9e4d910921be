package service

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// Follow is a run that a call started, and the event behind which its events begin.
type Follow struct {
	Task string
	Run  string
	From events.Cursor
}

func followOf(t engine.Ticket) Follow { return Follow{t.Ref.ID, t.ID, t.From} }

// Start makes a task. With a message it runs at once, else it only exists and Follow is zero.
func (s *Service) Start(ctx context.Context, c Call, n api.NewTask) (api.Started, Follow, error) {
	r, err := newTask(n, c)
	if err == nil {
		err = s.writable()
	}
	if err != nil {
		return api.Started{}, Follow{}, err
	}
	if r.Text == "" && len(r.Images) == 0 {
		ref, err := s.engine.Create(keep(ctx), r)
		if err != nil {
			return api.Started{}, Follow{}, err
		}
		doc, err := s.started(ctx, ref, nil)
		return doc, Follow{}, err
	}
	t, err := s.engine.Submit(keep(ctx), r)
	if err != nil {
		return api.Started{}, Follow{}, err
	}
	run := report.RunOf(t.RunInfo)
	doc, err := s.started(ctx, t.Ref, &run)
	return doc, followOf(t), err
}

// started is the document of a task that was just made.
func (s *Service) started(ctx context.Context, ref store.Ref, run *api.Run) (out api.Started, err error) {
	v, err := s.store.Read(keep(ctx), ref)
	if err != nil {
		return out, err
	}
	out = api.Started{Summary: v.Summary, Task: ref.ID, Run: run}
	if run != nil {
		out.RunID = run.ID
	}
	return out, v.Close()
}

// Continue starts a run of a task, or continues the run that waits.
func (s *Service) Continue(ctx context.Context, c Call, id string, n api.NewRun) (api.Run, Follow, error) {
	r, err := newRun(id, n)
	if err == nil {
		err = s.writable()
	}
	if err == nil {
		err = s.mayRestart(ctx, c, id)
	}
	if err != nil {
		return api.Run{}, Follow{}, err
	}
	t, err := s.submit(ctx, c, id, r)
	return report.RunOf(t.RunInfo), followOf(t), err
}

// submit starts a run under the id that follows from the call's key, so that it starts once. A run that waits continues
// under its own id: there the message has the call's key, and arrives once.
func (s *Service) submit(ctx context.Context, c Call, id string, r engine.Request) (engine.Ticket, error) {
	if c.Key == "" {
		return s.engine.Submit(keep(ctx), r)
	}
	ref, err := s.store.FindLatest(ctx, id)
	if err != nil {
		return engine.Ticket{}, err
	}
	runs, err := s.engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return engine.Ticket{}, err
	}
	name := c.runFor(ref.ID)
	started := slices.ContainsFunc(runs, func(i engine.RunInfo) bool { return i.ID == name })
	waits := len(runs) > 0 && runs[0].State == "waiting"
	switch words := r.Text != "" || len(r.Images) > 0; {
	case !started && words && (waits || c.Again):
		from, _, err := events.Newest(ctx, s.store, ref)
		if err != nil {
			return engine.Ticket{}, err
		}
		sent, err := s.engine.Send(keep(ctx), ref.Source+":"+ref.ID,
			engine.Message{ID: c.Key, Text: r.Text, Images: r.Images, By: c.Door, Request: r})
		if err != nil {
			return engine.Ticket{}, err
		}
		info, err := s.engine.RunByID(ctx, sent.Run)
		return engine.Ticket{RunInfo: info, From: from}, err
	case started || !waits:
		r.RunID = name
	}
	return s.engine.Submit(keep(ctx), r)
}
