package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// Standing is whether a task's log is this root's own: what it holds open, and the settings
// that it keeps, count only then.
type Standing string

// The standings of a log. Behind a task.Received or a task.Forked that this root signed, what
// is before it does not matter any more.
const (
	Ours      Standing = ""                 // every commit that counts is proven
	Unsigned  Standing = task.FromUnsigned  // a program wrote it that did not sign
	Elsewhere Standing = task.FromElsewhere // signed with a key that is not known in this place
	Altered   Standing = task.FromAltered   // commits do not match, or the end is missing
)

// judged is the standing that a proof gives. begins is the newest commit behind which everything is the task's own.
func judged(p journal.Proof, begins uint64) Standing {
	switch {
	case p.Cut, p.Altered > begins:
		return Altered
	case p.Unknown > begins:
		return Elsewhere
	case p.Unsigned > begins:
		return Unsigned
	}
	return Ours
}

// Standing is whether the log of a task is this root's own, without owning it. begins is
// State.Begins of the folded log.
func (s *Store) Standing(ctx context.Context, ref Ref, begins uint64) (Standing, error) {
	log, err := s.Verified(ref)
	if errors.Is(err, journal.ErrNotFound) {
		return Ours, nil // it holds nothing that could be obeyed
	}
	if err != nil {
		return Altered, err
	}
	p, err := log.(journal.Prover).Proof(ctx)
	return judged(p, begins), errors.Join(err, log.Close())
}

// Standing is whether the task's log was this root's own when it was taken over.
func (t *Task) Standing() Standing {
	if t.received {
		return Ours
	}
	return judged(t.proof, t.state.Begins)
}

// Receive makes a task this root's own: it ends all that is open, and leaves the settings that a
// stranger may not decide to the user. trust keeps those settings.
func (t *Task) Receive(ctx context.Context, from string, trust bool) error {
	s := t.state
	e := task.Received{From: from, Had: s.Settings, Settings: s.Settings.Proposed()}
	if trust {
		e.Settings = s.Settings
	}
	return t.receive(ctx, e)
}

// Vouch makes a task this root's own as it is, at its user's word.
func (t *Task) Vouch(ctx context.Context) error {
	s := t.state
	return t.receive(ctx, task.Received{From: string(t.Standing()), Had: s.Settings, Settings: s.Settings, Kept: true})
}

func (t *Task) receive(ctx context.Context, e task.Received) error {
	if err := t.CommitSynced(ctx, e); err != nil {
		return fmt.Errorf("receive task %s: %w", t.Ref.ID, err)
	}
	t.received = true
	return nil
}

// ImportRecord is the file that the importer leaves in a task that it copied.
const ImportRecord = ".roost-import.json"

// Trust makes the root its user's own in this place: the keys that the user has for it in other
// places count here, and of tasks whose logs are still not proven, those that hold something
// open, or settings of their own, are vouched for as they stand. Tasks that were imported
// stay received.
func (s *Store) Trust(ctx context.Context, dry bool) (api.TrustedRoot, error) {
	out := api.TrustedRoot{Root: s.opt.Root, Tasks: []api.TrustedTask{}}
	if !dry {
		if err := s.Prepare(); err != nil {
			return out, err
		}
		n, err := s.ring.Trust()
		if err != nil {
			return out, err
		}
		out.Keys = n
	}
	refs, err := s.Refs(ctx)
	if err != nil {
		return out, err
	}
	for i, ref := range refs {
		progress.Report(ctx, progress.State{What: "checking", Done: i, Of: len(refs)})
		if err := ctx.Err(); err != nil {
			return out, err
		}
		t, ok, err := s.trustTask(ctx, ref, dry)
		if err != nil {
			t, ok = api.TrustedTask{ID: ref.ID, Source: ref.Source, Problem: err.Error()}, true
		}
		if ok {
			out.Tasks = append(out.Tasks, t)
		}
	}
	return out, nil
}

func (s *Store) trustTask(ctx context.Context, ref Ref, dry bool) (t api.TrustedTask, ok bool, err error) {
	if !exists(ref.Log, "journal.jsonl") {
		return t, false, nil
	}
	v, err := s.Read(ctx, ref)
	if err != nil {
		return t, false, err
	}
	t = api.TrustedTask{ID: ref.ID, Source: ref.Source, Holds: v.State.Brings()}
	standing, err := s.Standing(ctx, ref, v.State.Begins)
	if err = errors.Join(err, v.Close()); err != nil {
		return t, false, err
	}
	if t.Standing = string(standing); standing == Ours || len(t.Holds) == 0 || exists(ref.Dir, ImportRecord) {
		return t, false, nil // an import's owner receives it
	}
	if dry {
		return t, true, nil
	}
	owned, err := s.Own(ctx, ref)
	if err != nil {
		return t, false, err
	}
	if owned.Task.Standing() != Ours {
		err = owned.Task.Vouch(ctx)
	}
	return t, true, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
}

// MadeToken reports whether a server's token was made in this place, and not brought along.
func (s *Store) MadeToken(token string) bool { return s.ring.MadeToken(token) }

// NoteToken notes that a server's token was made in this place.
func (s *Store) NoteToken(token string) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	return s.ring.NoteToken(token)
}
