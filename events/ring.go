package events

import (
	"context"
	"errors"
	"sort"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/feed"
)

// Subscriber reads a topic from a cursor on, at its own pace. It is for one goroutine.
type Subscriber struct {
	topic  *Topic
	after  Cursor // the subscriber got all events up to this cursor
	next   uint64 // the number of the next item in the ring; 0 = not in the ring yet
	room   []Item
	change <-chan struct{}
}

// Changed returns a channel that is closed at the topic's next change.
func (t *Topic) Changed() <-chan struct{} {
	t.ring.mu.Lock()
	defer t.ring.mu.Unlock()
	return t.ring.change
}

// Subscribe starts to read after a cursor.
func (t *Topic) Subscribe(after Cursor) *Subscriber {
	return &Subscriber{topic: t, after: after, change: t.Changed()}
}

// Cursor returns the cursor after the newest durable event that the subscriber got.
func (s *Subscriber) Cursor() Cursor { return s.after }

// Skip makes the subscriber continue after another cursor.
func (s *Subscriber) Skip(to Cursor) { s.after, s.next = to, 0 }

// Changed returns a channel that is closed when Read may have more events.
func (s *Subscriber) Changed() <-chan struct{} { return s.change }

// Read passes the topic's present events after the cursor to give: each durable event once and in order, and live events if
// the subscriber is not late. It returns nil once there are no more; then wait for Changed. It returns the error of give, or
// the reason why the topic ended: journal.ErrNotFound if the task was removed, ErrClosed if the pipe was closed.
func (s *Subscriber) Read(ctx context.Context, give func(Item) error) error {
	for {
		v := s.topic.ring.view(s.after, s.next, s.room[:0])
		s.room, s.next, s.change = v.items, v.next, v.change
		if v.behind {
			if err := s.readPast(ctx, v.from, give); err != nil {
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

// ReadJournal passes to give the durable events after the cursor that the journals hold now, without the ring.
func (s *Subscriber) ReadJournal(ctx context.Context, give func(Item) error) error {
	end, err := s.topic.past(ctx, s.after, func(one Item) error { return s.pass(one, give) })
	if err == nil && s.after.Before(end) {
		s.after = end
	}
	return err
}

// errRingHasRest ends the reading of a journal at the point where the ring begins.
var errRingHasRest = errors.New("the ring has the rest")

// readPast passes the durable events before the ring to give. The subscriber reads the others from the ring, because no
// journal has its live events. Only a subscriber from the start of the task reads the whole journal: it asks for the past,
// and gets the same events whether a run has just ended or not.
func (s *Subscriber) readPast(ctx context.Context, ring Cursor, give func(Item) error) error {
	if s.after.IsStart() {
		return s.ReadJournal(ctx, give)
	}
	_, err := s.topic.past(ctx, s.after, func(one Item) error {
		if ring.Before(one.Cursor) {
			return errRingHasRest
		}
		return s.pass(one, give)
	})
	if err != nil && !errors.Is(err, errRingHasRest) {
		return err
	}
	if s.after.Before(ring) {
		s.after = ring
	}
	return nil
}

// pass passes an item to give, unless the subscriber got it before. The text of a live event that precedes the cursor came
// in durable events; a notice is in none.
func (s *Subscriber) pass(one Item, give func(Item) error) error {
	switch {
	case one.Live && one.Type != "notice" && one.Cursor.Before(s.after), !one.Live && !s.after.Before(one.Cursor):
		return nil
	case !one.Live:
		s.after = one.Cursor
	}
	return give(one)
}

const (
	// ringBytes bounds the newest events that a topic keeps in memory. A single larger event is kept, too.
	ringBytes = 512 << 10
	// unreadBytes bounds the kept events while only the task's owner uses the topic: many runs have no subscriber,
	// and a later subscriber reads older events from the journal. Notices, which no journal has, are few and small.
	unreadBytes = 64 << 10
	// viewItems bounds the items that a subscriber copies at a time, while it holds the ring's lock.
	viewItems = 256
)

// ring holds the newest items of a topic. Subscribers copy them; closing change wakes the waiting ones.
type ring struct {
	mu     sync.Mutex
	ready  bool // the topic has opened its journal: from and newest are known
	items  []Item
	first  uint64 // the number of items[0]; numbers count from 1
	size   int    // bytes of items
	most   int    // the bound of size
	from   Cursor // items are all events after this cursor
	newest Cursor // of the durable events
	ended  error  // why the topic ended; nil: it has not
	change chan struct{}
}

func newRing() *ring { return &ring{first: 1, most: ringBytes, change: make(chan struct{})} }

// start sets the cursor after which the ring will have all events.
func (r *ring) start(head Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		r.ready, r.from, r.newest = true, head, head
		r.signal()
	}
}

// add appends items in order. It wakes no subscriber: the topic calls wake for several items at a time.
func (r *ring) add(items ...Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range items {
		if one.Live {
			// Live events follow all events of their commit. A cursor of all tasks stays as it is.
			if one.Cursor = r.newest; one.Cursor.Seq > 0 && one.Cursor.Line == (feed.Place{}) {
				one.Cursor.Index = wholeCommit
			}
		} else {
			r.newest = one.Cursor
		}
		r.items = append(r.items, one)
		r.size += one.size()
	}
	r.trim()
}

// bound sets how many bytes the ring keeps.
func (r *ring) bound(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
	r.trim()
}

// trim drops the oldest items. The caller holds mu.
func (r *ring) trim() {
	drop := 0
	for r.size > r.most && drop < len(r.items)-1 {
		r.size -= r.items[drop].size()
		if r.from.Before(r.items[drop].Cursor) {
			r.from = r.items[drop].Cursor
		}
		drop++
	}
	clear(r.items[:drop]) // release their memory
	r.items, r.first = r.items[drop:], r.first+uint64(drop)
}

// advance moves the newest cursor past commits that have no events.
func (r *ring) advance(c Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest.Before(c) {
		r.newest = c
	}
}

func (r *ring) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.ended = true, why
	r.signal()
}

func (r *ring) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal()
}

// signal wakes all subscribers. The caller holds mu.
func (r *ring) signal() {
	close(r.change)
	r.change = make(chan struct{})
}

// view is the ring's content for a subscriber at one moment.
type view struct {
	ready  bool
	items  []Item
	next   uint64 // the number of the item that follows items
	more   bool   // the ring has more items than these
	behind bool   // the ring has dropped events that the subscriber needs
	from   Cursor // of the ring: items are all events after it
	newest Cursor
	ended  error
	change <-chan struct{} // closed when the ring changes
}

// view returns the items after a cursor, appended to room. next is that of the previous view, or 0 for the first.
func (r *ring) view(after Cursor, next uint64, room []Item) view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{ready: r.ready, from: r.from, newest: r.newest, ended: r.ended, change: r.change, items: room, next: next}
	if !r.ready {
		return v
	}
	if next < r.first { // the first view, or the ring has dropped the next item
		if after.Before(r.from) {
			v.behind, v.next = true, 0
			return v
		}
		v.next = r.first + uint64(sort.Search(len(r.items), func(i int) bool {
			one := &r.items[i]
			return after.Before(one.Cursor) || one.Live && one.Cursor.same(after)
		}))
	}
	waiting := r.items[v.next-r.first:]
	late := len(waiting) > viewItems // a late subscriber gets live text as whole messages instead
	waiting = waiting[:min(len(waiting), viewItems)]
	v.items = append(v.items, api.Some(waiting, func(one Item) (Item, bool) { return one, !late || !one.Live })...)
	v.next, v.more = v.next+uint64(len(waiting)), late
	return v
}

