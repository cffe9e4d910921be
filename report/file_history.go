package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// fileHistory is all that a task ever recorded about a file, the oldest first: records of another tool, records of rewound
// messages, and the checkpoints that hold the file.
func fileHistory(ctx context.Context, v *store.View, path string) ([]api.FileRecord, error) {
	out := []api.FileRecord{}
	for _, r := range recordedElsewhere(v) {
		if r.Path == path && !ownRecord(v.State.Files, r) {
			who, _ := author(nil, r)
			out = append(out, api.FileRecord{At: api.Date(r.RecordedAt), Source: r.Source, By: who})
		}
	}
	if v.Log == nil {
		return out, nil
	}
	type key struct {
		seq          uint64
		source, hash string
	}
	kept := map[key]bool{}
	for _, r := range v.State.Files {
		if r.Path == path {
			kept[key{r.Seq, r.Source, r.Hash}] = true
		}
	}
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		}
		for _, raw := range c.Events {
			e, err := task.Decode(raw)
			f, is := e.(task.FileChanged)
			if err != nil || !is || f.Path != path {
				continue
			}
			r := api.FileRecord{Seq: c.Seq, At: api.Date(c.At), Source: f.Source, Task: f.Task,
				Rewound: !kept[key{c.Seq, f.Source, f.Hash}]}
			r.By, _ = author(nil, task.FileRecord{Source: f.Source})
			if f.By != "" {
				r.By = &f.By
			}
			if f.Hash != "" {
				r.Hash, r.Size = &f.Hash, &f.Size
			}
			out = append(out, r)
		}
	}
	for _, c := range v.State.Checkpoints {
		for _, f := range c.Files {
			if f.Path != path {
				continue
			}
			r := api.FileRecord{Seq: c.Seq, At: api.Date(c.At), Source: "checkpoint", Checkpoint: c.Number,
				Reason: c.Reason, Rewound: v.State.RewoundCheckpoint(c)}
			if f.Now.Hash != "" {
				r.Hash, r.Size = &f.Now.Hash, &f.Now.Size
			}
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(x, y api.FileRecord) int { return int(int64(x.Seq) - int64(y.Seq)) })
	return out, nil
}

// ownRecord reports whether Roost wrote a record of a task_metadata.json.
func ownRecord(files []task.FileRecord, r task.FileRecord) bool {
	return slices.ContainsFunc(files, func(f task.FileRecord) bool {
		return f.Path == r.Path && f.RooRead == r.RooRead && f.RooEdit == r.RooEdit && f.UserEdit == r.UserEdit
	})
}
