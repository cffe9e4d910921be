package engine

import (
	"context"
	"math"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// maxOtherTasks bounds the journals that are folded for one question. The newest ones almost always hold the answer.
const maxOtherTasks = 8

// otherTasks is a run's agent.OtherTasks. It reads only the tasks that were written to since the given time. Nothing
// depends on the answer, so a task that cannot be read is left out.
type otherTasks struct {
	engine *Engine
	root   string // of the workspace
	self   string // the run's task
}

// Changed names the tasks that left files of the workspace in their present state.
func (o otherTasks) Changed(ctx context.Context, since int64, files map[string]string) map[string]string {
	refs, err := o.engine.store.Recent(ctx, since, maxOtherTasks+1)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, ref := range refs {
		if ref.ID == o.self || ctx.Err() != nil || len(out) == len(files) {
			continue
		}
		s, err := o.engine.folded(ctx, ref)
		if err != nil || !sameFolder(s.Settings.Workspace, o.root) {
			continue
		}
		for path, hash := range files {
			if _, known := out[path]; !known && leftAs(s, path, hash) {
				out[path] = ref.ID
			}
		}
	}
	return out
}

func (e *Engine) folded(ctx context.Context, ref store.Ref) (*task.State, error) {
	log, err := e.store.Follow(ref)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return fold.To(ctx, log, math.MaxUint64)
}

func sameFolder(dir, root string) bool {
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && real == root
}

// leftAs reports whether the newest record that a task has of a file is that the agent, or a command that it ran, left the
// file with this content; "" = deleted.
func leftAs(s *task.State, path, hash string) bool {
	seq := uint64(0)
	fits := false
	for _, f := range slices.Backward(s.Files) {
		if f.Path == path && (f.Source == "roo_edited" || f.Source == "user_edited") {
			seq, fits = f.Seq, f.Source == "roo_edited" && f.Hash == hash
			break
		}
	}
	for _, c := range slices.Backward(s.Checkpoints) {
		if c.Seq < seq {
			break
		}
		i := slices.IndexFunc(c.Files, func(f task.CheckpointFile) bool { return f.Path == path })
		if i < 0 || c.Reason != task.ReasonCommand && c.Reason != task.ReasonTurn {
			continue
		}
		now := c.Files[i].Now
		return now.Hash == hash && (hash != "" || now.Kind == api.KindGone)
	}
	return fits
}
