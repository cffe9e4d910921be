package service

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
)

// Task is a task that was found. It is a name, and may be copied: the task can change or go at any time.
type Task struct {
	of  *Service
	ref store.Ref
}

// Find finds a task by its id, by the start or end of one that no other task has, or by a source and an id.
func (s *Service) Find(ctx context.Context, given string) (Task, error) {
	ref, err := s.store.Find(ctx, given)
	return Task{s, ref}, err
}

// FindLatest is Find, but a task of another tool that Roost continued in its own root is found there.
func (s *Service) FindLatest(ctx context.Context, given string) (Task, error) {
	ref, err := s.store.FindLatest(ctx, given)
	return Task{s, ref}, err
}

// FindOwn is Find for the id of a task that a run of this root works on: Roost's own task goes before others.
func (s *Service) FindOwn(ctx context.Context, id string) (Task, error) {
	t, err := s.Find(ctx, store.OwnSource+":"+id)
	if errors.Is(err, store.ErrNotFound) { // of another tool, and continued in its place
		return s.Find(ctx, id)
	}
	return t, err
}

// ID is the task's id.
func (t Task) ID() string { return t.ref.ID }

// Name is the task's id with its source: no other task has it.
func (t Task) Name() string { return t.ref.Source + ":" + t.ref.ID }

// Document is a task as lists have it, and the cursor behind its newest commit.
func (t Task) Document(ctx context.Context) (row api.Summary, head events.Cursor, err error) {
	v, err := t.of.store.Read(ctx, t.ref)
	if err != nil {
		return row, head, err
	}
	return v.Summary, events.AfterCommit(v.State.Seq), v.Close()
}

// Expecting is a context in which the task only changes while its newest commit is the one of a cursor. It holds until
// done is called.
func (t Task) Expecting(ctx context.Context, head events.Cursor) (_ context.Context, done func()) {
	return store.Expecting(ctx, t.ref, head.Seq)
}

// ChangedBy reports whether an earlier attempt of a call changed the task.
func (t Task) ChangedBy(ctx context.Context, c Call) bool {
	if !c.Again || c.Key == "" {
		return false
	}
	if _, err := t.of.engine.RunByID(ctx, c.runFor(t.ref.ID)); err == nil {
		return true
	}
	done, err := t.of.store.CommitsBy(ctx, t.ref, c.Key, t.of.since())
	return err == nil && len(done) > 0
}

// since is from when on commits of an earlier attempt of a call are looked for, in Unix milliseconds.
func (s *Service) since() int64 { return s.opt.Now().Add(-keptFor).UnixMilli() }

// Holder is the process that works on a task.
type Holder struct {
	Address string // of its socket; "" = it has none
	Who     string // for people
}

// Holder is another process that works on the task; ok is false when none does. The kernel knows whether it lives.
func (t Task) Holder() (h Holder, ok bool) {
	held, alive := t.of.store.Holder(t.ref)
	if !alive || held.Address == t.of.store.Address() {
		return Holder{}, false
	}
	return Holder{held.Address, held.Who()}, true
}

// HeldHere reports whether this process works on the task.
func (t Task) HeldHere() bool {
	held, alive := t.of.store.Holder(t.ref)
	return alive && held.Address == t.of.store.Address()
}

// Subject is the task that a run or question belongs to; the id of a question begins with its task's.
func (s *Service) Subject(ctx context.Context, run string) (Task, bool) {
	if s.engine == nil {
		return Task{}, false
	}
	info, err := s.engine.RunByID(ctx, run)
	return Task{s, info.Ref}, err == nil
}

// WaitForRelease waits until no run of this process that is about to end holds the task; free is whether it is free
// now.
func (t Task) WaitForRelease(ctx context.Context) (free bool, err error) {
	return t.of.engine.WaitForRelease(ctx, t.Name())
}
