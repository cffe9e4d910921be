package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Task is an owned task: the handle of its one writer. Its state is folded from what was appended, so that owner and
// readers cannot disagree.
//
// Commit and State are for one goroutine at a time (the run's); the projector works on copies that it takes under the
// same lock. Inputs may come from any goroutine: see Enqueue.
type Task struct {
	Ref   Ref
	store *Store
	log   journal.Owner
	now   func() int64
	proj  *projection.Projector

	mu       sync.Mutex
	state    *task.State
	by       string
	proof    journal.Proof // of the log as it was taken over
	received bool          // commits of the log without proof start nothing any more
	snapshot uint64        // the commit of the newest snapshot
	pending  pendingInputs // what other goroutines committed
	wants    *expectation

	takenMu sync.Mutex // not mu: asking what was taken in must not wait for a commit
	taken   []intake.Change
}

// State is the folded state. It is only valid until the next Commit; other
// goroutines use View.
func (t *Task) State() *task.State { return t.state }

// View calls f with the state while no commit can change it. f must not keep the state.
func (t *Task) View(f func(*task.State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.state)
}

// By names the author of the next commits.
func (t *Task) By(run string) { t.by = run }

// Epoch is this ownership's epoch.
func (t *Task) Epoch() uint64 { return t.log.Epoch() }

// Commit appends events as one commit and folds it. It is durable after the
// next Barrier. Payloads over 256 KB are moved into blobs first.
func (t *Task) Commit(ctx context.Context, events ...task.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.foldPending(); err != nil {
		return err
	}
	c, folded, err := t.append(ctx, events)
	if err != nil {
		return err
	}
	if err := t.state.ApplyOwn(c, folded); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	t.proj.Wake()
	return nil
}

// append gives events to the log as one commit. The caller holds mu.
func (t *Task) append(ctx context.Context, events []task.Event) (journal.Commit, []task.Event, error) {
	draft := journal.Draft{At: t.now(), By: actor(ctx, t.by)}
	folded := make([]task.Event, 0, len(events))
	for _, e := range events {
		e, blobs, err := payload.Spill(ctx, t.log, e)
		if err != nil {
			return journal.Commit{}, nil, fmt.Errorf("task %s: %w", t.Ref.ID, err)
		}
		raw, err := task.Encode(e)
		if err != nil {
			return journal.Commit{}, nil, err
		}
		draft.Events = append(draft.Events, raw)
		folded = append(folded, e)
		draft.Blobs = append(draft.Blobs, blobs...)
	}
	seq, err := t.log.Append(ctx, draft)
	if err != nil {
		return journal.Commit{}, nil, fmt.Errorf("task %s: commit: %w", t.Ref.ID, err)
	}
	return journal.Commit{
		Seq: seq, Epoch: t.log.Epoch(), At: draft.At, By: draft.By,
		Blobs: draft.Blobs, Events: draft.Events,
	}, folded, nil
}

// Barrier returns when everything committed so far is synced.
func (t *Task) Barrier(ctx context.Context) error {
	if err := t.log.Barrier(ctx); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return nil
}

// Unsaved is nil while the journal can be saved; otherwise the reason why it cannot.
func (t *Task) Unsaved() error { return t.log.Unsaved() }

// PutBlob stores a payload beside the journal.
func (t *Task) PutBlob(ctx context.Context, data []byte) (string, error) {
	h, err := t.log.PutBlob(ctx, data)
	return string(h), err
}

// Log is the task's journal, for following what is committed.
func (t *Task) Log() journal.Reader { return t.log }

// Close writes the projections, then releases the task.
func (t *Task) Close(ctx context.Context) error {
	projected := errors.Join(t.closePending(), t.proj.Close(ctx))
	for range 3 {
		if !errors.Is(projected, roofmt.ErrChanged) {
			break
		}
		// Another program wrote at the same time: take its change in, then write again.
		if projected = t.reconcile(background(ctx)); projected == nil {
			projected = t.proj.Settle(background(ctx))
		}
	}
	// The snapshot is derived: a failure costs the next reader time and nothing else.
	_ = t.saveSnapshot(background(ctx), 1)
	if projected == nil && t.state.ID != "" {
		projected = t.store.IndexTask(background(ctx), t.Ref)
	}
	t.View(func(s *task.State) { t.wants.moved(s.Seq) })
	if err := t.log.Close(); err != nil {
		return fmt.Errorf("task %s: close: %w", t.Ref.ID, err)
	}
	return projected
}

// saveSnapshot saves the folded state next to the log, if there are at least so many new commits. A reader then folds
// only the commits after it.
func (t *Task) saveSnapshot(ctx context.Context, commits uint64) error {
	var snap journal.Snapshot
	var err error
	t.View(func(s *task.State) {
		if s.Seq >= t.snapshot+commits && !s.Doubtful() { // every reader would miss what this one missed
			snap.Seq = s.Seq
			snap.Data, err = s.Snapshot()
		}
	})
	if err != nil || snap.Seq == 0 {
		return err
	}
	if err := t.Barrier(ctx); err != nil {
		return err
	}
	if err := t.log.SaveSnapshot(ctx, snap); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	t.snapshot = snap.Seq // one caller at a time: the projector's loop, then Close
	return nil
}

// reconcile takes in what another program changed while the task was owned.
func (t *Task) reconcile(ctx context.Context) error {
	folder, err := t.readFolder(ctx)
	if err != nil || folder == nil {
		return err
	}
	defer folder.Close()
	if _, err := t.takeIn(ctx, folder); err != nil {
		return err
	}
	return t.proj.Saw(folder, false)
}
