package engine

import (
	"context"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/store"
)

// catchUp writes Roo's files of a completed subtask that has a journal of ours. Its
// process may have been killed between the end of its run and these files, and nobody
// resumes what is completed: without this they would stay behind for ever. What keeps
// it from being owned now is no trouble of its parent's, whose result is in the log.
func (e *Engine) catchUp(ctx context.Context, ref store.Ref) {
	if _, err := os.Stat(filepath.Join(ref.Log, "journal.jsonl")); err != nil {
		return // another program's: its files are the task
	}
	if owned, err := e.store.Own(ctx, ref); err == nil {
		_ = owned.Task.Close(ctx)
	}
}
