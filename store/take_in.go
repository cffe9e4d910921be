package store

import (
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
)

// ErrForeignBusy: another program is writing the task's files just now.
var ErrForeignBusy = intake.ErrBusy

// SkipWaits makes the store take files as settled at once. It is for tests whose files do not change by themselves.
func (s *Store) SkipWaits() { s.wait.Settle, s.wait.Pause, s.wait.Still = 0, time.Millisecond, 0 }

// TrustTimesAfter sets how long a file must be unchanged before its times are trusted. It is for tests that know the
// clock of their file system.
func (s *Store) TrustTimesAfter(d time.Duration) { s.calmIn = d }

// target is the task as the target of what another program wrote in a folder.
func (t *Task) target(folder *roofmt.Folder) intake.Target {
	return intake.Target{Journal: t, ID: t.Ref.ID, Tool: t.Ref.Tool, Tag: t.Ref.tags(folder)}
}

// adopt makes a folder of JSON files the beginning of the task's journal.
func (t *Task) adopt(ctx context.Context, folder *roofmt.Folder) error {
	t.store.withRow(folder)
	target := t.target(folder)
	target.Tool = t.Ref.toolOf(folder)
	return target.Adopt(ctx, folder)
}

// takeIn commits what another program changed in the task's folder.
func (t *Task) takeIn(ctx context.Context, folder *roofmt.Folder) ([]intake.Change, error) {
	changes, err := t.target(folder).TakeIn(ctx, folder, projection.Read(t.Ref.Log))
	t.record(changes)
	return changes, err
}

// takeInOriginal commits what the other tool added to the task that this one is a fork of.
func (t *Task) takeInOriginal(ctx context.Context, folder *roofmt.Folder) ([]intake.Change, error) {
	target := t.target(folder)
	changes, err := target.TakeInOriginal(ctx, folder)
	t.record(changes)
	if err != nil {
		return changes, err
	}
	if slices.ContainsFunc(changes, func(c intake.Change) bool { return c.Event != nil }) {
		t.store.withRow(folder)
		return changes, target.TagAgain(ctx, folder)
	}
	return changes, nil
}

func (t *Task) record(changes []intake.Change) {
	t.takenMu.Lock()
	defer t.takenMu.Unlock()
	t.taken = append(t.taken, changes...)
}

// Intakes are all changes of other programs since the task was taken over: those that Own found, and those that came
// while the task was owned, which Close takes in. Call it after Close to get the last ones.
func (t *Task) Intakes() []intake.Change {
	t.takenMu.Lock()
	defer t.takenMu.Unlock()
	return slices.Clone(t.taken)
}

// damaged reports whether the journal lost something.
func (t *Task) damaged() bool { return len(t.state.Problems) > 0 }

// Load reads the histories into memory.
func (t *Task) Load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Load()
}

// PutBlobFrom stores what a reader gives beside the journal.
func (t *Task) PutBlobFrom(ctx context.Context, r io.Reader) (string, int64, error) {
	h, n, err := t.log.PutBlobFrom(ctx, r)
	return string(h), n, err
}

// PutBlobFile stores a file's bytes beside the journal.
func (t *Task) PutBlobFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return t.PutBlobFrom(ctx, f)
}
