package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
	"github.com/roost-dev/roost/task/known"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
)

// Files returns the files of some records of a task, sorted by path: each with its present state in the workspace,
// and the author of its last change.
func Files(ctx context.Context, v *store.View, w *workspace.Workspace, records []task.FileRecord,
	withRecords bool) ([]api.KnownFile, error) {
	by, err := authors(ctx, v, records)
	if err != nil {
		return nil, err
	}
	changed := map[string]task.FileRecord{} // the newest change of each
	for _, r := range records {
		if r.Source == "roo_edited" || r.Source == "user_edited" {
			changed[r.Path] = r
		}
	}
	items, err := FileStates(ctx, w, records)
	if err != nil {
		return nil, err
	}
	for i := range items {
		item := &items[i]
		item.By, item.Task = author(by, changed[item.Path])
		if withRecords {
			if item.History, err = fileHistory(ctx, v, item.Path); err != nil {
				return nil, err
			}
		}
	}
	return items, nil
}

// FileStates is Files without the authors of changes, which only the journal holds: FileStates reads no journal.
func FileStates(ctx context.Context, w *workspace.Workspace, records []task.FileRecord) ([]api.KnownFile, error) {
	var sum known.Files
	sum.Follow(records)
	items, err := api.TryEach(sum.All(), func(k *known.File) (api.KnownFile, error) { return compare(ctx, w, k) })
	slices.SortFunc(items, func(x, y api.KnownFile) int { return strings.Compare(x.Path, y.Path) })
	return items, err
}

// Records returns the file records of a task: its own, and for other paths those that another tool left in its
// folder.
func Records(v *store.View) []task.FileRecord {
	foreign := recordedElsewhere(v)
	if len(foreign) == 0 {
		return v.State.Files
	}
	own := api.SetOf(api.Each(v.State.Files, func(r task.FileRecord) string { return r.Path }))
	foreign = slices.DeleteFunc(foreign, func(r task.FileRecord) bool { return own[r.Path] })
	return append(foreign, v.State.Files...)
}

// authors returns the makers of the changes that were reported to the model, by commit and path. Only the journal's events
// name them.
func authors(ctx context.Context, v *store.View, records []task.FileRecord) (map[string]maker, error) {
	out := map[string]maker{}
	var from, to uint64
	for _, r := range records {
		if r.Source == "user_edited" && r.Seq > 0 {
			from, to = min(cmp.Or(from, r.Seq), r.Seq), max(to, r.Seq)
		}
	}
	if to == 0 || v.Log == nil {
		return out, nil
	}
	err := changesOf(ctx, v, from, func(c journal.Commit, f task.FileChanged) {
		if c.Seq <= to && f.By != "" {
			out[f.Source+recordKey(c.Seq, f.Path)] = maker{f.By, f.Task}
		}
	})
	return out, err
}

// changesOf reads the changes of files in a journal from a commit on, and skips damaged commits.
func changesOf(ctx context.Context, v *store.View, from uint64, give func(journal.Commit, task.FileChanged)) error {
	for c, err := range v.Log.Read(ctx, from) {
		if _, is := errors.AsType[*journal.DamageError](err); is {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		}
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if f, ok := e.(task.FileChanged); ok {
					give(c, f)
				}
			}
		}
	}
	return nil
}

func recordKey(seq uint64, path string) string { return fmt.Sprint(seq, " ", path) }

