package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
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
	t.proj.Distrust(name)
	return hash, nil
}

// Index is Roo's history index of the store's own root.
func (s *Store) Index() *projection.Index { return s.index }

// IndexTask puts a task of Roost's own root into its index.
func (s *Store) IndexTask(ctx context.Context, ref Ref) error {
	if !ref.Own {
		return nil
	}
	return s.index.Put(ctx, ref.ID)
}

// VerifyIndex compares Roo's history index in Roost's own root with the task folders.
func (s *Store) VerifyIndex() []Mismatch {
	about := func(problem string, stale bool) Mismatch {
		path := filepath.Join(s.TasksDir(), roofmt.IndexName)
		return Mismatch{Path: s.TasksDir(), File: path, Problem: problem, Source: "the task folders", Stale: stale}
	}
	lacking, orphans, err := s.index.Verify()
	if err != nil {
		return []Mismatch{about(err.Error(), false)}
	}
	var out []Mismatch
	if lacking > 0 {
		out = append(out, about(strconv.Itoa(lacking)+" tasks are not in it as their folders have them", true))
	}
	if orphans > 0 {
		out = append(out, about(strconv.Itoa(orphans)+" of its tasks have no folder", true))
	}
	return out
}

// RebuildIndex makes the history index again from the task folders. An index that cannot be read is kept beside it.
func (s *Store) RebuildIndex(ctx context.Context, unreadable bool) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	return s.index.Rebuild(ctx, unreadable)
}
