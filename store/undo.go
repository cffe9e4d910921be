package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/task"
)

// UndoOptions say which deed is meant. The zero value is the newest.
type UndoOptions struct {
	Redo   bool   // do again what was taken back last
	Only   string // a Deed's ID: when it is not the one that is next, nothing is done
	DryRun bool   // say which it would be

	// Next is told which deed it is before anything is done. nil = nobody asks.
	Next func(Deed)
	// Saved is called as soon as a change of the histories is durable: Roo's files are
	// written after it. nil = nobody waits for that.
	Saved func(Deed, Deeds)

	// Ready is called with the task once it is owned, before it is decided which deed it
	// is. nil = there is nothing to do then.
	Ready func(context.Context, *Task) error
	// Files takes back, or does again, a deed that put files back: it commits what it does.
	// nil = nobody can, and the error is ErrFiles.
	Files func(context.Context, *Task, task.Deed) error
}

// ErrNothing: there is nothing to take back, or to do again.
var ErrNothing = errors.New("there is nothing of the kind")

// WentOnError: the histories went on since they were moved, so that taking the move
// back would take more with it. What they were before is a branch: a fork can start
// from it.
type WentOnError struct {
	Task   string
	Branch string
	Kind   string
	Redo   bool
}

func (e *WentOnError) Error() string {
	return fmt.Sprintf("the task went on since its last %s; what it was before is kept as the branch %s", e.Kind, e.Branch)
}

// DeedError: another deed is the next one than was meant: somebody did something
// since.
type DeedError struct{ Want, Next string }

func (e *DeedError) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("%s is not there any more: it was taken back or done again meanwhile", e.Want)
	}
	return fmt.Sprintf("%s was meant, but %s is the next one by now", e.Want, e.Next)
}

// Undo takes back what a person did to a task last, or with Redo does again what was
// taken back last. It gives the deed and the task as it is then. The log keeps both,
// so undoing loses nothing. Which deed it is, is decided again once the log is held
// that keeps it: somebody who did something meanwhile is answered with a *DeedError,
// and their change stays.
//
// Other errors wrap ErrNothing, are a *WentOnError, ErrTaken (a task of that id stands where a deleted one
// should be put), *journal.BusyError, or what Find gives.
func (s *Store) Undo(ctx context.Context, given string, o UndoOptions) (Deed, Deeds, error) {
	d, err := s.Deeds(ctx, given)
	if err == nil && d.Task.Pending && !o.DryRun && !d.Trashed {
		// What another program did meanwhile comes first: it may be what is meant.
		var owned *Owned
		if owned, err = s.Own(ctx, d.ref); err == nil {
			if err = owned.Task.Close(ctx); err == nil {
				d, err = s.Deeds(ctx, given)
			}
		}
	}
	if err != nil {
		return Deed{}, d, err
	}
	e, err := d.next(o)
	if err != nil || o.DryRun {
		return e.shown(), d, err
	}
	if o.Next != nil {
		o.Next(e.shown())
	}
	o.Only = e.id()
	var with []string
	switch {
	case e.Kind == deletion && o.Redo:
		err = s.shelve(ctx, func(m Marks, keep func(...mark) error) error {
			if err := s.still(ctx, &d, o); err != nil {
				return err
			}
			_, err := s.deleteAs(ctx, d.ref, m, e.Seq, keep)
			return err
		})
		if err == nil {
			with, err = s.deleteSubtasks(ctx, d.ref, e.At)
		}
	case e.Kind == deletion:
		_, err = s.restore(ctx, d.Word(), func() error { return s.still(ctx, &d, o) })
		if err == nil {
			with, err = s.restoreSubtasks(ctx, d.ref, e.At)
		}
	case e.shelf:
		err = s.shelve(ctx, func(_ Marks, keep func(...mark) error) error {
			if err := s.still(ctx, &d, o); err != nil {
				return err
			}
			m := mark{Type: tagged, Source: d.ref.Source, ID: d.ref.ID, Head: HeadOf(ctx, d.ref.Log)}
			to := e.Before
			if m.Undoes = e.Seq; o.Redo {
				to, m.Undoes, m.Redoes = e.After, 0, e.Seq
			}
			m.Title, m.Tags, m.Pinned = to.Title, to.Tags, to.Pinned
			return keep(m)
		})
	default:
		err = s.undoOwn(ctx, &d, e, o)
	}
	if err != nil {
		return e.shown(), d, fmt.Errorf("task %s: %w", d.ref.ID, err)
	}
	d.bin = "" // it may lie elsewhere now
	now, err := s.Deeds(ctx, d.Word())
	now.Subtasks = with
	return e.shown(), now, err
}

// Word names the task so that nothing else fits.
func (d Deeds) Word() string {
	switch {
	case d.bin != "":
		return OwnSource + ":" + d.bin
	case d.ref.Own:
		return OwnSource + ":" + d.ref.ID
	}
	return d.Name
}

// next is the deed that is meant.
func (d Deeds) next(o UndoOptions) (keptDeed, error) {
	list := d.done
	if o.Redo {
		list = d.redo
	}
	e, ok := list.top()
	switch {
	case o.Only != "" && (!ok || o.Only != e.id()):
		err := &DeedError{Want: o.Only}
		if ok {
			err.Next = e.id()
		}
		return e, err
	case !ok:
		return e, ErrNothing
	case e.Move && d.move > e.Then && o.Redo:
		return e, ErrNothing // something new ends what could be done again
	case e.Move && d.move > e.Then:
		return e, &WentOnError{Task: d.ref.ID, Branch: BranchName(e.Seq), Kind: e.Kind}
	}
	return e, nil
}

// still looks again, with the overlay held.
func (s *Store) still(ctx context.Context, d *Deeds, o UndoOptions) error {
	shelf, err := s.shelfDeeds(ctx)
	if err == nil {
		err = s.tell(ctx, d, shelf)
	}
	if err == nil {
		_, err = d.next(o)
	}
	return err
}

// undoOwn writes into the task's own journal.
func (s *Store) undoOwn(ctx context.Context, d *Deeds, e keptDeed, o UndoOptions) error {
	own := s.Own
	if e.Move || putsBack(e.Deed) {
		own = s.ownLean
	}
	owned, err := own(ctx, d.ref)
	if err != nil {
		return err
	}
	if o.Ready != nil {
		err = o.Ready(ctx, owned.Task)
	}
	var shelf map[[2]string]*shelved
	if err == nil {
		shelf, err = s.shelfDeeds(ctx)
	}
	if err == nil {
		d.move = owned.Task.State().Moved
		d.fill(owned.Task.State().Deeds, shelf[[2]string{d.ref.Source, d.ref.ID}].of(d.ref, d.bin))
		_, err = d.next(o)
	}
	if err == nil {
		event := e.Back()
		if o.Redo {
			event = e.Again()
		}
		switch {
		case !putsBack(e.Deed):
			err = owned.Task.move(ctx, "undo", event)
		case o.Files == nil:
			err = ErrFiles
		default:
			err = o.Files(ctx, owned.Task, e.Deed)
		}
		if err == nil && o.Saved != nil {
			now := *d
			now.move = owned.Task.State().Moved
			now.fill(owned.Task.State().Deeds, shelf[[2]string{d.ref.Source, d.ref.ID}].of(d.ref, d.bin))
			o.Saved(e.shown(), now)
		}
	}
	return errors.Join(err, owned.Task.Close(ctx))
}
