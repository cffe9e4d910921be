package events

import (
	"context"
	"sync"

	"github.com/roost-dev/roost/store"
)

// Owner publishes the events of a task that a run of this process owns. It notes with each commit what streams show
// beside the commit's line: the run, and the content of composed messages. So the topic renders the commit without
// folding the journal, which would take as much memory again as the run's own state.
type Owner struct {
	pipe    *Pipe
	ref     store.Ref
	topic   *Topic
	release func()

	busy sync.Mutex // held while a commit is made and noted
	mu   sync.Mutex
	seqs map[uint64]Context // of the commits that the topic has not read yet
}

// Own opens the topic of a task for its owner. The caller must call Release.
func (p *Pipe) Own(ctx context.Context, ref store.Ref) (*Owner, error) {
	t, release, err := p.Task(ref)
	if err != nil {
		return nil, err
	}
	// The ring starts at the journal's head: wait for it, so that the ring has all that the owner commits.
	if _, err := t.Newest(ctx); err != nil {
		release()
		return nil, err
	}
	o := &Owner{pipe: p, ref: ref, topic: t, release: release, seqs: map[uint64]Context{}}
	t.owner.Store(o)
	return o, nil
}

// Topic is the task's topic.
func (o *Owner) Topic() *Topic { return o.topic }

// Publish hands a live event to the topics. It never blocks. A nil Owner publishes nothing.
func (o *Owner) Publish(e Event) {
	if o != nil {
		o.pipe.Publish(o.ref, e)
	}
}

// Commit makes a commit and notes its context; ok is false when nothing was committed. A commit can be durable, and the
// topic can read it, before commit returns: the topic waits for the note then.
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

// Release ends the ownership once the topic has taken all live events. The topic stays open for its other users.
func (o *Owner) Release() {
	if o == nil {
		return
	}
	o.topic.flush()
	o.topic.owner.CompareAndSwap(o, nil)
	o.release()
}

// context gives the context of a commit and forgets it. It waits for the commit that is being made. false: the owner
// has not noted the commit, because the store made it by itself.
func (o *Owner) context(seq uint64) (Context, bool) {
	if o == nil {
		return Context{}, false
	}
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
