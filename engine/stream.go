package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// liveBacklog is how many live events a slow listener may lag behind before it
// misses some. Durable events are never missed.
const liveBacklog = 4096

// stream is the ordered events of a run. Listeners read at their own pace: a
// stuck one slows nobody.
type stream struct {
	mu     sync.Mutex
	events []Event // durable, in order
	old    backlog // what the older of them hold
	seq    uint64  // the newest commit in them
	ended  bool
	ears   map[*ear]struct{}
	held   []heldDelta // what was said behind a commit that is not durable yet, in order
	air    func(Event) // hears live events too, without lagging behind
	up     *stream     // that of the run which waits for this one: it hears all of this
}

// ear is one listener. Its channel only wakes it: what there is to hear lies in
// the stream and in heard, so that a burst wakes it once.
type ear struct {
	wake  chan struct{} // room for one
	hears bool          // live events, too: else it only waits for durable ones
	heard []liveEvent
}

// liveEvent is a live event, and how many durable ones there were before it.
type liveEvent struct {
	Event
	behind int
}

// newStream makes a stream that may use a private folder for what is long past; "" =
// it stays in memory.
func newStream(dir string) *stream {
	return &stream{ears: map[*ear]struct{}{}, old: backlog{dir: dir}}
}

// listen adds a listener; quit must be called. hears: it takes live events, too.
func (s *stream) listen(hears bool) (e *ear, quit func()) {
	e = &ear{wake: make(chan struct{}, 1), hears: hears}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ears[e] = struct{}{}
	return e, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ears, e)
	}
}

// signal wakes everybody. The caller holds mu.
func (s *stream) signal() {
	for e := range s.ears {
		select {
		case e.wake <- struct{}{}:
		default: // woken already
		}
	}
}

func (s *stream) add(seq uint64, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq = seq
	s.append(events...)
	s.up.hear(events)
	s.letOut(func(d heldDelta) bool { return d.after <= seq })
}

// append adds durable events for everybody who listens now or later. The caller holds mu.
func (s *stream) append(events ...Event) {
	s.events = append(s.events, events...)
	s.old.tidy(s.events, len(events))
	s.signal()
}

// join lets another stream hear this one from now on; nil ends that. A stream is
// locked before the one that hears it, never the other way.
func (s *stream) join(up *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = up
	if up != nil {
		for next := 0; next < len(s.events); {
			events, err := s.old.fill(s.part(next, len(s.events)))
			up.hear(events)
			next += len(events)
			if err != nil {
				up.hear([]Event{unread(s.events[next], err)})
				return
			}
		}
	}
}

// hear takes in what another stream tells.
func (s *stream) hear(events []Event) {
	if s == nil {
		return
	}
	below := slices.Clone(events)
	for i := range below {
		below[i].Depth++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(below...)
	s.up.hear(below)
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letOut(func(heldDelta) bool { return true })
	s.ended = true
	s.signal()
}

// part copies some of the durable events from one on, up to another, and says where
// the data of those lies that were put away. The caller holds mu.
func (s *stream) part(from, to int) ([]Event, []slot) {
	to = min(to, from+backlogBatch)
	slots := s.old.slots[min(from, len(s.old.slots)):min(to, len(s.old.slots))]
	return slices.Clone(s.events[from:to]), slots
}

// unread tells a listener that what comes is lost to it. The log has it.
func unread(e Event, err error) Event {
	var o esjson.Object
	o.String("type", "notice")
	o.String("task_id", e.Task)
	o.String("text", fmt.Sprintf("events cannot be shown any more: %v; the task goes on, and roost show has them", err))
	return Event{Type: "notice", Task: e.Task, Run: e.Run, At: e.At, Depth: e.Depth, Data: o.Bytes()}
}

// live offers an event to those who listen now.
func (s *stream) live(e Event) {
	if s.air != nil && e.Depth == 0 { // a subtask's own stream tells of it
		s.air(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(e)
}

// tell gives a live event to who listens, and to the stream above. The caller holds mu.
func (s *stream) tell(e Event) {
	if s.up != nil {
		up := e
		up.Depth++
		s.up.live(up)
	}
	heard := false
	for ear := range s.ears {
		if !ear.hears {
			continue
		}
		if heard = true; len(ear.heard) < liveBacklog { // deltas come again as a whole message
			ear.heard = append(ear.heard, liveEvent{e, len(s.events)})
		}
	}
	switch {
	case heard:
		s.signal()
	case e.Type == "notice":
		s.append(e) // nobody listens yet: it is worth keeping for whoever comes
	}
}

// keep puts an event that is in no commit behind those that came before it, for
// everybody who listens now or later.
func (s *stream) keep(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(e)
	s.up.hear([]Event{e})
}

// waitFor waits until the stream has a commit, for as long as it is given, or
// until nothing more comes.
func (s *stream) waitFor(seq uint64, limit time.Duration, over <-chan struct{}) {
	e, quit := s.listen(false)
	defer quit()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		have := s.seq >= seq
		s.mu.Unlock()
		if have {
			return
		}
		select {
		case <-e.wake:
		case <-over:
			return
		case <-deadline.C:
			return
		}
	}
}

func (s *stream) follow(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		e, quit := s.listen(true)
		defer quit()
		next := 0
		for ctx.Err() == nil {
			s.mu.Lock()
			durable, ended := len(s.events), s.ended
			said := e.heard
			e.heard = nil
			s.mu.Unlock()
			until := func(n int) bool {
				for next < n {
					s.mu.Lock()
					events, slots := s.part(next, n)
					s.mu.Unlock()
					wanted := events[len(events)-1]
					events, err := s.old.fill(events, slots)
					for _, e := range events {
						if next++; !yield(e) {
							return false
						}
					}
					if err != nil {
						yield(unread(wanted, err))
						return false
					}
				}
				return true
			}
			// What was said before a commit was durable comes before it, and what was said
			// after it comes after: a subtask says nothing before it is told of.
			for _, live := range said {
				if !until(live.behind) || !yield(live.Event) {
					return
				}
			}
			if !until(durable) {
				return
			}
			if ended {
				return
			}
			select {
			case <-ctx.Done():
			case <-e.wake:
			}
		}
	}
}
