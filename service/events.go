package service

import (
	"context"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
)

// Topic is the topic of the task's events; release must be called.
func (t Task) Topic() (topic *events.Topic, release func(), err error) { return t.of.pipe.Task(t.ref) }

// Newest is the cursor of the task's newest event; ok is false when it has none.
func (t Task) Newest(ctx context.Context) (at events.Cursor, ok bool, err error) {
	return events.Newest(ctx, t.of.store, t.ref)
}

// HasEvent reports whether a cursor names an event of the task.
func (t Task) HasEvent(ctx context.Context, at events.Cursor) (bool, error) {
	return events.Exists(ctx, t.of.store, t.ref, at)
}

// AllTopic is the topic of the events of all tasks; release must be called.
func (s *Service) AllTopic() (topic *events.Topic, release func(), err error) { return s.pipe.All() }

// HasLine reports whether a cursor names an event of the topic of all tasks.
func (s *Service) HasLine(at events.Cursor) (bool, error) { return s.pipe.HasLine(at) }

// Topics counts the open topics, and the bytes that they keep.
func (s *Service) Topics() (topics, bytes int) { return s.pipe.Size() }

// FollowHolders makes topics of tasks that another process works on publish what follow publishes: the live events of
// that process.
func (s *Service) FollowHolders(follow func(ctx context.Context, t Task, publish func(events.Event))) {
	s.pipe.SetRemote(func(ctx context.Context, ref store.Ref, publish func(events.Event)) {
		follow(ctx, Task{s, ref}, publish)
	})
}
