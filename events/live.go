package events

import "time"

const (
	// wakeDelay is how long live events are collected before subscribers are woken: each wake-up costs every
	// subscriber, and a person does not see 25 ms.
	wakeDelay = 25 * time.Millisecond
	// maxHeldTime and maxHeld bound the live events that wait for a commit. They only matter when a journal cannot
	// be read: a busy machine may read it late.
	maxHeldTime = 10 * time.Second
	maxHeld     = 4096
)

// liveOrder puts live events into a ring behind the commits they followed. A live event arrives at once, its commit
// only when the journal was read that far; until then the event is held.
type liveOrder struct {
	ring *ring
	in   chan published
	due  *time.Timer // wakes subscribers
	set  bool        // due runs

	held []heldEvent
	read map[string]uint64 // by task: the newest commit in the ring; no entry means unknown
}

// published is a live event, or with taken a request to close taken once all events before it were taken.
type published struct {
	Event
	taken chan struct{}
}

type heldEvent struct {
	Event
	since time.Time
}

// liveBuffer is how many live events may wait for the topic's goroutine. When it is full, live events are dropped.
const liveBuffer = 1024

func newLiveOrder(r *ring) *liveOrder {
	l := &liveOrder{ring: r, in: make(chan published, liveBuffer), due: time.NewTimer(time.Hour), read: map[string]uint64{}}
	l.due.Stop()
	return l
}

// publish hands over a live event. It never blocks and is safe for concurrent use.
func (l *liveOrder) publish(e Event) {
	select {
	case l.in <- published{Event: e}:
	default: // its text comes again as a whole message
	}
}

// take puts a live event into the ring, or holds it, and wakes subscribers wakeDelay later.
func (l *liveOrder) take(p published) {
	if p.taken != nil {
		close(p.taken)
		return
	}
	l.hold(p.Event)
	l.ring.add(l.release("", 0)...)
	if !l.set {
		l.set = true
		l.due.Reset(wakeDelay)
	}
}

// wake wakes subscribers when due fires.
func (l *liveOrder) wake() {
	l.ring.add(l.release("", 0)...)
	if l.set = len(l.held) > 0; l.set {
		l.due.Reset(wakeDelay)
	}
	l.ring.wake()
}

func (l *liveOrder) hold(e Event) { l.held = append(l.held, heldEvent{e, time.Now()}) }

// release takes out the held events whose commit is in the ring. before is a commit of a task that is added next;
// 0 means none.
func (l *liveOrder) release(task string, before uint64) (ready []Item) {
	rest, overflow := l.held[:0], len(l.held)-maxHeld
	for i, e := range l.held {
		read, known := l.read[e.Task]
		if i < overflow || time.Since(e.since) > maxHeldTime || !known || e.Behind <= read || e.Task == task && e.Behind < before {
			ready = append(ready, newLiveItem(e.Event))
		} else {
			rest = append(rest, e)
		}
	}
	clear(l.held[len(rest):])
	l.held = rest
	return ready
}

// addCommit adds a commit's events, between the live events before and behind it.
func (l *liveOrder) addCommit(events []Event, items []Item) {
	l.drain()
	var all []Item
	if len(events) > 0 {
		all = l.release(events[0].Task, events[0].Seq)
		l.read[events[0].Task] = events[0].Seq
	}
	l.ring.add(append(append(all, items...), l.release("", 0)...)...)
	l.ring.wake()
}

// drain takes the live events that were published before now: a commit that is read now follows them.
func (l *liveOrder) drain() {
	for {
		select {
		case p := <-l.in:
			if p.taken != nil {
				close(p.taken)
			} else {
				l.hold(p.Event)
			}
		default:
			return
		}
	}
}
