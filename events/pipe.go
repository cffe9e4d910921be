package events

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
)

const (
	// journalPoll is how often a topic checks whether its task has a journal now.
	journalPoll = 250 * time.Millisecond
	// holderPoll is how often a topic checks whether another process works on its task.
	holderPoll = time.Second
	// keptFor is how long a topic stays open after a run of this process that had no subscriber: a run can end before the
	// first one comes, and no journal has the run's notices.
	keptFor = 5 * time.Second
)

// ErrClosed: the pipe was closed.
var ErrClosed = errors.New("the event pipe is closed")

// ErrGone: the task was removed.
var ErrGone = journal.ErrNotFound

// Remote publishes the live events of a task that another process works on, until that process releases the task, ctx ends,
// or the connection breaks. It returns at once if no other process works on the task.
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

// SetRemote sets how topics get live events of other processes. Topics that are already open keep theirs.
func (p *Pipe) SetRemote(r Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remote = r
}

// Topic is the stream of one task, or of all tasks.
type Topic struct {
	pipe      *Pipe
	ring      *ring
	live      *liveOrder
	users     int  // guarded by Pipe.mu
	ownerOnly bool // guarded by Pipe.mu: nobody else has opened the topic since the run began
	cancel    func()
	past      readPast
	remote    Remote                // live events of other processes; nil: none
	ended     chan struct{}         // closed when the topic's goroutine has returned
	owner     atomic.Pointer[Owner] // the run of this process that owns the task; nil: none
}

// readPast passes to give the durable events after a cursor that the journals hold now, and returns the cursor after
// them.
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
	if t != nil && t.ring.view(Cursor{}, 0, nil).ended != nil { // for example, because the task was deleted and made again
		t = nil
	}
	if t == nil {
		ctx, cancel := context.WithCancel(context.Background())
		t = &Topic{pipe: p, ring: newRing(), remote: p.remote, cancel: cancel, ended: make(chan struct{})}
		t.live = newLiveOrder(t.ring)
		follow := prepare(t)
		p.topics[key] = t
		p.wait.Go(func() {
			defer close(t.ended)
			t.ring.end(follow(ctx))
		})
	}
	t.users++
	t.ownerOnly = false
	t.bound()
	return t, sync.OnceFunc(func() { p.release(key, t) }), nil
}

func (p *Pipe) release(key string, t *Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.users--; t.users > 0 {
		t.bound()
		return
	}
	t.cancel()
	if p.topics[key] == t {
		delete(p.topics, key)
	}
}

// bound sets how many bytes the topic keeps for its users. The caller holds Pipe.mu.
func (t *Topic) bound() {
	if t.users == 1 && t.owner.Load() != nil {
		t.ring.bound(unreadBytes)
		return
	}
	t.ring.bound(ringBytes)
}

// Publish passes a live event of a run of this process to the open topics. It never blocks.
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

// Size returns the number of open topics and the bytes that they keep.
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

// Newest waits until the topic is open and returns the cursor after its newest durable event.
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
	case t.live.in <- &published{taken: taken}:
	case <-t.ended:
		return
	}
	select {
	case <-taken:
	case <-t.ended:
	}
}

// followTask fills the ring of a task from the journal's head on, until ctx ends or the journal disappears. Any process may
// write the journal.
func (t *Topic) followTask(ctx context.Context, ref store.Ref) error {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	live := t.live
	live.read[ref.ID] = 0 // hold all live events until the journal's head is known
	if t.remote != nil {
		wait.Go(func() {
			for ctx.Err() == nil { // the process that works on the task may change any number of times
				t.remote(ctx, ref, live.publish)
				sleep.For(ctx, holderPoll)
			}
		})
	}
	heads, commits := make(chan uint64), make(chan []Event)
	ended := make(chan error, 1)
	wait.Go(func() { ended <- t.readTask(ctx, ref, heads, commits) })
	for {
		select {
		case seq := <-heads:
			// This goroutine opens the ring, so that the head is known before a caller that waited for the ring publishes.
			t.ring.start(AfterCommit(seq))
			live.read[ref.ID] = seq
			live.wake()
		case events := <-commits:
			live.addCommit(events, itemsOf(events, feed.Place{}))
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
			// No program that keeps a journal has changed the task yet, so all events will be new.
			if after > 0 {
				after = 0
				select {
				case heads <- 0:
				case <-ctx.Done():
				}
			}
			select {
			case <-ctx.Done():
				return t.stopped(ctx, nil)
			case <-time.After(journalPoll):
				continue
			}
		}
		if err != nil {
			return err
		}
		select {
		case heads <- r.seq:
		case <-ctx.Done():
		}
		for events, err := range r.events(r.log.Follow(ctx, r.seq+1)) { // journal.ErrNotFound: the journal was removed
			if err != nil {
				return errors.Join(t.stopped(ctx, err), r.close())
			}
			select {
			case commits <- events:
			case <-ctx.Done():
			}
		}
		return errors.Join(t.stopped(ctx, nil), r.close())
	}
}

