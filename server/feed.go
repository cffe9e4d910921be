package server

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"sync"

	"github.com/roost-dev/roost/engine"
)

// A feed is what all who follow one thing share: a task, or all tasks. What happens is
// read, folded and rendered once, however many follow, and each event is bytes that are
// only copied from then on. It keeps the newest of them in memory, up to a bound. A
// follower that is further back, because it asked for the past or reads slowly, reads the
// logs itself until it has caught up. So nobody waits for anybody, and nothing is kept for
// a follower.
//
// Live events (deltas, notices) stand among the durable ones as they came, have no id, and
// are the first that a slow follower does not get.

const (
	feedBytes = 4 << 20 // how much of the newest events a feed keeps
	glanceMax = 256     // events that a follower takes at a time
)

// place is where a durable event stands: in a task's log by commit and index; in that
// of all tasks, by the line of the feed before.
type place struct {
	segment uint64
	offset  int64
	seq     uint64
	index   int
}

// behind is the place behind all of a commit.
func behind(seq uint64) place { return place{seq: seq, index: math.MaxInt} }

// behindLine is the place behind all that a line of the feed made known.
func behindLine(segment uint64, offset int64) place {
	return place{segment, offset, math.MaxUint64, math.MaxInt}
}

func (p place) before(q place) bool {
	switch {
	case p.segment != q.segment:
		return p.segment < q.segment
	case p.offset != q.offset:
		return p.offset < q.offset
	case p.seq != q.seq:
		return p.seq < q.seq
	}
	return p.index < q.index
}

// item is an event as followers get it.
type item struct {
	at   place // of a live one: of the durable one before it
	id   string
	typ  string
	run  string
	text []byte // as it goes over the wire
	live bool
}

// wire adds an event as it goes over the wire. What stands in a log may have been made by
// anybody: no type and no data of it may begin another line.
func wire(b []byte, id, typ string, data []byte) []byte {
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if plain(typ) {
		b = append(append(append(b, "event: "...), typ...), '\n')
	}
	if bytes.ContainsAny(data, "\r\n") {
		var flat bytes.Buffer
		if json.Compact(&flat, data) == nil {
			data = flat.Bytes()
		}
		data = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, data)
	}
	return append(append(append(b, "data: "...), data...), '\n', '\n')
}

func plain(typ string) bool {
	for _, c := range []byte(typ) {
		if c < 'a' || c > 'z' {
			if c != '.' && c != '_' {
				return false
			}
		}
	}
	return typ != ""
}

// itemOf makes an item of a durable event.
func itemOf(e engine.Event, at place, id string) item {
	return item{at: at, id: id, typ: e.Type, run: e.Run, text: wire(make([]byte, 0, len(id)+len(e.Type)+len(e.Data)+24), id, e.Type, e.Data)}
}

// liveItem makes one of an event that is in no log; its place is given by the feed.
func liveItem(e engine.Event) item {
	return item{typ: e.Type, run: e.Run, text: wire(make([]byte, 0, len(e.Type)+len(e.Data)+20), "", e.Type, e.Data), live: true}
}

func (i item) size() int { return len(i.text) + 150 }

type feed struct {
	users  int // of feeds.mu
	cancel func()

	mu     sync.Mutex
	ready  bool
	kept   []item
	first  uint64 // the number of kept[0], from 1
	size   int
	from   place  // kept is all that came behind this place
	newest place  // of what is durable
	id     string // that a client which is there comes back with; "" = there is nothing yet
	ended  error  // why nothing more comes
	change chan struct{}
}

func newFeed(cancel func()) *feed {
	return &feed{cancel: cancel, first: 1, change: make(chan struct{})}
}

func (f *feed) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended != nil
}

// begin says from where on the feed knows what comes.
func (f *feed) begin(head place, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		f.ready, f.from, f.newest, f.id = true, head, head, id
		f.tell()
	}
}

// say takes events in, in order. Nobody is woken: that is done for several at a time, see wake.
func (f *feed) say(items ...item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(items)
}

func (f *feed) put(items []item) {
	for _, one := range items {
		if one.live {
			one.at = f.newest
		} else {
			f.newest, f.id = one.at, one.id
		}
		f.kept = append(f.kept, one)
		f.size += one.size()
	}
	drop := 0
	for f.size > feedBytes && drop < len(f.kept)-1 {
		f.size -= f.kept[drop].size()
		if f.from.before(f.kept[drop].at) {
			f.from = f.kept[drop].at
		}
		drop++
	}
	clear(f.kept[:drop]) // their memory is given back
	f.kept, f.first = f.kept[drop:], f.first+uint64(drop)
}

// pass notes that what comes is behind a place, although no event stands there.
func (f *feed) pass(at place, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest.before(at) {
		f.newest, f.id = at, id
	}
}

func (f *feed) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready, f.ended = true, why
	f.tell()
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell()
}

// changed is closed when there is more.
func (f *feed) changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change
}

// tell wakes everybody. The caller holds mu.
func (f *feed) tell() {
	close(f.change)
	f.change = make(chan struct{})
}

// glance is what a feed has for a follower at one moment.
type glance struct {
	ready  bool
	events []item
	next   uint64 // where it goes on
	more   bool   // there is more than that
	behind bool   // it must read the logs itself
	newest place
	id     string
	ended  error
	change <-chan struct{} // closed when there may be more
}

// look gives what comes behind a place; next is what an earlier look said, 0 the first
// time. The items are added to room.
func (f *feed) look(at place, next uint64, room []item) glance {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := glance{ready: f.ready, newest: f.newest, id: f.id, ended: f.ended, change: f.change, events: room, next: next}
	if !f.ready {
		return g
	}
	if next < f.first { // it never was here, or what it would get next is not kept any more
		if at.before(f.from) {
			g.behind, g.next = true, 0
			return g
		}
		g.next = f.first + uint64(sort.Search(len(f.kept), func(i int) bool {
			one := &f.kept[i]
			return at.before(one.at) || one.live && one.at == at
		}))
	}
	waiting := f.kept[g.next-f.first:]
	late := len(waiting) > glanceMax // what it could see now comes again as whole messages
	waiting = waiting[:min(len(waiting), glanceMax)]
	for _, one := range waiting {
		if !late || !one.live {
			g.events = append(g.events, one)
		}
	}
	g.next, g.more = g.next+uint64(len(waiting)), late
	return g
}
