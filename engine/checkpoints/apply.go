package checkpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// carryOut commits the intent of a planned restore, with the safety checkpoint, and applies it.
func (svc *Service) carryOut(ctx context.Context, t *store.Task, p *plannedRestore) error {
	if len(p.files) == 0 {
		p.result.Outcome = "nothing"
		if len(p.with) == 0 {
			return nil
		}
		return commitDurably(ctx, t, p.with...)
	}
	safety, err := p.saveReplaced(ctx, svc, t.State())
	if err != nil {
		return err
	}
	line, err := encodeEvents(p.with)
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
	if err := commitDurably(ctx, t, safety, begun); err != nil {
		return err
	}
	p.result.Safety = safety.Number
	failpoint.Hit("restore.begun")
	return svc.apply(ctx, t, p.keeper, &p.result)
}

// apply finishes the restore that a task is in: either all of it is done, or everything is as it was.
func (svc *Service) apply(ctx context.Context, t *store.Task, k *checkpoint.Keeper, out *api.RestoreResult) error {
	r := t.State().Restoring
	ended := task.RestoreEnded{Restore: r.Restore, Begun: r.Seq, Outcome: task.RestoreDone, Undoes: r.Undoes, Redoes: r.Redoes}
	// A restore that has begun is not interrupted, even when the caller gives up.
	ctx = context.WithoutCancel(ctx)
	did, failed := k.Apply(ctx, r.Files)
	var events []task.Event
	if failed == nil {
		ended.Files, ended.Left = len(r.Files)-len(did.Left), did.Left
		var err error
		if events, err = decodeEvents(r.Rewind, t.State().NextMessage()); err != nil {
			return &HalfwayError{Task: t.Ref.ID, Err: err}
		}
	} else {
		if _, err := k.Apply(ctx, task.Swapped(r.Files)); err != nil && !nothingReplaced(ctx, k, r.Files) {
			return &HalfwayError{Task: t.Ref.ID, Err: errors.Join(failed, err)}
		}
		ended.Outcome, ended.Undoes, ended.Redoes = task.RestoreRolledBack, 0, 0
	}
	failpoint.Hit("restore.applied")
	// The move of the histories comes first: both are one action, which undo takes back together.
	if err := commitDurably(ctx, t, append(events, ended)...); err != nil {
		return &HalfwayError{Task: t.Ref.ID, Err: err}
	}
	failpoint.Hit("restore.ended")
	out.Outcome, out.Left = ended.Outcome, append([]string{}, ended.Left...)
	if failed != nil {
		return &RolledBackError{failed}
	}
	return nil
}

// nothingReplaced reports whether no file of an intent has its new content: then there is nothing to revert.
func nothingReplaced(ctx context.Context, k *checkpoint.Keeper, files []task.RestoreFile) bool {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	now, err := k.Look(ctx, paths)
	return err == nil && !slices.ContainsFunc(files, func(f task.RestoreFile) bool { return now[f.Path].Same(f.To) && !f.From.Same(f.To) })
}

// FinishOwned finishes a restore of an owned task that a kill interrupted. The note describes what was done; "" when
// there was nothing to do.
func (svc *Service) FinishOwned(ctx context.Context, t *store.Task) (note string, err error) {
	if t.State().Restoring != nil && t.Standing() != store.Ours {
		// This root did not write the intent: it must not decide which files change.
		if err := t.Receive(ctx, string(t.Standing()), false); err != nil {
			return "", err
		}
	}
	r := t.State().Restoring
	if r == nil {
		return "", nil
	}
	f, err := svc.openFilesOf(t.Ref, t.State(), r.Safety, "")
	if err != nil {
		return "", fmt.Errorf("finish the restore of files of task %s that was interrupted: %w", t.Ref.ID, err)
	}
	var out api.RestoreResult
	err = svc.apply(ctx, t, f.keeper, &out)
	var back *RolledBackError
	if errors.As(err, &back) {
		note = fmt.Sprintf("the interrupted restore to c%d could not be finished (%v): everything is as it was before", r.To, back.Err)
		err = nil
	} else if err == nil {
		note = fmt.Sprintf("finished the interrupted restore of %d files to c%d", len(r.Files), r.To)
	}
	return note, errors.Join(err, f.close())
}

// encodeEvents encodes events as the intent of a restore keeps them: one event, or a list of them.
func encodeEvents(events []task.Event) (json.RawMessage, error) {
	var list []json.RawMessage
	for _, e := range events {
		line, err := task.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("encode the events that move the histories: %w", err)
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

// decodeEvents decodes them. A message among them gets the next free number.
func decodeEvents(raw json.RawMessage, next uint64) ([]task.Event, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	list := []json.RawMessage{raw}
	if bytes.HasPrefix(raw, []byte("[")) {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("decode the events that move the histories: %w", err)
		}
	}
	var out []task.Event
	for _, line := range list {
		e, err := task.Decode([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("decode the events that move the histories: %w", err)
		}
		if m, is := e.(task.MessageAdded); is {
			m.Message = next
			e, next = m, next+1
		}
		out = append(out, e)
	}
	return slices.Clip(out), nil
}

// Finish finishes a restore that a kill interrupted, where a task is restoring. The note describes what was done; "" when
// there was nothing to do.
//
// Errors are those of Restore.
func (svc *Service) Finish(ctx context.Context, given string) (note string, err error) {
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return "", err
	}
	isRestoring := false
	err = svc.store.WithView(ctx, ref, func(v *store.View) error {
		isRestoring = v.State.Restoring != nil
		return nil
	})
	if err != nil || !isRestoring {
		return "", err
	}
	owned, err := svc.store.OwnLean(ctx, ref)
	if err != nil {
		return "", err
	}
	note, err = svc.FinishOwned(ctx, owned.Task)
	return note, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
}
