package stale

import (
	"context"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// otherTasksTime bounds the search for other tasks that changed files.
const otherTasksTime = 500 * time.Millisecond

// author is what changed a file: a value of FileChanged.By, the other task if it was one, and words that
// follow the description of the change.
type author struct{ by, task, words string }

// authors finds out what changed files since the last turn. delegated reports that a subtask ran.
func (t *Tracker) authors(files []File, delegated bool) []author {
	out := make([]author, len(files))
	unknown, since := map[string]string{}, int64(0)
	for i, f := range files {
		hash, before := t.priorChanges[f.known.Path]
		switch {
		case before && hash == f.now.State.Hash:
			out[i].by = "other"
		case delegated:
			out[i] = author{by: "subtask", words: " by a subtask"}
		case t.commandRan && slices.Contains(t.doubtful, f.known.Path):
			out[i] = author{by: "command", words: " while a command ran, by it or by another program"}
		case t.commandRan:
			out[i] = author{by: "command", words: " by a command"}
		case t.isRestored(f):
			out[i] = author{by: "restore", words: " when the user restored a checkpoint"}
		default:
			out[i].by = "other"
		}
		if out[i].by != "other" || f.now.Status != workspace.Missing && f.now.State.Hash == "" {
			continue
		}
		unknown[f.known.Path] = f.now.State.Hash
		if at := f.known.Last.RecordedAt; since == 0 || at < since {
			since = at
		}
	}
	tasks := t.askOtherTasks(context.Background(), since, unknown) // askOtherTasks bounds its own time
	for i, f := range files {
		if id := tasks[f.known.Path]; id != "" && out[i].by == "other" {
			out[i].task, out[i].words = id, " by another task, "+id
		}
	}
	return out
}

func (t *Tracker) askOtherTasks(ctx context.Context, since int64, files map[string]string) map[string]string {
	if t.opt.OtherTasks == nil || len(files) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, otherTasksTime)
	defer cancel()
	return t.opt.OtherTasks.Changed(ctx, since, files)
}

// Refused returns the records of a file that a call would have overwritten although something else had
// changed it. The refusal reports that to the model.
func (t *Tracker) Refused(ctx context.Context, stale *tool.StaleError) []task.Event {
	record := Record(stale.Now)
	record.Source, record.By = "user_edited", "other"
	if hash, before := t.priorChanges[record.Path]; t.commandRan && (!before || hash != record.Hash) {
		record.By = "command"
	}
	if record.By == "other" {
		record.Task = t.otherTask(ctx, record.Path, record.Hash)
	}
	if !stale.Shown {
		return []task.Event{record}
	}
	read := record
	read.Source, read.By = "read_tool", ""
	return []task.Event{record, read}
}

// otherTask is the other task that changed one file, "" when none is known.
func (t *Tracker) otherTask(ctx context.Context, path, hash string) string {
	t.mu.Lock()
	since := int64(0)
	if k := t.known.File(path); k != nil {
		since = k.Last.RecordedAt
	}
	t.mu.Unlock()
	return t.askOtherTasks(ctx, since, map[string]string{path: hash})[path]
}

// isRestored reports whether a file is what a restore made of it after its newest record.
func (t *Tracker) isRestored(f File) bool {
	for _, c := range slices.Backward(t.run.State().Checkpoints) {
		if c.Seq <= f.known.Last.Seq {
			return false
		}
		if c.Reason != task.ReasonRestored {
			continue
		}
		for _, e := range c.Files {
			if e.Path == f.known.Path {
				return e.Now.Kind == api.KindGone && f.now.Status == workspace.Missing ||
					e.Now.Hash != "" && e.Now.Hash == f.now.State.Hash
			}
		}
	}
	return false
}
