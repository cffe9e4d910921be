package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/service"
)

// A task has one owner at a time. This file serialises the changes of one task in this process. A change also waits for a
// run that has ended but is still writing Roo's files, because a client may change the task as soon as it knows of the
// end. Waiting is by channel, not polling.

// changeWait is how long a change waits for other changes of its task; some of them wait for a model.
const changeWait = 3 * time.Second

// changeGate holds the changes of each task that are under way in this process.
type changeGate struct {
	mu  sync.Mutex
	all map[string]*changing
}

type changing struct {
	users int
	ended chan struct{} // closed when one of them ends, and then another one
}

// enter counts a change of a task; leave must be called.
func (b *changeGate) enter(task string) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[task]
	if one == nil {
		one = &changing{ended: make(chan struct{})}
		b.all[task] = one
	}
	one.users++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(one.ended)
		one.ended = make(chan struct{})
		if one.users--; one.users == 0 {
			delete(b.all, task)
		}
	}
}

// others is closed when another change of the task ends; nil when there is none. The caller's own change is under way,
// too.
func (b *changeGate) others(task string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.all[task]; one != nil && one.users > 1 {
		return one.ended
	}
	return nil
}

// inTurn makes a change of a task, and tries again when the task was only held by a change or run that was about to
// release it. The zero task means that the change is about no task.
func (b *changeGate) inTurn(ctx context.Context, about service.Task, change func() (*reply, error)) (*reply, error) {
	if about == (service.Task{}) {
		return change()
	}
	task := about.Name()
	defer b.enter(task)()
	late := time.NewTimer(changeWait)
	defer late.Stop()
	for looked := false; ; {
		other := b.others(task) // before the try, so that an end during the try is not missed
		out, err := change()
		if err == nil || !busyHere(err) {
			return out, err
		}
		free, failed := about.WaitForRelease(ctx)
		switch {
		case failed != nil:
			return nil, err
		case free && !looked:
			looked = true
			continue
		case other == nil:
			return nil, err
		}
		select {
		case <-other:
			late.Reset(changeWait) // others make progress
		case <-late.C:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// busyHere reports whether an error means that this process holds the task.
func busyHere(err error) bool {
	p := report.BusyProblem(err)
	var own *api.Problem
	return p != nil && p.Code == "task_busy" || errors.As(err, &own) && own.Code == "task_busy"
}
