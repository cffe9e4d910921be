package server

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

// A feed reads one task's log for all who follow it: a commit is folded and rendered
// once, however many there are. It keeps the newest events in memory, up to a bound. A
// follower that is further back, because it asked for the past or reads slowly, reads
// the log itself until it has caught up. So nobody waits for anybody, and nothing is
// kept for a follower.
//
// The log may be written by any process: the journal wakes its readers when the owner
// lives here, and looks at the file when not.

// feedBytes is how much of the newest events a feed keeps.
const feedBytes = 4 << 20

// bornEvery is how often is looked whether a task has got a log.
const bornEvery = 250 * time.Millisecond

type feed struct {
	users  int // of feeds.mu
	cancel context.CancelFunc

	mu     sync.Mutex
	ready  bool
	kept   [][]engine.Event // of one commit each, in order
	size   int
	from   uint64 // kept is all that came behind this commit
	head   uint64 // the newest commit that is known
	ended  error  // why nothing more comes
	change chan struct{}
}

type feeds struct {
	store *store.Store
	mu    sync.Mutex
	all   map[string]*feed // by the log's folder
	shut  bool
	wait  sync.WaitGroup
}

var errStopping = errors.New("the server is stopping")

// join gives the feed of a task; leave must be called.
func (f *feeds) join(ref store.Ref) (*feed, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return nil, nil, errStopping
	}
	one := f.all[ref.Log]
	if one != nil && one.over() { // whoever comes now gets a new one
		one = nil
	}
	if one == nil {
		ctx, cancel := context.WithCancel(context.Background())
		one = &feed{cancel: cancel, change: make(chan struct{})}
		f.all[ref.Log] = one
		f.wait.Go(func() { one.end(one.run(ctx, f.store, ref)) })
	}
	one.users++
	return one, sync.OnceFunc(func() { f.leave(ref.Log, one) }), nil
}

func (f *feeds) leave(key string, one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.users--; one.users > 0 {
		return
	}
	one.cancel()
	if f.all[key] == one {
		delete(f.all, key)
	}
}

// close ends all feeds and waits for them.
func (f *feeds) close() {
	f.mu.Lock()
	f.shut = true
	for _, one := range f.all {
		one.cancel()
	}
	f.mu.Unlock()
	f.wait.Wait()
}

func (f *feed) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended != nil
}

// run reads the log from its head on until ctx ends or the log is gone.
func (f *feed) run(ctx context.Context, s *store.Store, ref store.Ref) error {
	after := uint64(math.MaxUint64) // from the head
	for {
		tape, err := engine.OpenTape(ctx, s, ref, after)
		if errors.Is(err, journal.ErrNotFound) {
			// No program with a journal has changed the task yet. All that comes is new.
			f.begin(0)
			after = 0
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(bornEvery):
				continue
			}
		}
		if err != nil {
			return err
		}
		f.begin(tape.Seq())
		for events, err := range tape.Follow(ctx) {
			if err != nil {
				return errors.Join(err, tape.Close())
			}
			f.add(events)
		}
		return errors.Join(ctx.Err(), tape.Close())
	}
}

// begin says from where on the feed knows what comes.
func (f *feed) begin(head uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		f.ready, f.from, f.head = true, head, head
		f.tell()
	}
}

func (f *feed) add(events []engine.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept, f.head = append(f.kept, events), events[0].Seq
	f.size += sizeOf(events)
	drop := 0
	for f.size > feedBytes && drop < len(f.kept)-1 {
		f.size -= sizeOf(f.kept[drop])
		f.from = f.kept[drop][0].Seq
		drop++
	}
	if drop > 0 {
		f.kept = append([][]engine.Event(nil), f.kept[drop:]...) // the old ones' memory is given back
	}
	f.tell()
}

func sizeOf(events []engine.Event) (n int) {
	for _, e := range events {
		n += len(e.Data) + 200
	}
	return n
}

func (f *feed) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready, f.ended = true, why
	f.tell()
}

// tell wakes everybody. The caller holds mu.
func (f *feed) tell() {
	close(f.change)
	f.change = make(chan struct{})
}

// glance is what a feed has for a follower at one moment.
type glance struct {
	ready  bool
	events [][]engine.Event // behind its position
	behind bool             // it must read the log itself
	head   uint64
	ended  error
	change <-chan struct{} // closed when there may be more
}

func (f *feed) look(p position) glance {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := glance{ready: f.ready, head: f.head, ended: f.ended, change: f.change}
	if !f.ready {
		return g
	}
	if p.seq < f.from {
		g.behind = true
		return g
	}
	at := len(f.kept)
	for at > 0 && f.kept[at-1][0].Seq > p.seq {
		at--
	}
	g.events = f.kept[at:len(f.kept):len(f.kept)]
	return g
}

// streams counts the streams that are open.
type streams struct {
	mu          sync.Mutex
	total, each int
	now         int
	by          map[string]int
}

// enter takes a place for a client; ok is false when there is none.
func (s *streams) enter(client string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now >= s.total || s.by[client] >= s.each {
		return nil, false
	}
	s.now++
	s.by[client]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		if s.by[client]--; s.by[client] == 0 {
			delete(s.by, client)
		}
	}), true
}
