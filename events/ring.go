package events

import (
	"sort"
	"sync"
)

const (
	// ringBytes bounds the newest events that a topic keeps in memory, beside one that alone is larger.
	ringBytes = 512 << 10
	// viewItems bounds the items that a subscriber copies at a time, while it holds the ring's lock.
	viewItems = 256
)

// ring holds the newest items of a topic. Subscribers copy them; change wakes the subscribers that wait.
type ring struct {
	mu     sync.Mutex
	ready  bool // the topic has opened its journal: from and newest are known
	items  []Item
	first  uint64 // the number of items[0]; numbers count from 1
	size   int    // bytes of items
	from   Cursor // items are all events behind this cursor
	newest Cursor // of the durable events
	ended  error  // why no more events come
	change chan struct{}
}

func newRing() *ring { return &ring{first: 1, change: make(chan struct{})} }

// start sets the cursor behind which the ring will have all events.
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
			one.Cursor = r.newest
		} else {
			r.newest = one.Cursor
		}
		r.items = append(r.items, one)
		r.size += one.size()
	}
	drop := 0
	for r.size > ringBytes && drop < len(r.items)-1 {
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

// changed is closed when the ring has changed after the call.
func (r *ring) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change
}

func (r *ring) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended != nil
}

// view is what the ring has for a subscriber at one moment.
type view struct {
	ready  bool
	items  []Item
	next   uint64 // the number of the item that follows items
	more   bool   // the ring has more items than these
	behind bool   // the ring has dropped events that the subscriber needs
	newest Cursor
	ended  error
	change <-chan struct{} // closed when the ring has changed since
}

// view gives the items behind a cursor; next is that of the previous view, 0 the first time. The items are appended
// to room.
func (r *ring) view(after Cursor, next uint64, room []Item) view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{ready: r.ready, newest: r.newest, ended: r.ended, change: r.change, items: room, next: next}
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
	for _, one := range waiting {
		if !late || !one.Live {
			v.items = append(v.items, one)
		}
	}
	v.next, v.more = v.next+uint64(len(waiting)), late
	return v
}
