package engine

import (
	"context"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/store"
)

// catchUp writes Roo's files of a completed subtask that has a journal of ours. Its
// process may have been killed between the end of its run and these files, and a
// completed task is not resumed: without this the files would stay behind for ever. A failure to own it now does not
// concern the parent, which has the result in its journal.
func (e *Engine) catchUp(ctx context.Context, ref store.Ref) {
	if _, err := os.Stat(filepath.Join(ref.Log, "journal.jsonl")); err != nil {
		return // another program's: its files are the task
	}
	if owned, err := e.store.Own(ctx, ref); err == nil {
		_ = owned.Task.Close(ctx)
	}
}
