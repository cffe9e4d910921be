package events

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

const (
	// journalPoll is how often a topic checks whether its task has a journal now.
	journalPoll = 250 * time.Millisecond
	// holderPoll is how often a topic checks whether another process works on its task.
	holderPoll = time.Second
)

// ErrClosed: the pipe was closed.
var ErrClosed = errors.New("the event pipe is closed")

// ErrGone: the task was removed.
var ErrGone = journal.ErrNotFound

// Remote passes on the live events of a task that another process works on, until that process lets the task go, ctx
// ends, or the connection breaks. It returns at once when no other process works on the task.
type Remote func(ctx context.Context, ref store.Ref, publish func(Event))

// Pipe has the topics of one process. It is safe for concurrent use.
type Pipe struct {
	store *store.Store

	mu     sync.Mutex
	remote Remote
	topics map[string]*Topic // by journal folder; allTasks for the topic of all tasks
	closed bool
	wait   sync.WaitGroup
}

// allTasks is the key of the topic of all tasks.
const allTasks = ""

// New makes the pipe of a store.
func New(s *store.Store) *Pipe { return &Pipe{store: s, topics: map[string]*Topic{}} }

// SetRemote sets how topics get live events of other processes. It holds for topics that are opened later.
func (p *Pipe) SetRemote(r Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remote = r
}

// Topic is the stream of one task, or of all tasks.
type Topic struct {
	pipe   *Pipe
	ring   *ring
	live   *liveOrder
	users  int // guarded by Pipe.mu
	cancel func()
	past   readPast
	ended  chan struct{}         // closed when the topic's goroutine has returned
	owner  atomic.Pointer[Owner] // the run of this process that owns the task; nil: none
}

// readPast gives the durable events behind a cursor, as far as the journals go now, and the cursor of that place.
type readPast func(ctx context.Context, after Cursor, give func(Item) error) (Cursor, error)

// Task opens the topic of a task, which need not have a journal yet. The caller must call release.
func (p *Pipe) Task(ref store.Ref) (t *Topic, release func(), err error) {
	return p.open(ref.Log, func(t *Topic) func(context.Context) error {
		t.past = func(ctx context.Context, after Cursor, give func(Item) error) (Cursor, error) {
			return readJournal(ctx, p.store, ref, after, give)
		}
		return func(ctx context.Context) error { return t.followTask(ctx, ref) }
	})
}

// All opens the topic of all tasks. The caller must call release.
func (p *Pipe) All() (t *Topic, release func(), err error) {
	return p.open(allTasks, func(t *Topic) func(context.Context) error {
		t.past = func(ctx context.Context, after Cursor, give func(Item) error) (Cursor, error) {
			return ReadAll(ctx, p.store, after, give)
		}
		return t.followAll
	})
}

func (p *Pipe) open(key string, prepare func(*Topic) func(context.Context) error) (*Topic, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	t := p.topics[key]
	if t != nil && t.ring.hasEnded() { // for example, because the task was deleted and made again
		t = nil
	}
	if t == nil {
		ctx, cancel := context.WithCancel(context.Background())
		t = &Topic{pipe: p, ring: newRing(), cancel: cancel, ended: make(chan struct{})}
		t.live = newLiveOrder(t.ring)
		follow := prepare(t)
		p.topics[key] = t
		p.wait.Go(func() {
			defer close(t.ended)
			t.ring.end(follow(ctx))
		})
	}
	t.users++
	return t, sync.OnceFunc(func() { p.release(key, t) }), nil
}

func (p *Pipe) release(key string, t *Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.users--; t.users > 0 {
		return
	}
	t.cancel()
	if p.topics[key] == t {
		delete(p.topics, key)
	}
}

// Publish hands a live event of a run of this process to the topics that are open. It never blocks.
func (p *Pipe) Publish(ref store.Ref, e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range []string{ref.Log, allTasks} {
		if t := p.topics[key]; t != nil {
			t.live.publish(e)
		}
	}
}

