package actions

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// Options choose an action. The zero value is the newest one.
type Options struct {
	Redo   bool   // do again what was undone last
	Only   string // an Action's ID: when it is not the next one, nothing is done
	DryRun bool   // only report which action it would be

	// Next is called with the action before anything is done. It may be nil.
	Next func(api.Action)
	// Saved is called as soon as a change of the histories is durable, before Roo's files are written. It may be nil.
	Saved func(api.Action, api.TaskActions)

	// Ready is called with the task once it is owned, before the action is chosen. It may be nil.
	Ready func(context.Context, *store.Task) error
	// Files undoes or redoes an action that restored files, and commits what it does. When it is nil, such an action
	// fails with ErrFiles.
	Files func(context.Context, *store.Task, task.Action) error
}

// ErrNothing: there is nothing to undo, or to redo.
var ErrNothing = errors.New("there is nothing of the kind")

// ContinuedError: the histories were continued since they were moved, so that undoing the move would remove more. What
// they were before is kept as a branch: a fork can start from it.
type ContinuedError struct {
	Task   string
	Branch string
	Kind   string
	Redo   bool
}

func (e *ContinuedError) Error() string {
	return fmt.Sprintf("the task was continued since its last %s; what it was before is kept as the branch %s", e.Kind, e.Branch)
}

// ConflictError: the next action is not the one that was meant, because something was done since.
type ConflictError struct{ Want, Next string }

func (e *ConflictError) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("%s is not the next action any more: it was undone or redone since", e.Want)
	}
	return fmt.Sprintf("%s was meant, but the next action is %s now", e.Want, e.Next)
}

// Undo takes back what a user did to a task last or, with Redo, does again what was undone last. It returns the action,
// and the task's actions after it.
//
// Its errors wrap ErrNothing, are a *ContinuedError, *ConflictError or *journal.BusyError, wrap trash.ErrTaken (another
// task has the id of the one to restore), or are those of store.Store.Find.
func Undo(ctx context.Context, s *store.Store, given string, o Options) (api.Action, api.TaskActions, error) {
	t, err := find(ctx, s, given)
	if err == nil && t.Task.Pending && !o.DryRun && !t.Trashed {
		// A change of another program comes first: it may be the action that is meant.
		var owned *store.Owned
		if owned, err = s.Own(ctx, t.ref); err == nil {
			if err = owned.Task.Close(ctx); err == nil {
				t, err = find(ctx, s, given)
			}
		}
	}
	if err != nil {
		return api.Action{}, t.TaskActions, err
	}
	a, err := t.next(o)
	if err != nil || o.DryRun {
		return a.describe(), t.TaskActions, err
	}
	if o.Next != nil {
		o.Next(a.describe())
	}
	o.Only = a.id()
	subtasks, err := t.perform(ctx, s, a, o)
	if err != nil {
		return a.describe(), t.TaskActions, fmt.Errorf("task %s: %w", t.ref.ID, err)
	}
	t.folder = "" // it may be elsewhere now
	now, err := Find(ctx, s, t.qualifiedName())
	now.Subtasks = subtasks
	return a.describe(), now, err
}

// perform undoes or redoes an action in the log that holds it.
func (t *taskActions) perform(ctx context.Context, s *store.Store, a loggedAction, o Options) (subtasks []string, err error) {
	checkNext := func() error { return t.checkNext(ctx, s, o) }
	switch {
	case a.Kind == deletion && o.Redo:
		if err = trash.DeleteAgain(ctx, s, t.ref, a.Seq, checkNext); err == nil {
			subtasks, err = trash.DeleteSubtasksAgain(ctx, s, t.ref, a.At)
		}
	case a.Kind == deletion:
		if _, err = trash.RestoreIf(ctx, s, t.qualifiedName(), checkNext); err == nil {
			subtasks, err = trash.RestoreSubtasks(ctx, s, t.ref, a.At)
		}
	case a.inOverlay:
		err = s.ChangeOverlay(ctx, func(_ overlay.Table, add overlay.Append) error {
			if err := checkNext(); err != nil {
				return err
			}
			return add(t.labelEntry(ctx, a, o.Redo))
		})
	default:
		err = t.performInJournal(ctx, s, a, o)
	}
	return subtasks, err
}

// labelEntry is the entry of the overlay that undoes or redoes a change of labels.
func (t *taskActions) labelEntry(ctx context.Context, a loggedAction, redo bool) overlay.Entry {
	e := overlay.Entry{
		Type:   overlay.Changed,
		Source: t.ref.Source,
		ID:     t.ref.ID,
		Head:   store.HeadOf(ctx, t.ref.Log),
		Undoes: a.Seq,
	}
	to := a.Before
	if redo {
		to, e.Undoes, e.Redoes = a.After, 0, a.Seq
	}
	e.Title, e.Tags, e.Pinned = to.Title, to.Tags, to.Pinned
	return e
}

// next is the action that is meant.
func (t *taskActions) next(o Options) (loggedAction, error) {
	list := t.done
	if o.Redo {
		list = t.redo
	}
	a, ok := list.newest()
	switch {
	case o.Only != "" && (!ok || o.Only != a.id()):
		err := &ConflictError{Want: o.Only}
		if ok {
			err.Next = a.id()
		}
		return a, err
	case !ok:
		return a, ErrNothing
	case a.Move && t.moved > a.Then && o.Redo:
		return a, ErrNothing // a new message ends what could be redone
	case a.Move && t.moved > a.Then:
		return a, &ContinuedError{Task: t.ref.ID, Branch: store.BranchName(a.Seq), Kind: a.Kind}
	}
	return a, nil
}

// checkNext chooses the action again, with the overlay locked.
func (t *taskActions) checkNext(ctx context.Context, s *store.Store, o Options) error {
	all, err := readOverlay(ctx, s)
	if err == nil {
		err = t.readJournal(ctx, all)
	}
	if err == nil {
		_, err = t.next(o)
	}
	return err
}

// performInJournal undoes or redoes an action in the task's own journal.
func (t *taskActions) performInJournal(ctx context.Context, s *store.Store, a loggedAction, o Options) error {
	own := s.Own
	if a.Move || restoresFiles(a.Action) {
		own = s.OwnLean
	}
	owned, err := own(ctx, t.ref)
	if err != nil {
		return err
	}
	err = t.performOwned(ctx, s, owned.Task, a, o)
	return errors.Join(err, owned.Task.Close(ctx))
}

func (t *taskActions) performOwned(ctx context.Context, s *store.Store, owned *store.Task, a loggedAction, o Options) error {
	if o.Ready != nil {
		if err := o.Ready(ctx, owned); err != nil {
			return err
		}
	}
	all, err := readOverlay(ctx, s)
	if err != nil {
		return err
	}
	t.fill(owned.State(), all)
	if _, err := t.next(o); err != nil {
		return err
	}
	event := a.Back()
	if o.Redo {
		event = a.Again()
	}
	switch {
	case !restoresFiles(a.Action):
		err = owned.CommitDurably(ctx, "undo", event)
	case o.Files == nil:
		err = ErrFiles
	default:
		err = o.Files(ctx, owned, a.Action)
	}
	if err == nil && o.Saved != nil {
		now := *t
		now.fill(owned.State(), all)
		o.Saved(a.describe(), now.TaskActions)
	}
	return err
}
