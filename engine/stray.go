package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/workspace/shell"
)

// strayWait is how long the end of a linter that outlived us is waited for.
const strayWait = 5 * time.Second

// linterMark is what a task's linter is found by when the run that started it was
// killed. A command's mark is recorded before it starts; the linter runs before the
// words that it belongs to are, so its mark follows from the task: where it lies and
// what it is called. One task has one owner, so what carries the mark when a run begins
// is nobody's any more.
func linterMark(ref store.Ref) string {
	sum := sha256.Sum256([]byte("linter\x00" + ref.Dir + "\x00" + ref.ID))
	return hex.EncodeToString(sum[:16])
}

// endStrays ends a linter that outlived a run of this task, and says so. It would go on
// reading, and some linters write. Without a linter in the settings nothing is looked for.
func (e *Engine) endStrays(ref store.Ref) []string {
	if e.opt.Config.Linter == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), strayWait)
	defer cancel()
	found, err := shell.EndMarked(ctx, linterMark(ref))
	var notes []string
	for _, m := range found {
		notes = append(notes, fmt.Sprintf("a linter of this task still ran from before (%d, %s): it was ended", m.PID, m.Name))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("a linter of this task from before could not be ended: %v; end it by hand", err))
	}
	return notes
}
