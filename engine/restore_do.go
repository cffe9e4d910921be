package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// restore carries a plan out.
func (e *Engine) restore(ctx context.Context, t *store.Task, p *restoring) error {
	if len(p.files) == 0 {
		p.result.Outcome = "nothing"
		if len(p.with) == 0 {
			return nil
		}
		return commitNow(ctx, t, p.with...)
	}
	safety, err := p.safe(ctx, e, t.State())
	if err != nil {
		return err
	}
	line, err := lines(p.with)
	if err != nil {
		return err
	}
	begun := task.RestoreBegun{
		Restore: uuid.NewString(), To: p.to, Safety: safety.Number, Files: p.files, Rewind: line,
		Undoes: p.undoes, Redoes: p.redoes,
	}
	for _, c := range p.result.Conflicts {
		begun.Kept = append(begun.Kept, c.Path)
	}
	failpoint.Hit("restore.before")
	if err := commitNow(ctx, t, safety, begun); err != nil {
		return err
	}
	p.result.Safety = safety.Number
	failpoint.Hit("restore.begun")
	return e.apply(ctx, t, p.floor.keeper, &p.result)
}

// apply finishes the restore that a task is in: it is done, or everything is as it was.
func (e *Engine) apply(ctx context.Context, t *store.Task, k *checkpoint.Keeper, out *RestoreResult) error {
	r := t.State().Restoring
	ended := task.RestoreEnded{Restore: r.Restore, Begun: r.Seq, Outcome: task.RestoreDone, Undoes: r.Undoes, Redoes: r.Redoes}
	// What was begun is not left half done because somebody lost patience.
	ctx = context.WithoutCancel(ctx)
	did, failed := k.Apply(ctx, r.Files)
	var events []task.Event
	if failed == nil {
		ended.Files, ended.Left = len(r.Files)-len(did.Left), did.Left
		var err error
		if events, err = unlines(r.Rewind, t.State().NextMessage()); err != nil {
			return &HalfwayError{Task: t.Ref.ID, Err: err}
		}
	} else {
		if _, err := k.Apply(ctx, task.Swapped(r.Files)); err != nil && !untouched(ctx, k, r.Files) {
			return &HalfwayError{Task: t.Ref.ID, Err: errors.Join(failed, err)}
		}
		ended.Outcome, ended.Undoes, ended.Redoes = task.RestoreRolledBack, 0, 0
	}
	failpoint.Hit("restore.applied")
	// The move of the histories comes first: the restore that ends is one deed with it.
	if err := commitNow(ctx, t, append(events, ended)...); err != nil {
		return &HalfwayError{Task: t.Ref.ID, Err: err}
	}
	failpoint.Hit("restore.ended")
	out.Outcome, out.Left = ended.Outcome, append([]string{}, ended.Left...)
	if failed != nil {
		return &RolledBackError{failed}
	}
	return nil
}

// untouched reports whether no file of an intent is what it was to become: then there is
// nothing to put back.
func untouched(ctx context.Context, k *checkpoint.Keeper, files []task.RestoreFile) bool {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	now, err := k.Look(ctx, paths)
	return err == nil && !slices.ContainsFunc(files, func(f task.RestoreFile) bool { return now[f.Path].Same(f.To) && !f.From.Same(f.To) })
}

// finishRestore goes on with what a kill left of a restore; told says what was done, ""
// when there was nothing to do.
func (e *Engine) finishRestore(ctx context.Context, t *store.Task) (told string, err error) {
	if t.State().Restoring != nil && t.Standing() != store.Ours {
		// Which files it names, and what they are to hold, was not written here.
		if err := t.Receive(ctx, string(t.Standing()), false); err != nil {
			return "", err
		}
	}
	r := t.State().Restoring
	if r == nil {
		return "", nil
	}
	f, err := e.floor(t.Ref, e.rootOf(t.State(), storeOf(t.State(), r.Safety)))
	if err != nil {
		return "", fmt.Errorf("files of task %s were being put back when the program was killed, and that must be finished first: %w", t.Ref.ID, err)
	}
	if want := storeOf(t.State(), r.Safety); want != "" && want != f.keeper.Name() {
		err := &StoreMovedError{Checkpoint: r.Safety, Store: want, Workspace: f.ws.Root()}
		return "", errors.Join(fmt.Errorf("files of task %s were being put back when the program was killed, and that must be finished first: %w", t.Ref.ID, err), f.close())
	}
	var out RestoreResult
	err = e.apply(ctx, t, f.keeper, &out)
	var back *RolledBackError
	if errors.As(err, &back) {
		err, told = nil, fmt.Sprintf("putting files back to c%d, which was cut short, could not be finished (%v): everything is as it was before", r.To, back.Err)
	} else if err == nil {
		told = fmt.Sprintf("finished putting %d files back to c%d, which was cut short", len(r.Files), r.To)
	}
	return told, errors.Join(err, f.close())
}

// storeOf is where the contents of a checkpoint are, "" when nothing says.
func storeOf(s *task.State, number int) string {
	if c := s.Checkpoint(number); c != nil {
		return c.Store
	}
	return ""
}

// commitNow commits, and makes it durable.
func commitNow(ctx context.Context, t *store.Task, events ...task.Event) error {
	if err := t.Commit(ctx, events...); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// lines are events as the intent of a restore keeps them: one line, or a list of them.
func lines(events []task.Event) (json.RawMessage, error) {
	var list []json.RawMessage
	for _, e := range events {
		line, err := task.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("keep what moves the histories: %w", err)
		}
		list = append(list, json.RawMessage(line))
	}
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	return json.Marshal(list)
}

// unlines reads them back. A message among them gets the number that is free now.
func unlines(raw json.RawMessage, next uint64) ([]task.Event, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	list := []json.RawMessage{raw}
	if bytes.HasPrefix(raw, []byte("[")) {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("read what moves the histories: %w", err)
		}
	}
	var out []task.Event
	for _, line := range list {
		e, err := task.Decode([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("read what moves the histories: %w", err)
		}
		if m, is := e.(task.MessageAdded); is {
			m.Message = next
			e, next = m, next+1
		}
		out = append(out, e)
	}
	return slices.Clip(out), nil
}

// Finish goes on with what a kill left of a restore, where a task is restoring; told says
// what was done, "" when there was nothing to do.
//
// Errors are those of Restore.
func (e *Engine) Finish(ctx context.Context, given string) (told string, err error) {
	ref, err := e.store.FindLatest(ctx, given)
	if err != nil {
		return "", err
	}
	return e.finish(ctx, ref)
}

func (e *Engine) finish(ctx context.Context, ref store.Ref) (told string, err error) {
	stuck := false
	err = e.store.WithView(ctx, ref, func(v *store.View) error {
		stuck = v.State.Restoring != nil
		return nil
	})
	if err != nil || !stuck {
		return "", err
	}
	owned, err := e.store.OwnLean(ctx, ref)
	if err != nil {
		return "", err
	}
	told, err = e.finishRestore(ctx, owned.Task)
	return told, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
}
