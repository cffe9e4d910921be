package service

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/task"
)

// deliveries are the ways in which a message reaches a task.
var deliveries = []string{"auto", "queue", "interrupt"}

// Send sends a message to a task: it answers the open question, waits until the run takes it, or starts a run.
func (s *Service) Send(ctx context.Context, c Call, id string, m api.Message) (api.Sent, error) {
	var w wrongs
	checkWords(m.Text, m.Images, "", &w)
	if m.Delivery != "" && !slices.Contains(deliveries, m.Delivery) {
		w.add("/delivery", "want one of auto, queue, interrupt")
	}
	err := w.err()
	if err == nil {
		err = s.writable()
	}
	if err == nil {
		err = s.mayRestart(ctx, c, id)
	}
	if err != nil {
		return api.Sent{}, err
	}
	sent, err := s.engine.Send(keep(ctx), id, engine.Message{
		ID:       c.Key,
		Text:     m.Text,
		Images:   m.Images,
		Delivery: m.Delivery,
		By:       c.Door,
		Request:  engine.Request{Interactive: true},
	})
	return report.SentOf(sent), err
}

// Queue is the input that a task has not used yet.
func (s *Service) Queue(ctx context.Context, id string) ([]api.Queued, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	all, err := s.engine.Inputs(ctx, id)
	out := make([]api.Queued, len(all))
	for i, q := range all {
		out[i] = s.queued(ctx, id, q)
	}
	return out, err
}

// queued is the document of input that waits. Images that cannot be read are left out of it: doctor reports the damage,
// and the input can still be changed or removed.
func (s *Service) queued(ctx context.Context, id string, q task.InputQueued) api.Queued {
	q, _ = s.engine.LoadInput(ctx, id, q)
	return report.QueuedOf(q)
}

// EditInput replaces the text of input that a task has not used yet.
func (s *Service) EditInput(ctx context.Context, id, input string, p api.InputPatch) (api.Queued, error) {
	var w wrongs
	checkWords(p.Text, nil, "", &w)
	err := w.err()
	if err == nil {
		err = s.writable()
	}
	if err == nil {
		err = s.engine.EditInput(ctx, id, input, &p.Text)
	}
	if err != nil {
		return api.Queued{}, err
	}
	all, err := s.engine.Inputs(ctx, id)
	if err != nil {
		return api.Queued{}, err
	}
	for _, q := range all {
		if q.Input == input {
			return s.queued(ctx, id, q), nil
		}
	}
	return api.Queued{ID: input, Text: p.Text, Images: []string{}}, nil // the run has taken it since
}

// DropInput removes input that a task has not used yet.
func (s *Service) DropInput(ctx context.Context, id, input string) error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.engine.EditInput(ctx, id, input, nil)
}
