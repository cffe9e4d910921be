package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// Mismatch is derived data that differs from what it is derived from.
type Mismatch struct {
	ID, Path string // of the task; "" for data that is kept for all tasks
	File     string
	Problem  string
	Source   string // what the file is derived from
	Stale    bool   // it is missing or behind, and misleads no reader
	Rewrite  string // the name of the file that must be written again, when Distrust or removing it makes that happen

	Unrepairable bool // deriving it again would not help
}

// Distrust keeps the bytes of one of Roo's files that is not what was written, and lets the projector write the file
// again. It keeps them with a commit, as it does for any refused file, and returns the blob; "" when there is no file.
func (t *Task) Distrust(ctx context.Context, name, reason string) (blob string, err error) {
	hash, size, err := intake.KeepFile(ctx, t, t.Ref.Dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("task %s: keep the damaged %s: %w", t.Ref.ID, name, err)
	}
	if !intake.KeptBefore(t.state, name, hash) {
		err = t.Commit(ctx, task.ForeignRefused{Name: name, Blob: hash, Size: size, Reason: reason})
		if err == nil {
			err = t.Barrier(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	t.proj.mu.Lock()
	defer t.proj.mu.Unlock()
	mark := t.proj.mark.Files[name]
	mark.SHA256, mark.Shows = "damaged", ""
	t.proj.mark.Files[name] = mark
	t.proj.shown = 0
	return hash, nil
}
