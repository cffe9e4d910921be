package engine

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// In a group, a server that lacks a task's workspace may clone the workspace when no server that has it runs: see
// reach.Cloning. A run records at its start what such a server needs. The server that continues the task makes the clone
// before it takes the task.

// clone is a workspace that was cloned for a run that is being prepared. nil: the server has the workspace.
type clone struct {
	note        string // for the person
	undo        func()
	run         string // the task's newest run when the files were put back
	checkpoints int    // how many checkpoints the task had then
}

// cloneWorkspace clones the workspace of a task, if this server lacks it and may clone it, and names the clone in the
// settings. The error says why the server may not.
func (e *Engine) cloneWorkspace(ctx context.Context, ref store.Ref, s *task.State, has *task.Settings, r Request) (*clone, error) {
	if e.opt.Reach == nil || r.Workspace != "" || has.Workspace == "" {
		return nil, nil
	}
	may, err := e.opt.Reach.ToClone(ctx, has.Workspace, has.Folder, true)
	if err != nil {
		lacks := setup.Lacking(*has, err)
		lacks.Runs = true
		return nil, lacks
	}
	if !may {
		return nil, nil
	}
	tree, files := *has.Folder.Tree, 0
	at, undo, err := e.opt.Reach.Clone(ctx, ref.ID, has.Folder, func(root string) error {
		files, err = e.checkpoints.FillClone(ctx, s, &tree, root)
		return err
	})
	if err != nil {
		return nil, setup.Lacking(*has, err)
	}
	c := &clone{undo: undo, checkpoints: len(s.Checkpoints)}
	if s.Run != nil {
		c.run = s.Run.ID
	}
	c.note = fmt.Sprintf("the workspace was cloned from %s at %.12s", tree.Remote, tree.Commit)
	if files > 0 {
		c.note += fmt.Sprintf(", and %d files were put back as the newest checkpoint has them", files)
	}
	has.Workspace, has.Folder = at, e.opt.Reach.Identify(at)
	return c, nil
}

// stale returns an error when another server worked on the task after the files were put back.
func (c *clone) stale(ref store.Ref, s *task.State) error {
	if c == nil || len(s.Checkpoints) == c.checkpoints && (s.Run == nil || s.Run.ID == c.run) {
		return nil
	}
	return fmt.Errorf("another server worked on task %s while this server cloned its workspace: %w", ref.ID, store.ErrForeignBusy)
}

// recordTree records in the settings of a run what another server needs to clone its workspace.
func (e *Engine) recordTree(ctx context.Context, t *store.Task, s *task.Settings, w *workspace.Workspace, r Request) (notes []string) {
	tree, changed := e.opt.Reach.Describe(ctx, w.Root())
	if tree == nil {
		return nil
	}
	if tree.Problem == "" && !e.takesCheckpoints(r) {
		tree.Problem = "the run takes no checkpoints"
	}
	if tree.Problem == "" {
		if err := e.checkpoints.KeepTree(ctx, t, w, tree, changed); err != nil {
			tree.Problem = err.Error()
		}
	}
	was := s.Folder.Tree
	s.Folder.Tree = tree
	if tree.Problem != "" && (was == nil || was.Problem != tree.Problem) { // once, and not at each run
		return []string{"no other server could continue this task, because none could clone its workspace: " + tree.Problem}
	}
	return nil
}

// removeClones removes the clones of tasks that do not exist any more, not even in the trash. Whether a task exists does not
// depend on who asks.
func (e *Engine) removeClones(ctx context.Context) (err error) {
	clones := e.opt.Reach.Cloned()
	if len(clones) == 0 {
		return nil
	}
	exists := map[string]bool{}
	for range 2 { // a task may go into the trash, or come out of it, while both are listed
		list, err := e.store.Every(ctx)
		if err != nil {
			return fmt.Errorf("remove clones of tasks that were purged: %w", err)
		}
		for _, ref := range list {
			exists[ref.ID] = true
		}
	}
	for dir, id := range clones {
		if !exists[id] {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return api.Failed(err, "remove clones of tasks that were purged")
}
