package events

import "context"

// Subscriber reads a topic from a cursor on, at its own pace. It is for one goroutine.
type Subscriber struct {
	topic  *Topic
	after  Cursor // all events up to here were given
	next   uint64 // the number of the next item in the ring; 0 = not in the ring yet
	room   []Item
	change <-chan struct{}
}

// Subscribe begins to read behind a cursor.
func (t *Topic) Subscribe(after Cursor) *Subscriber {
	return &Subscriber{topic: t, after: after, change: t.ring.changed()}
}

// Cursor is the cursor behind the newest durable event that was given.
func (s *Subscriber) Cursor() Cursor { return s.after }

// Skip continues behind another cursor.
func (s *Subscriber) Skip(to Cursor) { s.after, s.next = to, 0 }

// Changed is closed when Read may have more to give.
func (s *Subscriber) Changed() <-chan struct{} { return s.change }

// Read passes to give what the topic has now after the cursor: each durable event once and in order, and the live
// events that the subscriber is in time for. It returns nil when there is no more yet; then wait for Changed. It
// returns the error of give, or why the topic ended: journal.ErrNotFound when the task was removed, ErrClosed when
// the pipe was closed.
func (s *Subscriber) Read(ctx context.Context, give func(Item) error) error {
	for {
		v := s.topic.ring.view(s.after, s.next, s.room[:0])
		s.room, s.next, s.change = v.items, v.next, v.change
		if v.behind {
			if err := s.ReadJournal(ctx, give); err != nil {
				return err
			}
			continue
		}
		for _, one := range v.items {
			if err := s.pass(one, give); err != nil {
				return err
			}
		}
		clear(s.room) // a subscriber that waits holds no events
		if !v.more {
			return v.ended
		}
	}
}

// ReadJournal gives the durable events behind the cursor that the journals have now, past the ring.
func (s *Subscriber) ReadJournal(ctx context.Context, give func(Item) error) error {
	end, err := s.topic.past(ctx, s.after, func(one Item) error { return s.pass(one, give) })
	if err == nil && s.after.Before(end) {
		s.after = end
	}
	return err
}

// pass gives an item that was not given yet.
func (s *Subscriber) pass(one Item, give func(Item) error) error {
	if !one.Live {
		if !s.after.Before(one.Cursor) {
			return nil
		}
		s.after = one.Cursor
	}
	return give(one)
}