// Close ends all topics and waits for them.
func (p *Pipe) Close() {
	p.mu.Lock()
	p.closed = true
	for _, t := range p.topics {
		t.cancel()
	}
	p.mu.Unlock()
	p.wait.Wait()
}

// Size is the number of open topics and the bytes that they keep.
func (p *Pipe) Size() (topics, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.topics {
		t.ring.mu.Lock()
		bytes += t.ring.size
		t.ring.mu.Unlock()
	}
	return len(p.topics), bytes
}

// Changed is closed when the topic has changed after the call.
func (t *Topic) Changed() <-chan struct{} { return t.ring.changed() }

// Newest waits until the topic is open and gives the cursor behind its newest durable event.
func (t *Topic) Newest(ctx context.Context) (Cursor, error) {
	for {
		v := t.ring.view(Cursor{}, 0, nil)
		if v.ready {
			return v.newest, nil
		}
		select {
		case <-v.change:
		case <-ctx.Done():
			return Cursor{}, ctx.Err()
		}
	}
}

// flush waits until the topic has taken the live events that were published before.
func (t *Topic) flush() {
	taken := make(chan struct{})
	select {
	case t.live.in <- published{taken: taken}:
	case <-t.ended:
		return
	}
	select {
	case <-taken:
	case <-t.ended:
	}
}

// followTask fills the ring of a task from its head on, until ctx ends or the journal disappears. Any process may
// write the journal.
func (t *Topic) followTask(ctx context.Context, ref store.Ref) error {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	live := t.live
	live.read[ref.ID] = 0 // hold all live events until the journal's head is known
	t.pipe.mu.Lock()
	remote := t.pipe.remote
	t.pipe.mu.Unlock()
	if remote != nil {
		wait.Go(func() {
			for ctx.Err() == nil { // the task may change hands any number of times
				remote(ctx, ref, live.publish)
				select {
				case <-ctx.Done():
				case <-time.After(holderPoll):
				}
			}
		})
	}
	heads, commits := make(chan uint64), make(chan []Event)
	ended := make(chan error, 1)
	wait.Go(func() { ended <- t.readTask(ctx, ref, heads, commits) })
	for {
		select {
		case seq := <-heads:
			live.read[ref.ID] = seq
			live.wake()
		case events := <-commits:
			live.addCommit(events, itemsOf(events))
		case e := <-live.in:
			live.take(e)
		case <-live.due.C:
			live.wake()
		case err := <-ended:
			return err
		}
	}
}

// readTask reads a task's journal from its head on and sends the head first.
func (t *Topic) readTask(ctx context.Context, ref store.Ref, heads chan<- uint64, commits chan<- []Event) error {
	after := uint64(math.MaxUint64) // from the head
	for {
		r, err := openReader(ctx, t.pipe.store, ref, after, t.owner.Load)
		if errors.Is(err, journal.ErrNotFound) {
			// No program with a journal has changed the task yet, so all events are new.
			t.ring.start(Cursor{})
			after = 0
			select {
			case <-ctx.Done():
				return t.stopped(ctx)
			case <-time.After(journalPoll):
				continue
			}
		}
		if err != nil {
			return err
		}
		t.ring.start(AfterCommit(r.seq))
		select {
		case heads <- r.seq:
		case <-ctx.Done():
		}
		for events, err := range r.events(r.log.Follow(ctx, r.seq+1)) { // journal.ErrNotFound: the journal has gone
			if err != nil {
				return errors.Join(t.stoppedOr(ctx, err), r.close())
			}
			select {
			case commits <- events:
			case <-ctx.Done():
			}
		}
		return errors.Join(t.stopped(ctx), r.close())
	}
}

// stopped is why a topic whose context ended has no more events.
func (t *Topic) stopped(ctx context.Context) error {
	t.pipe.mu.Lock()
	defer t.pipe.mu.Unlock()
	if t.pipe.closed {
		return ErrClosed
	}
	return ctx.Err()
}

func (t *Topic) stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.stopped(ctx)
	}
	return err
}
