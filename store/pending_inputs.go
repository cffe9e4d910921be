package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// Why an input cannot be added or changed during a run.
var (
	ErrInputTaken = errors.New("the input is no longer queued") // the model has it, or is about to get it
	ErrLetGo      = errors.New("the task was released")         // by its owner: own the task again
)

// pendingInputs are the commits of other goroutines than the run's. They are in the log at once. The run's goroutine
// folds them into the state when it next commits or calls TakeIn: it reads the state without a lock, so no other
// goroutine may change it.
type pendingInputs struct {
	commits []pendingCommit
	claimed map[string]bool // inputs that the run is using
	closed  bool
}

type pendingCommit struct {
	commit journal.Commit
	events []task.Event
}

// ChangeInput changes the task's queue during a run, from any goroutine: a task.InputQueued adds a user's input or
// replaces the one of the same name, a task.InputTaken removes it. The change is on disk when ChangeInput returns.
// ErrInputTaken: the run has that input already, or it is not queued.
func (t *Task) ChangeInput(ctx context.Context, e task.Event) error {
	var input string
	dropping := false
	switch e := e.(type) {
	case task.InputQueued:
		input = e.Input
	case task.InputTaken:
		input, dropping = e.Input, true
	}
	err := func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		switch queued := t.queued(input); {
		case t.pending.closed:
			return ErrLetGo
		case t.pending.claimed[input], dropping && queued == nil:
			return ErrInputTaken
		}
		c, folded, err := t.append(ctx, []task.Event{e})
		if err != nil {
			return err
		}
		t.pending.commits = append(t.pending.commits, pendingCommit{c, folded})
		return nil
	}()
	if err == nil {
		err = t.log.Barrier(ctx)
	}
	if err != nil {
		return fmt.Errorf("task %s: put input %s into the queue: %w", t.Ref.ID, input, err)
	}
	return nil
}

// queued is an input of the queue, pending changes included; nil when it is not queued. The caller holds mu.
func (t *Task) queued(input string) *task.InputQueued {
	var found *task.InputQueued
	if i := slices.IndexFunc(t.state.Queue, func(q task.InputQueued) bool { return q.Input == input }); i >= 0 {
		q := t.state.Queue[i]
		found = &q
	}
	for _, c := range t.pending.commits {
		for _, e := range c.events {
			switch e := e.(type) {
			case task.InputQueued:
				if e.Input == input {
					found = &e
				}
			case task.InputTaken:
				if e.Input == input {
					found = nil
				}
			}
		}
	}
	return found
}

// Inputs are the queued inputs, pending changes included. Large images stay in their blobs; see LoadInput.
func (t *Task) Inputs() []task.InputQueued {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []task.InputQueued
	seen := map[string]bool{}
	add := func(input string) {
		if q := t.queued(input); q != nil && !seen[input] {
			seen[input] = true
			out = append(out, *q)
		}
	}
	for _, q := range t.state.Queue {
		add(q.Input)
	}
	for _, c := range t.pending.commits {
		for _, e := range c.events {
			if q, ok := e.(task.InputQueued); ok {
				add(q.Input)
			}
		}
	}
	return out
}

// TakeIn folds pending commits into the state. It is for the run's goroutine.
func (t *Task) TakeIn() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.foldPending()
}

// Claim gives a queued input to the run, as it is now, with its images; after that it cannot be changed. false: it was
// removed from the queue. An input whose images cannot be read comes without them (task.InputQueued.Load): a damaged
// image must not hold up the user's text. It is for the run's goroutine.
func (t *Task) Claim(input string) (task.InputQueued, bool) {
	q, ok := t.claim(input)
	if !ok {
		return task.InputQueued{}, false
	}
	if whole, err := t.LoadInput(q); err == nil { // read without the lock
		q = whole
	}
	return q, true
}

func (t *Task) claim(input string) (task.InputQueued, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queued(input)
	if q == nil {
		return task.InputQueued{}, false
	}
	if t.pending.claimed == nil {
		t.pending.claimed = map[string]bool{}
	}
	t.pending.claimed[input] = true
	return *q, true
}

// LoadInput gives a queued input with its images, from any goroutine.
func (t *Task) LoadInput(q task.InputQueued) (task.InputQueued, error) {
	whole, err := q.Load(fold.Payloads(t.log))
	if err != nil {
		return q, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return whole, nil
}

// foldPending folds pending commits into the state. The caller holds mu.
func (t *Task) foldPending() error {
	for len(t.pending.commits) > 0 {
		c := t.pending.commits[0]
		if err := t.state.ApplyOwn(c.commit, c.events); err != nil {
			return fmt.Errorf("task %s: %w", t.Ref.ID, err)
		}
		t.pending.commits = t.pending.commits[1:]
		t.proj.Wake()
	}
	return nil
}

// closePending folds pending commits into the state and refuses further ones.
func (t *Task) closePending() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending.closed = true
	return t.foldPending()
}
