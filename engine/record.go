package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/roost-dev/roost/engine/budget"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// recorder is the task as a run's agent has it. With each commit it notes what
// streams show of it and the log does not spell out: the content of composed
// messages, as the owner's state has it at that moment. So the events can be
// rendered later, once they are durable, without folding the log a second time.
type recorder struct {
	*store.Task
	run   *Run
	spend *budget.Spend
}

// Commit is store.Task's, and notes what was committed.
func (r recorder) Commit(ctx context.Context, committed ...task.Event) error {
	for _, e := range committed {
		if q, opened := e.(task.QuestionOpened); opened {
			// Before anybody can see the question: its answer may come at once.
			r.run.await(q.Question)
		}
	}
	r.run.notes.busy.Lock() // a commit may be durable, and shown, before Commit returns
	defer r.run.notes.busy.Unlock()
	before := r.State().Seq
	err := r.Task.Commit(ctx, committed...)
	if s := r.State(); s.Seq > before {
		r.run.notes.put(s.Seq, events.ContextOf(s, committed))
		if slices.ContainsFunc(committed, func(e task.Event) bool { _, words := e.(task.MessageTextSaved); return !words }) {
			r.run.step.Store(s.Seq)
		}
		r.spend.Update(s.Usage.CostMicros)
	}
	return err
}

// Barrier is store.Task's, and says what is saved for others to add up.
func (r recorder) Barrier(ctx context.Context) error {
	spent := r.spend.Spent()
	err := r.Task.Barrier(ctx)
	if err == nil {
		r.spend.SetSaved(spent)
	}
	return err
}

// notes are those of the commits that are not shown yet.
type notes struct {
	busy  sync.Mutex // held from before a commit until its note is put
	mu    sync.Mutex
	bySeq map[uint64]events.Context
}

func (n *notes) put(seq uint64, what events.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bySeq == nil {
		n.bySeq = map[uint64]events.Context{}
	}
	n.bySeq[seq] = what
}

// take gives a commit's note and forgets it. The commit that is being made may be the
// one: then its note is waited for. false: it is a commit that nobody noted.
func (n *notes) take(seq uint64) (events.Context, bool) {
	if what, ok := n.pick(seq); ok {
		return what, true
	}
	n.busy.Lock()
	defer n.busy.Unlock()
	return n.pick(seq)
}

func (n *notes) pick(seq uint64) (events.Context, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	what, ok := n.bySeq[seq]
	delete(n.bySeq, seq)
	return what, ok
}
