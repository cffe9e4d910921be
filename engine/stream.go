package engine

import (
	"context"
	"iter"
	"sync"
	"time"
)

// liveBacklog is how many live events a slow listener may lag behind before it
// misses some. Durable events are never missed.
const liveBacklog = 4096

// stream is the ordered events of a run. Listeners read at their own pace: a
// stuck one slows nobody.
type stream struct {
	mu      sync.Mutex
	events  []Event // durable, in order
	seq     uint64  // the newest commit in them
	ended   bool
	changed chan struct{} // closed and replaced at each change
	ears    map[chan Event]struct{}
}

func newStream() *stream {
	return &stream{changed: make(chan struct{}), ears: map[chan Event]struct{}{}}
}

func (s *stream) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) add(seq uint64, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.seq = append(s.events, events...), seq
	s.signal()
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.signal()
}

// live offers an event to those who listen now.
func (s *stream) live(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ears) == 0 && e.Type == "notice" {
		// Nobody listens yet: a notice is worth keeping for whoever comes.
		s.events = append(s.events, e)
		return
	}
	for ear := range s.ears {
		select {
		case ear <- e:
		default: // deltas come again as a whole message
		}
	}
}

// waitFor waits until the stream has a commit, for as long as it is given.
func (s *stream) waitFor(seq uint64, limit time.Duration) {
	deadline := time.After(limit)
	for {
		s.mu.Lock()
		have, changed := s.seq >= seq, s.changed
		s.mu.Unlock()
		if have {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			return
		}
	}
}

func (s *stream) follow(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ear := make(chan Event, liveBacklog)
		s.mu.Lock()
		s.ears[ear] = struct{}{}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.ears, ear)
			s.mu.Unlock()
		}()
		next := 0
		for {
			s.mu.Lock()
			durable, ended, changed := s.events[next:], s.ended, s.changed
			heard := drain(ear)
			s.mu.Unlock()
			next += len(durable)
			// What was said before a commit was durable comes before it.
			for _, e := range heard {
				if !yield(e) {
					return
				}
			}
			for _, e := range durable {
				if !yield(e) {
					return
				}
			}
			if ended {
				return
			}
			if len(durable) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case e := <-ear:
				if !yield(e) {
					return
				}
			}
		}
	}
}

// drain takes what an ear holds. The stream's lock is held, so nothing is added
// meanwhile.
func drain(ear chan Event) []Event {
	var out []Event
	for {
		select {
		case e := <-ear:
			out = append(out, e)
		default:
			return out
		}
	}
}
