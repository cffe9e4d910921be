package engine

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/budget"

	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// recorder is the task as the agent of a run sees it. With each commit it notes for the events what the journal's line
// does not spell out.
type recorder struct {
	*store.Task
	run   *Run
	spend *budget.Spend
}

// Commit makes a commit and notes it for the task's topic.
func (r recorder) Commit(ctx context.Context, committed ...task.Event) (err error) {
	for _, e := range committed {
		if q, opened := e.(api.QuestionOpened); opened {
			// Before anybody can see the question: its answer may come at once.
			r.run.await(q.Question)
		}
	}
	r.run.stream.owner.Commit(func() (uint64, events.Context, bool) {
		before := r.State().Seq
		err = r.Task.Commit(ctx, committed...)
		s := r.State()
		return s.Seq, events.ContextOf(s, committed), s.Seq > before
	})
	s := r.State()
	if slices.ContainsFunc(committed, func(e task.Event) bool { _, words := e.(task.MessageTextSaved); return !words }) {
		r.run.stream.lastStep.Store(s.Seq)
	}
	r.run.touch()
	r.spend.Update(s.Usage.CostMicros)
	return err
}

// Barrier is store.Task's. It also reports what is saved, for the budgets of several runs.
func (r recorder) Barrier(ctx context.Context) error {
	spent := r.spend.Spent()
	err := r.Task.Barrier(ctx)
	if err == nil {
		r.spend.SetSaved(spent)
	}
	return err
}