// stopped returns the reason why a topic ends: its context ended, or err.
func (t *Topic) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	t.pipe.mu.Lock()
	defer t.pipe.mu.Unlock()
	if t.pipe.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Owner publishes the events of a task that a run of this process owns. It notes the context of each commit: the run, and
// the content of composed messages. So the topic renders the commit without folding the journal, which would take as much
// memory again as the run's own state.
type Owner struct {
	pipe    *Pipe
	ref     store.Ref
	topic   *Topic
	release func()
	epoch   uint64 // of its ownership

	busy sync.Mutex // held while a commit is made and noted
	mu   sync.Mutex
	seqs map[uint64]Context // contexts of commits that the topic has not read yet
}

// Own opens the topic of a task for its owner of an epoch. The caller must call Release.
func (p *Pipe) Own(ctx context.Context, ref store.Ref, epoch uint64) (*Owner, error) {
	t, release, err := p.Task(ref)
	if err != nil {
		return nil, err
	}
	// The ring starts at the journal's head. Wait for that, so that the ring has all commits of the owner.
	if _, err := t.Newest(ctx); err != nil {
		release()
		return nil, err
	}
	o := &Owner{pipe: p, ref: ref, topic: t, release: release, epoch: epoch, seqs: map[uint64]Context{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.owner.Store(o)
	t.ownerOnly = true
	t.bound()
	return o, nil
}

// Topic returns the task's topic.
func (o *Owner) Topic() *Topic { return o.topic }

// Publish passes a live event to the topics. It never blocks. A nil Owner publishes nothing.
func (o *Owner) Publish(e Event) {
	if o != nil {
		o.pipe.Publish(o.ref, e)
	}
}

// Commit makes a commit and notes its context; ok is false if nothing was committed, or the context is unknown. A commit can
// be durable, and the topic can read it, before commit returns: then the topic waits for the note.
func (o *Owner) Commit(commit func() (seq uint64, c Context, ok bool)) {
	if o == nil {
		commit()
		return
	}
	o.busy.Lock()
	defer o.busy.Unlock()
	seq, c, ok := commit()
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seqs[seq] = c
}

// Release ends the ownership once the topic has taken all live events. The topic stays open for its other users; without
// any, for keptFor.
func (o *Owner) Release() {
	if o == nil {
		return
	}
	o.topic.flush()
	o.topic.owner.CompareAndSwap(o, nil)
	o.pipe.mu.Lock()
	unread := o.topic.ownerOnly
	o.pipe.mu.Unlock()
	if unread {
		time.AfterFunc(keptFor, o.release)
	} else {
		o.release()
	}
}

// context returns the noted context of a commit and forgets it. It waits for a commit that is being made. false: the owner
// has not noted the commit, because the store made it by itself.
func (o *Owner) context(seq uint64) (Context, bool) {
	if c, ok := o.take(seq); ok {
		return c, true
	}
	o.busy.Lock()
	defer o.busy.Unlock()
	return o.take(seq)
}

func (o *Owner) take(seq uint64) (Context, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.seqs[seq]
	delete(o.seqs, seq)
	return c, ok
}

const (
	// sharedReaders and pastReaders bound the journals that are open at a time for the topic of all tasks, and for one
	// subscriber that reads the past.
	sharedReaders = 64
	pastReaders   = 8

	// reportEvery is how often the topic announces commits of owners that were killed before they could announce them, and
	// maxReports how many tasks it announces at a time.
	reportEvery = time.Second
	maxReports  = 64

	// maxRemotes bounds the tasks of other processes whose live events the topic of all tasks follows: each needs a
	// connection. Text of further tasks comes only as whole messages.
	maxRemotes = 32
)

// followAll fills the ring of all tasks until ctx ends.
func (t *Topic) followAll(ctx context.Context) error {
	s := t.pipe.store
	lines, head, err := s.Feed().OpenEnd(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lines.Close() }() // was only read
	wake, every := lines.Changes()
	poll := time.NewTicker(every)
	defer poll.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := &entryReader{store: s, most: sharedReaders}
	defer entries.close()
	t.ring.start(afterLine(head))
	others := &remotes{store: s, listen: t.remote, publish: t.live.publish, open: map[feed.Task]bool{}}
	defer others.wait.Wait()
	defer cancel()
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	gone := map[feed.Task]bool{}
	for {
		for ctx.Err() == nil {
			e, ok, err := lines.Next(ctx)
			if err != nil {
				return t.stopped(ctx, err)
			}
			if !ok {
				break
			}
			err = entries.read(ctx, e, func(events []Event) error {
				t.live.addCommit(events, itemsOf(events, e.At))
				return nil
			})
			if err != nil {
				return t.stopped(ctx, err)
			}
			t.ring.advance(afterLine(e.At))
			if e.End {
				delete(t.live.read, e.Task)
			}
		}
		select {
		case <-wake:
		case <-poll.C:
		case e := <-t.live.in:
			t.live.take(e)
		case <-t.live.due.C:
			t.live.wake()
		case <-report.C:
			// After an error, the next tick tries again.
			if orphans, err := lines.Orphans(ctx); err == nil {
				reportOrphans(ctx, s, orphans, gone)
			}
			if left, err := lines.Left(ctx); err == nil {
				others.follow(ctx, left)
			}
		case <-ctx.Done():
			return t.stopped(ctx, nil)
		}
	}
}

// reportOrphans writes the missing lines of tasks whose owners died: the log may lack their last synced commits. gone are
// the tasks that could not be announced.
func reportOrphans(ctx context.Context, s *store.Store, orphans []feed.Task, gone map[feed.Task]bool) {
	n := 0
	for _, task := range orphans {
		ref, ok := s.LogRef(task.Source, task.ID)
		if !ok || gone[task] {
			continue
		}
		if n++; n > maxReports || ctx.Err() != nil {
			return
		}
		if s.Announce(ctx, ref) != nil {
			gone[task] = true // the task was removed, or the log cannot be written; the next process tries again
		}
	}
}

// remotes follow the live events of tasks that other processes work on. Each task is followed alone: a process that is asked
// for all of its tasks would ask this process for all of its tasks in return.
type remotes struct {
	store   *store.Store
	listen  Remote
	publish func(Event)
	wait    sync.WaitGroup

	mu   sync.Mutex
	open map[feed.Task]bool
}

// follow starts to listen to those of the tasks that another process holds, until that process releases them or ctx ends.
func (r *remotes) follow(ctx context.Context, tasks []feed.Task) {
	if r.listen == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, task := range tasks {
		if r.open[task] || len(r.open) >= maxRemotes || ctx.Err() != nil {
			continue
		}
		ref, ok := r.store.LogRef(task.Source, task.ID)
		if !ok {
			continue
		}
		held, alive := r.store.Holder(ctx, ref)
		if !alive || held.Address == "" || held.Address == r.store.Address() {
			continue
		}
		r.open[task] = true
		r.wait.Go(func() {
			r.listen(ctx, ref, r.publish)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.open, task)
		})
	}
}

// HasLine reports whether the activity log has the line of a cursor. The start always exists.
func (p *Pipe) HasLine(ctx context.Context, c Cursor) (bool, error) {
	if c.IsStart() {
		return true, nil
	}
	lines, err := p.store.Feed().Open(ctx, c.Line)
	if errors.Is(err, feed.ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, lines.Close()
}

// ReadAll passes to give the durable events of all tasks after a cursor that the activity log and the journals hold
// now, and returns the cursor after them. It repeats the events of the cursor's own line.
func ReadAll(ctx context.Context, s *store.Store, after Cursor, give func(Item) error) (end Cursor, err error) {
	end = after
	lines, err := s.Feed().Open(ctx, after.Line)
	if err != nil {
		return end, err
	}
	defer func() { _ = lines.Close() }() // was only read
	entries := &entryReader{store: s, most: pastReaders}
	defer entries.close()
	for {
		e, ok, err := lines.Next(ctx)
		if err != nil || !ok {
			return end, err
		}
		if !after.Before(afterLine(e.At)) {
			continue // the cursor is after all of its events
		}
		err = entries.read(ctx, e, func(events []Event) error {
			for _, one := range itemsOf(events, e.At) {
				if err := give(one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return end, err
		}
		end = afterLine(e.At)
	}
}
