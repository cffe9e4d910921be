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

// Why words cannot be changed, or cannot be added, beside a run.
var (
	ErrInputTaken = errors.New("it does not wait any more") // the model has it, or is about to get it
	ErrLetGo      = errors.New("the task was let go")       // by its owner: own it anew
)

// beside is what goroutines beside the run's committed. It is in the log at once, in its
// place, and in the state when the run's goroutine comes to it: that one reads the state
// without a lock, and must not see it change under its hands.
type beside struct {
	commits []committed
	claimed map[string]bool // inputs that the run is using
	shut    bool
}

type committed struct {
	commit journal.Commit
	events []task.Event
}

// Enqueue puts a person's words into the task's queue while its run goes on, from any
// goroutine. They are on disk when it returns. Words of the same name replace those that
// wait; ErrInputTaken: the run has them already.
func (t *Task) Enqueue(ctx context.Context, q task.InputQueued) error {
	return t.putBeside(ctx, q.Input, q)
}

// Unqueue takes words out of the queue, as Enqueue puts them in. ErrInputTaken: they do
// not wait any more.
func (t *Task) Unqueue(ctx context.Context, input string) error {
	return t.putBeside(ctx, input, task.InputTaken{Input: input, Dropped: true})
}

func (t *Task) putBeside(ctx context.Context, input string, e task.Event) error {
	err := func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, dropping := e.(task.InputTaken)
		switch waits := t.waiting(input); {
		case t.beside.shut:
			return ErrLetGo
		case t.beside.claimed[input], dropping && waits == nil:
			return ErrInputTaken
		}
		c, folded, err := t.append(ctx, []task.Event{e})
		if err != nil {
			return err
		}
		t.beside.commits = append(t.beside.commits, committed{c, folded})
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

// waiting gives an input that waits, with what came beside; nil when it does not wait.
// The caller holds mu.
func (t *Task) waiting(input string) *task.InputQueued {
	var found *task.InputQueued
	if i := slices.IndexFunc(t.state.Queue, func(q task.InputQueued) bool { return q.Input == input }); i >= 0 {
		q := t.state.Queue[i]
		found = &q
	}
	for _, c := range t.beside.commits {
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

// Inputs are the words that wait, with those that came beside; large images stay in their
// blobs, see LoadInput.
func (t *Task) Inputs() []task.InputQueued {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []task.InputQueued
	seen := map[string]bool{}
	add := func(input string) {
		if q := t.waiting(input); q != nil && !seen[input] {
			seen[input] = true
			out = append(out, *q)
		}
	}
	for _, q := range t.state.Queue {
		add(q.Input)
	}
	for _, c := range t.beside.commits {
		for _, e := range c.events {
			if q, ok := e.(task.InputQueued); ok {
				add(q.Input)
			}
		}
	}
	return out
}

// TakeIn brings what came beside into the state. It is for the run's goroutine.
func (t *Task) TakeIn() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settle()
}

// Claim gives words that wait to the run, as they are now, with their images; nobody changes
// them after that. false: they were taken back meanwhile. Words whose images cannot be read
// come without them (task.InputQueued.Load): a person's words are not held up by a damaged
// picture. It is for the run's goroutine.
func (t *Task) Claim(input string) (task.InputQueued, bool) {
	q, ok := t.claim(input)
	if !ok {
		return task.InputQueued{}, false
	}
	if whole, err := t.LoadInput(q); err == nil { // reading them holds up nobody
		q = whole
	}
	return q, true
}

func (t *Task) claim(input string) (task.InputQueued, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.waiting(input)
	if q == nil {
		return task.InputQueued{}, false
	}
	if t.beside.claimed == nil {
		t.beside.claimed = map[string]bool{}
	}
	t.beside.claimed[input] = true
	return *q, true
}

// LoadInput gives words of the queue with their images, from any goroutine.
func (t *Task) LoadInput(q task.InputQueued) (task.InputQueued, error) {
	whole, err := q.Load(fold.Payloads(t.log))
	if err != nil {
		return q, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return whole, nil
}

// settle folds what came beside. The caller holds mu.
func (t *Task) settle() error {
	for len(t.beside.commits) > 0 {
		c := t.beside.commits[0]
		if err := t.state.ApplyOwn(c.commit, c.events); err != nil {
			return fmt.Errorf("task %s: %w", t.Ref.ID, err)
		}
		t.beside.commits = t.beside.commits[1:]
		t.proj.wake()
	}
	return nil
}

// shut folds what came beside and lets nothing more come.
func (t *Task) shut() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beside.shut = true
	return t.settle()
}
