package engine

import (
	"context"
	"iter"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
)

// Events yields the durable events of the run's task from the run's first one on, in order and each once, and live
// events as they come, until the run has ended or ctx ends. Events of its subtasks are in the topics of their tasks.
func (r *Run) Events(ctx context.Context) iter.Seq[events.Event] {
	return func(yield func(events.Event) bool) {
		topic, release, err := r.engine.pipe.Task(r.task.Ref)
		if err != nil {
			return
		}
		defer release()
		r.follow(ctx, topic.Subscribe(r.stream.from), r.life.done, func(i events.Item) bool { return yield(i.Event) })
	}
}

// Of is the run of a task among a run and the subtasks that it waits for; nil when that task does not run there.
func (r *Run) Of(taskID string) *Run {
	for ; r != nil; r = r.Subtask() {
		if r.TaskID == taskID {
			return r
		}
	}
	return nil
}

// Purge is PurgeAll of one task.
func (e *Engine) Purge(ctx context.Context, given string) (t api.DeletedTask, err error) {
	err = e.PurgeAll(ctx, []string{given}, func(gone api.DeletedTask) error { t = gone; return nil })
	return t, err
}
