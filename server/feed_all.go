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

const (
	bornEvery = 250 * time.Millisecond // how often is looked whether a task has got a log
	liveEvery = 25 * time.Millisecond  // live events are handed out together: each waking costs every follower
)

// feeds are those that somebody follows.
type feeds struct {
	store *store.Store
	task  func(store.Ref) func(context.Context, *feed) error // fills a task's
	mu    sync.Mutex
	all   map[string]*feed // by the log's folder; "" = of all tasks
	shut  bool
	wait  sync.WaitGroup
}

var errStopping = errors.New("the server is stopping")

// join gives the feed of a task; leave must be called.
func (f *feeds) join(ref store.Ref) (one *feed, leave func(), err error) {
	return f.open(ref.Log, f.task(ref))
}

// open gives a feed, which run fills if it is not there yet; leave must be called.
func (f *feeds) open(key string, run func(context.Context, *feed) error) (*feed, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return nil, nil, errStopping
	}
	one := f.all[key]
	if one != nil && one.over() { // whoever comes now gets a new one
		one = nil
	}
	if one == nil {
		ctx, cancel := context.WithCancel(context.Background())
		one = newFeed(cancel)
		f.all[key] = one
		f.wait.Go(func() { one.end(run(ctx, one)) })
	}
	one.users++
	return one, sync.OnceFunc(func() { f.leave(key, one) }), nil
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

// voices are live events: of runs of this process, and of the one that works on a task.
type voices struct {
	here  <-chan engine.Event // nil without an engine
	there chan engine.Event
	due   *time.Timer // when those who wait are woken
	set   bool

	// held are events of tasks whose log has not been read as far as it went when they
	// were said: to read it takes longer than to hear them.
	held []heldEvent
	read map[string]uint64 // by task, how far its log was read; none = that is not known
}

type heldEvent struct {
	engine.Event
	since time.Time
}

// heldFor is how long an event is held for what came before it, and heldMost how many are.
// Both only bound what is kept when a log cannot be read on: a busy machine may be late.
const (
	heldFor  = 10 * time.Second
	heldMost = 4096
)

func newVoices(here <-chan engine.Event) *voices {
	v := &voices{here: here, there: make(chan engine.Event, 256), due: time.NewTimer(time.Hour), read: map[string]uint64{}}
	v.due.Stop()
	return v
}

// say hands an event to a feed, in its turn, and later wakes whoever waits.
func (v *voices) say(f *feed, e engine.Event) {
	v.hold(e)
	v.pass(f, "", 0)
	if !v.set {
		v.set = true
		v.due.Reset(liveEvery)
	}
}

// wake wakes whoever waits.
func (v *voices) wake(f *feed) {
	v.pass(f, "", 0)
	if v.set = len(v.held) > 0; v.set {
		v.due.Reset(liveEvery)
	}
	f.wake()
}

func (v *voices) hold(e engine.Event) {
	v.held = append(v.held, heldEvent{e, time.Now()})
}

// pass hands on those whose turn it is: what they came behind was handed on. before is a commit
// of a task that is handed on next, 0 = none.
func (v *voices) pass(f *feed, task string, before uint64) {
	var ready []item
	rest, many := v.held[:0], len(v.held)-heldMost
	for i, e := range v.held {
		read, known := v.read[e.Task]
		if i < many || time.Since(e.since) > heldFor || !known || e.Behind <= read || e.Task == task && e.Behind < before {
			ready = append(ready, liveItem(e.Event))
		} else {
			rest = append(rest, e)
		}
	}
	clear(v.held[len(rest):])
	v.held = rest
	f.say(ready...)
}

// durable hands on a commit's events, between what was said before and behind it.
func (v *voices) durable(f *feed, events []engine.Event, items []item) {
	v.drain()
	if len(events) > 0 {
		v.pass(f, events[0].Task, events[0].Seq)
		v.read[events[0].Task] = events[0].Seq
	}
	f.say(items...)
	v.pass(f, "", 0)
	f.wake()
}

// drain takes in what was said up to now: what becomes durable came behind it.
func (v *voices) drain() {
	for {
		select {
		case e, ok := <-v.here:
			if !ok {
				v.here = nil
				continue
			}
			v.hold(e)
		case e := <-v.there:
			v.hold(e)
		default:
			return
		}
	}
}

// followTask fills the feed of a task from its head on, until ctx ends or the log is gone.
// The log may be written by any process.
func (s *Server) followTask(ref store.Ref) func(context.Context, *feed) error {
	return func(ctx context.Context, f *feed) error {
		ctx, cancel := context.WithCancel(ctx)
		var wait sync.WaitGroup
		defer wait.Wait()
		defer cancel()
		var here <-chan engine.Event
		if s.opt.Engine != nil {
			here = s.opt.Engine.Live(ctx, ref.ID)
		}
		v := newVoices(here)
		v.read[ref.ID] = 0 // until it is known from where the log is read, all that is said is held
		wait.Go(func() {
			s.hear(ctx, ref, func(e engine.Event) {
				select {
				case v.there <- e:
				default: // it comes again as a whole message
				}
			})
		})
		starts, commits := make(chan uint64), make(chan []engine.Event)
		ended := make(chan error, 1)
		wait.Go(func() { ended <- s.readTask(ctx, ref, f, starts, commits) })
		for {
			select {
			case seq := <-starts:
				v.read[ref.ID] = seq
				v.wake(f)
			case events := <-commits:
				v.durable(f, events, itemsOf(events))
			case e, ok := <-v.here:
				if !ok {
					v.here = nil
					break
				}
				v.say(f, e)
			case e := <-v.there:
				v.say(f, e)
			case <-v.due.C:
				v.wake(f)
			case err := <-ended:
				return err
			}
		}
	}
}

// readTask reads a task's log from its head on: starts says where that is.
func (s *Server) readTask(ctx context.Context, ref store.Ref, f *feed, starts chan<- uint64, commits chan<- []engine.Event) error {
	after := uint64(math.MaxUint64) // from the head
	for {
		tape, err := engine.OpenTape(ctx, s.opt.Store, ref, after)
		if errors.Is(err, journal.ErrNotFound) {
			// No program with a journal has changed the task yet. All that comes is new.
			f.begin(place{}, "")
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
		f.begin(behind(tape.Seq()), "")
		select {
		case starts <- tape.Seq():
		case <-ctx.Done():
		}
		for events, err := range tape.Follow(ctx) {
			if err != nil {
				return errors.Join(err, tape.Close())
			}
			select {
			case commits <- events:
			case <-ctx.Done():
			}
		}
		return errors.Join(ctx.Err(), tape.Close())
	}
}

func itemsOf(events []engine.Event) []item {
	out := make([]item, len(events))
	for i, e := range events {
		out[i] = itemOf(e, place{seq: e.Seq, index: i}, e.ID)
	}
	return out
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
