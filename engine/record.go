package engine

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

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
	purse *purse
}

// Commit is store.Task's, and notes what was committed.
func (r recorder) Commit(ctx context.Context, events ...task.Event) error {
	for _, e := range events {
		if q, opened := e.(task.QuestionOpened); opened {
			// Before anybody can see the question: its answer may come at once.
			r.run.await(q.Question)
		}
	}
	r.run.notes.busy.Lock() // a commit may be durable, and shown, before Commit returns
	defer r.run.notes.busy.Unlock()
	before := r.State().Seq
	err := r.Task.Commit(ctx, events...)
	if s := r.State(); s.Seq > before {
		r.run.notes.put(s.Seq, noteOf(s, events))
		if slices.ContainsFunc(events, func(e task.Event) bool { _, words := e.(task.MessageTextSaved); return !words }) {
			r.run.step.Store(s.Seq)
		}
		r.purse.see(s.Usage.CostMicros)
	}
	return err
}

// Barrier is store.Task's, and says what is saved for others to add up.
func (r recorder) Barrier(ctx context.Context) error {
	mark := r.purse.mark()
	err := r.Task.Barrier(ctx)
	if err == nil {
		r.purse.settle(mark)
	}
	return err
}

// note is what a stream shows of a commit beside its line in the log.
type note struct {
	run    string // the newest run
	asides []aside
}

// aside is what a stream shows of an event about a message.
type aside struct {
	history task.History
	ts      int64
	content json.RawMessage // nil when the event is about no message, or it is gone
}

// noteOf reads a note off the state right behind the commit of the events.
func noteOf(s *task.State, events []task.Event) note {
	n := note{}
	if s.Run != nil {
		n.run = s.Run.ID
	}
	for i, e := range events {
		var id uint64
		switch e := e.(type) {
		case task.MessageAdded:
			id = e.Message
		case task.MessageChanged:
			id = e.Message
		default:
			continue
		}
		m := s.Message(id)
		if m == nil || m.Missing {
			continue
		}
		if n.asides == nil {
			n.asides = make([]aside, len(events))
		}
		n.asides[i] = aside{history: m.History, ts: m.TS(), content: m.Raw()}
	}
	return n
}

// notes are those of the commits that are not shown yet.
type notes struct {
	busy  sync.Mutex // held from before a commit until its note is put
	mu    sync.Mutex
	bySeq map[uint64]note
}

func (n *notes) put(seq uint64, what note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bySeq == nil {
		n.bySeq = map[uint64]note{}
	}
	n.bySeq[seq] = what
}

// take gives a commit's note and forgets it. The commit that is being made may be the
// one: then its note is waited for. false: it is a commit that nobody noted.
func (n *notes) take(seq uint64) (note, bool) {
	if what, ok := n.pick(seq); ok {
		return what, true
	}
	n.busy.Lock()
	defer n.busy.Unlock()
	return n.pick(seq)
}

func (n *notes) pick(seq uint64) (note, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	what, ok := n.bySeq[seq]
	delete(n.bySeq, seq)
	return what, ok
}
