package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// A server that lacks a task's workspace may make it again: a commit of a git remote, and on top of it what the task's
// checkpoints hold. For that a checkpoint at the start of a run holds what differs from the commit, and those of the run
// hold what changes later.

// KeepTree records in tree the checkpoint that holds the files which differ from the tree's commit: those in changed,
// and those that earlier checkpoints hold. It makes the checkpoint if no other one holds them. Where a file cannot be
// kept the tree names the problem.
func (svc *Service) KeepTree(ctx context.Context, t *store.Task, w *workspace.Workspace, tree *api.WorkTree,
	changed []string) (err error) {
	k, err := svc.openKeeper(w, "")
	if err != nil {
		return err
	}
	f := &taskFiles{t.Ref, w, k}
	defer func() { err = errors.Join(err, f.close()) }()
	s := t.State()
	paths := append(slices.Clone(changed), checkpoint.Tracked(checkpointsIn(s, k.Name()), nil)...)
	held, err := f.holdContents(ctx, paths)
	if err != nil {
		return fmt.Errorf("keep the files of task %s: %w", t.Ref.ID, err)
	}
	for _, path := range changed {
		if v, is := held[path]; !is || v.Kind == api.KindFile && v.Blob == "" || v.Kind == api.KindOther {
			*tree = api.WorkTree{Problem: "no checkpoint can keep " + path}
			return nil
		}
	}
	tree.Store = k.Name()
	c, err := svc.saveCheckpoint(ctx, f, s, task.ReasonOthers, held, nil)
	if err != nil {
		return err
	}
	if len(c.Files) > 0 {
		if err := t.CommitSynced(ctx, c); err != nil {
			return err
		}
	}
	if len(paths) > 0 {
		tree.Checkpoint = s.NextCheckpoint() - 1
	}
	return nil
}

// FillClone puts the files as a task's checkpoints hold them into a clone of its workspace, which is at a path without
// links, and returns how many it changed.
func (svc *Service) FillClone(ctx context.Context, s *task.State, tree *api.WorkTree, root string) (changed int, err error) {
	switch {
	case s.Restoring != nil:
		return 0, errors.New("a restore of its files was interrupted, and only the server that has the workspace can finish it")
	case tree.Checkpoint > 0 && s.Checkpoint(tree.Checkpoint) == nil:
		return 0, fmt.Errorf("the checkpoint c%d, which holds what was not pushed, is missing", tree.Checkpoint)
	}
	w, err := svc.resolver().OpenWorkspace(root)
	if err != nil {
		return 0, err
	}
	k, err := checkpoint.Open(svc.place, w, checkpoint.Options{Name: tree.Store})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	list := checkpointsIn(s, tree.Store)
	now, err := k.Look(ctx, checkpoint.Tracked(list, nil))
	if err != nil {
		return 0, err
	}
	var files []task.RestoreFile
	for path, to := range checkpoint.StateAt(list, s.NextCheckpoint()) {
		from, is := now[path]
		switch {
		case !is:
			return 0, fmt.Errorf("no workspace on this server can hold %s", path)
		case from.Same(to), to.Kind == api.KindOther && from.Kind == api.KindOther:
		case to.Kind == api.KindOther, to.Kind == api.KindFile && to.Blob == "":
			return 0, fmt.Errorf("no checkpoint keeps what is in %s", path)
		default:
			files = append(files, task.RestoreFile{Path: path, From: from, To: to})
		}
	}
	left, err := k.Apply(ctx, files)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s cannot be put back", left[0])
	}
	return len(files), err
}
