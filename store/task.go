package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// blobThreshold is the payload size over which bytes go into a blob, so that a
// commit line stays readable and cheap to scan.
const blobThreshold = 256 << 10

// Task is an owned task: the one writer's handle. Its state is folded from what
// was appended, so that owner and readers cannot disagree.
//
// Commit and State are for one goroutine at a time (the run's); the projector
// works on copies that it takes under the same lock.
type Task struct {
	Ref   Ref
	store *Store
	log   journal.Owner
	now   func() int64
	proj  *projector

	mu    sync.Mutex
	state *task.State
	by    string
}

// State is the folded state. It is only valid until the next Commit; other
// goroutines use View.
func (t *Task) State() *task.State { return t.state }

// View calls f with the state while no commit can change it. f must not keep it.
func (t *Task) View(f func(*task.State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.state)
}

// By names who the next commits are from.
func (t *Task) By(run string) { t.by = run }

// Epoch is this ownership's epoch.
func (t *Task) Epoch() uint64 { return t.log.Epoch() }

// Commit appends events as one commit and folds it. It is durable after the
// next Barrier. Payloads over 256 KB are moved into blobs first.
func (t *Task) Commit(ctx context.Context, events ...task.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	draft := journal.Draft{At: t.now(), By: t.by}
	for _, e := range events {
		e, blobs, err := t.spill(ctx, e)
		if err != nil {
			return err
		}
		raw, err := task.Encode(e)
		if err != nil {
			return err
		}
		draft.Events = append(draft.Events, raw)
		draft.Blobs = append(draft.Blobs, blobs...)
	}
	seq, err := t.log.Append(ctx, draft)
	if err != nil {
		return fmt.Errorf("task %s: commit: %w", t.Ref.ID, err)
	}
	c := journal.Commit{
		Seq: seq, Epoch: t.log.Epoch(), At: draft.At, By: draft.By,
		Blobs: draft.Blobs, Events: draft.Events,
	}
	if err := t.state.Apply(c); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	t.proj.wake()
	return nil
}

// Barrier returns when everything committed so far is synced.
func (t *Task) Barrier(ctx context.Context) error {
	if err := t.log.Barrier(ctx); err != nil {
		return fmt.Errorf("task %s: %w", t.Ref.ID, err)
	}
	return nil
}

// Unsaved is nil while saving gets on; else why it does not.
func (t *Task) Unsaved() error { return t.log.Unsaved() }

// PutBlob stores a payload beside the journal.
func (t *Task) PutBlob(ctx context.Context, data []byte) (string, error) {
	h, err := t.log.PutBlob(ctx, data)
	return string(h), err
}

// Log is the task's journal, for following what is committed.
func (t *Task) Log() journal.Reader { return t.log }

// Close writes the projections, then lets the task go.
func (t *Task) Close(ctx context.Context) error {
	projected := t.proj.close(ctx)
	for range 3 {
		if !errors.Is(projected, roofmt.ErrChanged) {
			break
		}
		// Another program wrote while we did: take that in, then write again.
		if projected = t.reconcile(background(ctx)); projected == nil {
			projected = t.proj.settle(background(ctx))
		}
	}
	if projected == nil && t.state.ID != "" {
		projected = t.store.indexed(background(ctx), t.Ref)
	}
	if err := t.log.Close(); err != nil {
		return fmt.Errorf("task %s: close: %w", t.Ref.ID, err)
	}
	return projected
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
	return t.proj.saw(folder, false)
}

// spill moves a big body into a blob.
func (t *Task) spill(ctx context.Context, e task.Event) (task.Event, []journal.Hash, error) {
	switch e := e.(type) {
	case task.MessageAdded:
		body, blobs, err := t.spillBody(ctx, e.Body)
		e.Body = body
		return e, blobs, err
	case task.MessageChanged:
		body, blobs, err := t.spillBody(ctx, e.Body)
		e.Body = body
		return e, blobs, err
	case task.Adopted:
		var blobs []journal.Hash
		for _, f := range e.Files {
			blobs = append(blobs, journal.Hash(f.Blob))
		}
		return e, blobs, nil
	case task.ForeignImported:
		return e, []journal.Hash{journal.Hash(e.Blob)}, nil
	case task.ForeignRefused:
		if e.Blob != "" {
			return e, []journal.Hash{journal.Hash(e.Blob)}, nil
		}
	case task.ToolFinished:
		if e.Output != "" {
			return e, []journal.Hash{journal.Hash(e.Output)}, nil
		}
	}
	return e, nil, nil
}

func (t *Task) spillBody(ctx context.Context, b task.Body) (task.Body, []journal.Hash, error) {
	if len(b.Raw) <= blobThreshold {
		return b, nil, nil
	}
	h, err := t.log.PutBlob(ctx, b.Raw)
	if err != nil {
		return b, nil, fmt.Errorf("task %s: store a large message: %w", t.Ref.ID, err)
	}
	return task.Body{Blob: string(h)}, []journal.Hash{h}, nil
}

// logBlobs lets a state load payloads from a journal.
type logBlobs struct {
	ctx context.Context //nolint:containedctx // folding is pure and has no context of its own
	log journal.Reader
}

func (b logBlobs) Range(hash string, off, length int64) ([]byte, error) {
	h := journal.Hash(hash)
	if !h.Valid() {
		return nil, fmt.Errorf("blob %q: not a blob's name", hash)
	}
	blob, err := b.log.Blob(b.ctx, h)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", hash[:12], err)
	}
	defer blob.Close()
	if off == 0 && length < 0 {
		return blob.ReadAll()
	}
	if length < 0 {
		length = blob.Size() - off
	}
	if off < 0 || length < 0 || off+length > blob.Size() {
		return nil, fmt.Errorf("blob %s: bytes %d+%d lie outside its %d", hash[:12], off, length, blob.Size())
	}
	data := make([]byte, length)
	if _, err := blob.ReadAt(data, off); err != nil {
		return nil, fmt.Errorf("blob %s: %w", hash[:12], err)
	}
	return data, nil
}

// fold reads a whole log. Damaged commits are noted in the state, not returned.
func fold(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(logBlobs{ctx: context.WithoutCancel(ctx), log: log})
	return s, foldInto(ctx, s, log, 1)
}

func foldInto(ctx context.Context, s *task.State, log journal.Reader, from uint64) error {
	for c, err := range log.Read(ctx, from) {
		var lost *journal.DamageError
		switch {
		case asDamage(err, &lost):
			s.Lost(lost.Damage)
			continue
		case err != nil:
			return fmt.Errorf("read journal: %w", err)
		}
		// A commit that cannot be folded is noted in the state's problems.
		_ = s.Apply(c)
	}
	return nil
}
