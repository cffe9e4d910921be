package agent

import (
	"context"
	"slices"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// askOthers bounds how long it is looked up which other task changed files.
const askOthers = 500 * time.Millisecond

// OtherTasks knows what other tasks did to files of the same workspace.
type OtherTasks interface {
	// Changed names the tasks that left files as they are now. files maps each path to the hash of its
	// content, "" for a file that is gone; since is a time before the changes, Unix milliseconds. A file
	// that the answer leaves out was changed by something else, or by a task of which that is not known.
	Changed(ctx context.Context, since int64, files map[string]string) (tasks map[string]string)
}

// author is who changed a file: one of FileChanged.By, and words that go behind what
// happened to it.
type author struct{ by, task, words string }

// authors says who changed files. others are those that somebody changed before a command
// ran, by their hash; commands and delegated say that a command or a subtask did run.
func (a *Agent) authors(stale []staleFile, others map[string]string, commands, delegated bool) []author {
	out := make([]author, len(stale))
	unknown, since := map[string]string{}, int64(0)
	for i, f := range stale {
		hash, before := others[f.known.Path]
		switch {
		case before && hash == f.now.State.Hash:
			out[i].by = "other"
		case delegated:
			out[i] = author{by: "subtask", words: " by a subtask"}
		case commands && slices.Contains(a.sight.doubt, f.known.Path):
			out[i] = author{by: "command", words: " while a command ran, by it or by somebody else"}
		case commands:
			out[i] = author{by: "command", words: " by a command"}
		case a.restored(f):
			out[i] = author{by: "restore", words: " when the user restored a checkpoint"}
		default:
			out[i].by = "other"
		}
		if out[i].by != "other" || f.now.Verdict != workspace.Missing && f.now.State.Hash == "" {
			continue
		}
		unknown[f.known.Path] = f.now.State.Hash
		if at := f.known.Last.RecordedAt; since == 0 || at < since {
			since = at
		}
	}
	tasks := a.otherTasks(context.Background(), since, unknown) // its time is bounded
	for i, f := range stale {
		if id := tasks[f.known.Path]; id != "" && out[i].by == "other" {
			out[i].task, out[i].words = id, " by another task, "+id
		}
	}
	return out
}

func (a *Agent) otherTasks(ctx context.Context, since int64, files map[string]string) map[string]string {
	if a.Host.OtherTasks == nil || len(files) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askOthers)
	defer cancel()
	return a.Host.OtherTasks.Changed(ctx, since, files)
}

// otherTask is the other task that changed one file, "" when none is known to have.
func (a *Agent) otherTask(ctx context.Context, path, hash string) string {
	a.sight.mu.Lock()
	since := int64(0)
	if k := a.sight.known.File(path); k != nil {
		since = k.Last.RecordedAt
	}
	a.sight.mu.Unlock()
	return a.otherTasks(ctx, since, map[string]string{path: hash})[path]
}

// restored reports whether a file is what a restore made of it since the model got to
// know it.
func (a *Agent) restored(f staleFile) bool {
	for _, c := range slices.Backward(a.state().Checkpoints) {
		if c.Seq <= f.known.Last.Seq {
			return false
		}
		if c.Reason != task.ReasonRestored {
			continue
		}
		for _, e := range c.Files {
			if e.Path == f.known.Path {
				return e.Now.Kind == task.KindGone && f.now.Verdict == workspace.Missing ||
					e.Now.Hash != "" && e.Now.Hash == f.now.State.Hash
			}
		}
	}
	return false
}
