package checkpoints

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// plannedRestore is a restore before it is carried out.
type plannedRestore struct {
	*taskFiles
	to     int
	plan   checkpoint.Plan
	files  []task.RestoreFile // what the safety checkpoint and the intent name
	with   []task.Event       // move the histories in the same commit
	undoes uint64
	redoes uint64
	result api.RestoreResult
}

func (p plannedRestore) close() error {
	if p.taskFiles == nil {
		return nil
	}
	return p.taskFiles.close()
}

// planRestore decides what a restore of a task does. to is the target of a rewind; nil = the options name it.
func (svc *Service) planRestore(ctx context.Context, ref store.Ref, s *task.State, o RestoreOptions,
	to *rewindTarget) (plannedRestore, error) {
	p := plannedRestore{result: api.RestoreResult{ID: ref.ID, DryRun: o.DryRun}}
	if to == nil {
		n, err := resolve(s, o.To)
		if err != nil {
			return p, err
		}
		to = &rewindTarget{Moment: checkpoint.Moment{Number: n}}
	}
	p.to = to.first()
	p.result.To = describeNumber(s, p.to)
	rule := checkpoint.Rule(o.OnConflict)
	switch rule {
	case "":
		rule = checkpoint.Keep
	case checkpoint.Keep, checkpoint.Merge, checkpoint.Overwrite:
	default:
		return p, &setup.Error{
			What: "restore with " + string(rule),
			Why:  "there is no such rule for conflicts",
			Try:  "use keep, merge or overwrite",
		}
	}
	f, err := svc.openFilesOf(ref, s, p.to, o.Workspace)
	if err != nil {
		return p, err
	}
	p.taskFiles = f
	list := checkpointsIn(s, f.keeper.Name())
	paths := slices.Clone(o.Paths)
	for i, given := range paths {
		if paths[i], err = f.recordedPath(given); err != nil {
			return p, err
		}
	}
	now, err := f.keeper.Look(ctx, checkpoint.Tracked(list, paths))
	if err != nil {
		return p, fmt.Errorf("read the files of task %s: %w", ref.ID, err)
	}
	plan := checkpoint.PlanMoment(list, to.of(f), now, paths, rule)
	if p.plan, err = f.keeper.Resolve(ctx, plan, !o.DryRun); err != nil {
		return p, fmt.Errorf("plan to put back the files of task %s: %w", ref.ID, err)
	}
	p.fillResult()
	return p, nil
}

// fillResult describes the plan for the user.
func (p *plannedRestore) fillResult() {
	r := &p.result
	r.Files, r.Conflicts, r.Lost, r.Left, r.Bytes = []api.RestoreItem{}, []api.RestoreItem{}, []api.RestoreItem{},
		[]string{}, p.plan.Bytes()
	for _, i := range p.plan.Items {
		item := api.RestoreItem{Path: i.Path, Change: i.Change(), Why: i.Why, Doubt: i.Doubt}
		if i.Act.Changes() {
			item.How = string(i.Act)
			if item.Change == api.FileAdded || item.Change == api.FileChanged {
				item.Size = i.Target.Size
			}
		} else {
			would := i
			would.Act = checkpoint.ActRestore
			item.Change = would.Change()
		}
		switch {
		case i.Act.Changes():
			r.Files = append(r.Files, item)
		case i.Act == checkpoint.ActLost:
			r.Lost = append(r.Lost, item)
		default:
			r.Conflicts = append(r.Conflicts, item)
		}
	}
	p.files = make([]task.RestoreFile, len(r.Files)) // their number; saveReplaced fills them in
}

// saveReplaced makes what the plan replaces durable, as a checkpoint, together with what replaces it. A file whose content
// cannot be kept is not replaced.
func (p *plannedRestore) saveReplaced(ctx context.Context, svc *Service, s *task.State) (task.CheckpointSaved, error) {
	held, err := p.holdContents(ctx, p.plan.Paths())
	if err != nil {
		return task.CheckpointSaved{}, fmt.Errorf("keep what would be replaced: %w", err)
	}
	var left []checkpoint.Item
	p.files, left = p.plan.Files(held)
	for _, i := range left {
		p.keepAsIs(i)
	}
	return svc.saveCheckpoint(ctx, p.taskFiles, s, task.ReasonSafety, held, p.files)
}

// keepAsIs moves a file of the plan to the conflicts.
func (p *plannedRestore) keepAsIs(i checkpoint.Item) {
	r := &p.result
	at := slices.IndexFunc(r.Files, func(f api.RestoreItem) bool { return f.Path == i.Path })
	if at < 0 {
		return
	}
	item := r.Files[at]
	r.Bytes -= item.Size
	item.How, item.Size, item.Why = "", 0, i.Why
	r.Files = slices.Delete(r.Files, at, at+1)
	r.Conflicts = append(r.Conflicts, item)
}

// saveCheckpoint makes a checkpoint of the held contents durable, and returns its event. The contents of targets are kept
// with it, because possibly no other checkpoint holds them.
func (svc *Service) saveCheckpoint(ctx context.Context, f *taskFiles, s *task.State, reason string,
	held map[string]api.FileVersion, targets []task.RestoreFile) (task.CheckpointSaved, error) {
	known := checkpoint.StateAt(checkpointsIn(s, f.keeper.Name()), s.NextCheckpoint())
	c := task.CheckpointSaved{Number: s.NextCheckpoint(), Reason: reason, Store: f.keeper.Name(), Message: newestMessage(s)}
	for path, v := range held {
		last, is := known[path]
		if is && last.Same(v) && (last.Blob != "" || v.Blob == "") || !is && v.Kind == api.KindOther {
			continue
		}
		if v.Kind == api.KindFile && v.Blob == "" {
			c.Unkept++
		}
		c.Files = append(c.Files, task.CheckpointFile{Path: path, Now: v})
		known[path] = v
	}
	slices.SortFunc(c.Files, func(x, y task.CheckpointFile) int { return strings.Compare(x.Path, y.Path) })
	changed := slices.Clone(c.Files)
	for _, t := range targets {
		to := t.To
		changed = append(changed, task.CheckpointFile{Path: t.Path, Was: &to, Now: t.From})
	}
	c.Title = titleOf(reason, targets, c.Files)
	var err error
	c.Commit, err = f.keeper.Save(ctx, checkpoint.Snapshot{
		Task: nameInStore(f.ref), Number: c.Number, Title: c.Title, At: svc.now(), Parent: newestCommit(s, f.keeper.Name()),
		Files: known, Changed: changed,
	})
	return c, err
}

// newestMessage is the newest message of the model's history. It never falls from one checkpoint to the next.
func newestMessage(s *task.State) (message uint64) {
	if api := s.API(); len(api) > 0 {
		message = api[len(api)-1].ID
	}
	if n := len(s.Checkpoints); n > 0 {
		message = max(message, s.Checkpoints[n-1].Message)
	}
	return message
}

// titleOf names a checkpoint after its files.
func titleOf(reason string, targets []task.RestoreFile, files []task.CheckpointFile) string {
	var names []string
	for _, t := range targets {
		names = append(names, t.Path)
	}
	for _, f := range files {
		if len(targets) == 0 {
			names = append(names, f.Path)
		}
	}
	text := ""
	switch n := len(names); {
	case n == 0:
		return "no file"
	case n <= 2:
		text = names[0]
		if n == 2 {
			text += " and " + names[1]
		}
	default:
		text = fmt.Sprintf("%s, %s and %d more", names[0], names[1], n-2)
	}
	if reason == task.ReasonSafety {
		return "before a restore of " + text
	}
	return text
}
