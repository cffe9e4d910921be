package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Owned is an owned task and what Own found.
type Owned struct {
	Task    *Task
	Intakes []intake.Change // what another program changed
	Gone    bool            // the editor deleted the folder; Roost's journal is whole
	Forked  string          // the task it is a fork of, when its format cannot be continued in place
	Again   bool            // that fork exists already, and is continued
}

// Create makes a new task in Roost's own root. Nothing of it is visible before its events are synced.
func (s *Store) Create(ctx context.Context, created task.Created, events ...task.Event) (*Task, error) {
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	if created.Task == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make a task id: %w", err)
		}
		created.Task = id.String()
	}
	if !api.ValidTaskID(created.Task) {
		return nil, fmt.Errorf("task id %q: it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", created.Task)
	}
	ref := s.OwnRef(created.Task)
	if linked(ref.Dir) || roofmt.IsFolder(ref.Dir) {
		return nil, fmt.Errorf("task %s exists already", created.Task)
	}
	t, err := s.take(ctx, ref)
	if err != nil {
		return nil, err
	}
	if t.state.ID != "" {
		return nil, errors.Join(fmt.Errorf("task %s exists already", created.Task), t.Close(ctx))
	}
	return t.begin(ctx, created, events)
}

// begin makes the first commit of a task durable. The task is released when that fails.
func (t *Task) begin(ctx context.Context, created task.Created, events []task.Event) (*Task, error) {
	err := t.Commit(ctx, append([]task.Event{created}, events...)...)
	if err == nil {
		err = t.Barrier(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

// Own takes a task over for writing. It takes the lock and opens an epoch, folds the journal, adopts a task without a
// journal, and takes in what another program changed.
func (s *Store) Own(ctx context.Context, ref Ref) (*Owned, error) {
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	if err := CheckID(ref); err != nil {
		return nil, err
	}
	if _, err := os.Stat(ref.Dir); errors.Is(err, os.ErrNotExist) && !HasJournal(ref.Log) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, ref.Dir)
	}
	outside := linked(ref.Dir)
	if outside && (ref.Own || HasJournal(ref.Log)) {
		return nil, fmt.Errorf("task %s: %s is a symbolic link: %w", ref.ID, ref.Dir, ErrLinked)
	}
	if ref.Foreign() && !HasJournal(ref.Log) {
		folder, err := intake.ReadSettled(ctx, ref.Dir, projection.Watermark{}, s.wait)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", ref.ID, err)
		}
		defer folder.Close()
		if outside || !staysInPlace(ref, folder) {
			return s.fork(ctx, ref, folder)
		}
	}
	t, err := s.takeWith(ctx, ref, ref.Own, false)
	if err != nil {
		return nil, err
	}
	owned := &Owned{Task: t}
	// The folder is read under the lock: an earlier read could miss what the owner before wrote last.
	folder, err := t.readFolder(ctx)
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	if folder != nil {
		defer folder.Close()
	}
	err = s.adoptOrTakeIn(ctx, owned, folder)
	if err == nil {
		err = s.takeInOriginalOf(ctx, owned)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

// staysInPlace reports whether a foreign task is continued in its own folder: where Roost's writer is proven for the
// tool, and would not drop messages that Roost left out when it read the folder.
func staysInPlace(ref Ref, folder *roofmt.Folder) bool {
	return continuedInPlace(ref.toolOf(folder)) && !folder.Abridged
}

// toolOf is the tool that made the task in a folder.
func (r Ref) toolOf(folder *roofmt.Folder) string {
	if r.Tool != "" && !r.Own {
		return r.Tool
	}
	return string(folder.Origin.Tool)
}

// tags reports whether the task's history is tagged when it is adopted: a task that stays in another tool's folder
// keeps that tool's own bookkeeping.
func (r Ref) tags(folder *roofmt.Folder) bool { return r.Own || !staysInPlace(r, folder) }

// continuedInPlace reports whether Roost's writer is proven for a tool's folders.
func continuedInPlace(tool string) bool { return tool != "cline" && tool != "kilo" }

// CanAdopt reports whether the task can be continued in its own folder.
func (r Ref) CanAdopt() bool { return continuedInPlace(r.Tool) && !linked(r.Dir) }

// readFolder reads the task's folder while no program writes it; nil when there is no folder.
func (t *Task) readFolder(ctx context.Context) (*roofmt.Folder, error) {
	// Remove locks that a killed process of Roost left: the read would wait for them. The read reports locks that cannot
	// be removed.
	_ = roofmt.Sweep(ctx, t.Ref.Dir)
	folder, err := intake.ReadSettled(ctx, t.Ref.Dir, projection.Read(t.Ref.Log), t.store.wait)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return folder, nil
}

func (s *Store) adoptOrTakeIn(ctx context.Context, o *Owned, folder *roofmt.Folder) error {
	t := o.Task
	if folder == nil {
		if t.Ref.Foreign() {
			o.Gone = true
			t.proj.Leave()
		}
		return nil
	}
	adopted := empty(t.state)
	if adopted {
		if err := t.adopt(ctx, folder); err != nil {
			return err
		}
	} else {
		var err error
		if o.Intakes, err = t.takeIn(ctx, folder); err != nil {
			return err
		}
	}
	return t.proj.Saw(folder, adopted)
}

// take locks the journal and folds it. It creates what does not exist.
func (s *Store) take(ctx context.Context, ref Ref) (*Task, error) {
	return s.takeWith(ctx, ref, false, false)
}

// takeWith is take; existing means that the folder must exist: it may have moved into the trash since it was found. lean
// means that it reads the log from its snapshot on.
func (s *Store) takeWith(ctx context.Context, ref Ref, existing, lean bool) (*Task, error) {
	if err := s.EnsureDir(filepath.Dir(ref.Log), "cannot be written"); err != nil {
		return nil, err
	}
	wants := expected(ctx, ref)
	log, err := ownLog(ctx, ref.Log, filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program, Existing: existing,
		Owner: s.owner(), Synced: s.announcer(ref), Meets: wants.check(), Seal: s.seal(ref),
	})
	if existing && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s no longer exists", ErrNotFound, ref.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("take task %s: %w", ref.ID, err)
	}
	var state *task.State
	if lean {
		state, err = fold.Lean(ctx, log)
	} else {
		state, err = fold.All(ctx, log)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	projection.Sweep(ref.Log)
	if state.ID == "" && !empty(state) {
		state.ID = ref.ID // the commit with the id is damaged
	}
	proof, err := log.(journal.Prover).Proof(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("task %s: %w", ref.ID, err), log.Close())
	}
	t := &Task{Ref: ref, store: s, log: log, now: s.opt.Now, state: state, by: s.opt.Program, wants: wants, proof: proof}
	t.proj = projection.NewProjector(projection.Task{
		ID:           ref.ID,
		Dir:          ref.Dir,
		LogDir:       ref.Log,
		Own:          ref.Own,
		Log:          log,
		Now:          t.now,
		View:         t.View,
		SaveSnapshot: t.saveSnapshot,
	})
	return t, nil
}