// compare returns the present state of a file, compared with what the model last saw of it.
func compare(ctx context.Context, w *workspace.Workspace, k *known.File) (api.KnownFile, error) {
	seen := k.Seen
	if seen.Path == "" {
		seen = k.Last
	}
	item := api.KnownFile{Path: k.Path, Source: k.Source, ReadAt: api.Date(k.Read), EditedAt: api.Date(k.Edit),
		UserAt: api.Date(k.UserEdit), TS: k.Last.RecordedAt, Inferred: []string{}}
	if seen.Hash != "" {
		item.Hash, item.Size = &seen.Hash, &seen.Size
	}
	name := k.Path
	if seen.Seq == 0 {
		name = strings.ReplaceAll(name, `\ `, " ") // Roo stores a mention as it was typed
	}
	p, err := w.Resolve(name)
	if err != nil {
		item.State = string(workspace.Missing) // no file can have this name
		return item, nil                       //nolint:nilerr // the state of the file reports it
	}
	if !seen.Judgeable() || seen.Seq == 0 {
		state, at := w.CheckDate(p, max(k.Read, k.Edit))
		item.State, item.Inferred = string(state), []string{"state"}
		if at.Path != "" {
			item.NowSize = &at.Size
		}
		return item, nil
	}
	look := workspace.CheckOptions{RecordedAt: seen.RecordedAt,
		Recorded: workspace.FileState{Path: k.Path, Hash: seen.Hash, Size: seen.Size, MTime: seen.MTime, CTime: seen.CTime,
			Inode: seen.Inode, Device: seen.Device}}
	s, err := w.CheckFile(ctx, p, look)
	if err != nil {
		if ctx.Err() != nil {
			return item, err
		}
		item.State, item.Inferred = string(workspace.Changed), []string{"state"} // it has become unreadable
		return item, nil
	}
	item.State = string(s.Status)
	if s.State.Hash != "" {
		item.NowHash, item.NowSize = &s.State.Hash, &s.State.Size
	}
	if seen.Hash == "" && !seen.Gone() {
		item.Inferred = []string{"state"}
	}
	return item, nil
}

// maker names what changed a file (api.KnownFile.By), and the task if another task changed it.
type maker struct{ by, task string }

// author returns what made the change of a record, and the task if another task did; nil for a read.
func author(by map[string]maker, r task.FileRecord) (who *string, task string) {
	if r.Source != "roo_edited" && r.Source != "user_edited" {
		return nil, ""
	}
	m, ok := by[r.Source+recordKey(r.Seq, r.Path)]
	if !ok {
		m.by = map[string]string{"roo_edited": "agent", "user_edited": "other"}[r.Source]
	}
	return &m.by, m.task
}

// fileHistory returns all that a task ever recorded about a file, the oldest first: records of another tool, records
// of rewound messages, and the checkpoints that hold the file.
func fileHistory(ctx context.Context, v *store.View, path string) ([]api.FileRecord, error) {
	out := []api.FileRecord{}
	for _, r := range recordedElsewhere(v) {
		if r.Path == path {
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
	err := changesOf(ctx, v, 1, func(c journal.Commit, f task.FileChanged) {
		if f.Path != path {
			return
		}
		r := api.FileRecord{Seq: c.Seq, At: api.Date(c.At), Source: f.Source, Task: f.Task,
			Rewound: !kept[key{c.Seq, f.Source, f.Hash}]}
		if r.By, _ = author(nil, task.FileRecord{Source: f.Source}); f.By != "" {
			r.By = &f.By
		}
		if f.Hash != "" {
			r.Hash, r.Size = &f.Hash, &f.Size
		}
		out = append(out, r)
	})
	if err != nil {
		return nil, err
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

// recordedElsewhere returns the file records that another tool left in a task's folder, for a task whose own records
// are incomplete. A file that is missing, unreadable or not a regular file has no records.
func recordedElsewhere(v *store.View) []task.FileRecord {
	switch {
	case v.Log != nil && v.State.Adopted == nil && v.State.Fork == nil:
		return nil
	case v.Folder != nil:
		return foreign.Records(v.Folder.Metadata)
	}
	return foreign.Records(v.FilesKnownElsewhere())
}

// NoticesOf returns the notices that follow some messages of the user's history.
func NoticesOf(s *task.State, numbers []int) []api.Notice {
	var out []api.Notice
	byRow := view.ByRow(view.Notices(s))
	for _, number := range numbers {
		for _, n := range byRow[number] {
			one := api.Notice{Behind: number, At: api.Date(n.At), Kind: "files_changed", Text: n.Text()}
			if c := n.Checkpoint; c != nil {
				one.Kind, one.Checkpoint, one.Reason = "checkpoint", c.Number, c.Reason
			}
			for _, f := range n.Files {
				one.Files = append(one.Files, api.FileOfNotice{Path: f.Path, By: f.By, Task: f.Task, Gone: f.Gone()})
			}
			out = append(out, one)
		}
	}
	return out
}
