package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Recent are the tasks with a journal of ours that was written to since a time, in Unix
// milliseconds, the latest first, and no more than limit. It looks at the journals' times
// alone, and reads none.
func (s *Store) Recent(ctx context.Context, since int64, limit int) ([]Ref, error) {
	type written struct {
		ref Ref
		at  time.Time
	}
	var found []written
	look := func(tasks string, ref func(id string) Ref) error {
		entries, err := os.ReadDir(tasks)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for tasks in %s: %w", tasks, err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := os.Stat(filepath.Join(tasks, e.Name(), journalName))
			if err == nil && info.ModTime().UnixMilli() >= since {
				found = append(found, written{ref(e.Name()), info.ModTime()})
			}
		}
		return nil
	}
	if err := look(s.TasksDir(), s.OwnRef); err != nil {
		return nil, err
	}
	adopted := filepath.Join(s.opt.Root, "adopted")
	sources, _ := os.ReadDir(adopted) // there may be none
	for _, src := range sources {
		dir := s.AdoptedDir(src.Name())
		if err := look(dir, func(id string) Ref {
			return Ref{ID: id, Source: src.Name(), Dir: filepath.Join(dir, id), Log: filepath.Join(dir, id)}
		}); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(x, y written) int { return y.at.Compare(x.at) })
	out := make([]Ref, 0, min(limit, len(found)))
	for _, f := range found[:min(limit, len(found))] {
		out = append(out, f.ref)
	}
	return out, nil
}