const (
	// wakeDelay is how long the ring collects live events before it wakes subscribers: each wake-up costs time for every
	// subscriber, and a person does not notice 25 ms.
	wakeDelay = 25 * time.Millisecond
	// maxHeldTime and maxHeld bound the live events that wait for a commit. They matter only if a journal cannot be read
	// in time, for example on a busy machine.
	maxHeldTime = 10 * time.Second
	maxHeld     = 4096
)

// liveOrder puts live events into a ring after the commits that they followed. A live event arrives at once, but its commit
// only when the journal was read that far; until then liveOrder holds the event.
type liveOrder struct {
	ring *ring
	in   chan *published // of pointers, because each topic allocates the whole channel
	due  *time.Timer     // wakes subscribers
	set  bool            // due is running

	held []heldEvent
	read map[string]uint64 // by task: the newest commit in the ring; no entry means unknown
}

// published is a live event, or, with taken, a request to close taken once all earlier events were taken.
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
	l := &liveOrder{ring: r, in: make(chan *published, liveBuffer), due: time.NewTimer(time.Hour), read: map[string]uint64{}}
	l.due.Stop()
	return l
}

// publish queues a live event. It never blocks and is safe for concurrent use.
func (l *liveOrder) publish(e Event) {
	select {
	case l.in <- &published{Event: e}:
	default: // drop it: its text will come again as a whole message
	}
}

// take puts a live event into the ring, or holds it, and wakes subscribers wakeDelay later.
func (l *liveOrder) take(p *published) {
	l.hold(p)
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

// hold adds a live event to the held ones.
func (l *liveOrder) hold(p *published) {
	if p.taken != nil {
		close(p.taken)
		return
	}
	l.held = append(l.held, heldEvent{p.Event, time.Now()})
}

// release removes and returns the held events whose commit is in the ring. before is a commit of a task that is added next;
// 0 = none.
func (l *liveOrder) release(task string, before uint64) (ready []Item) {
	rest, overflow := l.held[:0], len(l.held)-maxHeld
	for i, e := range l.held {
		read, known := l.read[e.Task]
		if i < overflow || time.Since(e.since) > maxHeldTime || !known || e.Behind <= read || e.Task == task && e.Behind < before {
			ready = append(ready, framed(Item{Event: e.Event, Live: true}))
		} else {
			rest = append(rest, e)
		}
	}
	clear(l.held[len(rest):])
	l.held = rest
	return ready
}

// addCommit adds a commit's events, between the live events before and after it.
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

// drain holds the live events that were published before now: they precede a commit that is read now.
func (l *liveOrder) drain() {
	for {
		select {
		case p := <-l.in:
			l.hold(p)
		default:
			return
		}
	}
}
