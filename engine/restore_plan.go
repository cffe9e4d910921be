package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// restoring is a restore that is planned.
type restoring struct {
	*floor
	to     int
	plan   checkpoint.Plan
	files  []task.RestoreFile // with the safety checkpoint
	with   []task.Event       // what moves the histories in the same commit
	undoes uint64
	redoes uint64
	result RestoreResult
}

func (p restoring) close() error {
	if p.floor == nil {
		return nil
	}
	return p.floor.close()
}

// planRestore says what a restore of a task would do. to is where to, where that does not
// follow from the options.
func (e *Engine) planRestore(ctx context.Context, ref store.Ref, s *task.State, o RestoreOptions, to *moment) (restoring, error) {
	p := restoring{result: RestoreResult{ID: ref.ID, DryRun: o.DryRun}}
	if to == nil {
		n, err := pick(s, o.To)
		if err != nil {
			return p, err
		}
		to = &moment{Moment: checkpoint.Moment{Number: n}}
	}
	p.to = to.first()
	p.result.To = numbered(s, p.to)
	rule := o.OnConflict
	switch rule {
	case "":
		rule = checkpoint.Keep
	case checkpoint.Keep, checkpoint.Merge, checkpoint.Overwrite:
	default:
		return p, &setup.Error{What: "restore with " + string(rule), Why: "there is no such rule for conflicts", Try: "use keep, merge or overwrite"}
	}
	root := o.Workspace
	if root == "" {
		root = e.rootOf(s, storeOf(s, p.to))
	}
	f, err := e.floor(ref, root)
	if err != nil {
		return p, err
	}
	p.floor = f
	if want := storeOf(s, p.to); want != "" && want != f.keeper.Name() {
		return p, &StoreMovedError{Checkpoint: p.to, Store: want, Workspace: f.ws.Root()}
	}
	list := inStore(s, f.keeper.Name())
	paths := slices.Clone(o.Paths)
	for i, given := range paths {
		if paths[i], err = f.recorded(given); err != nil {
			return p, err
		}
	}
	now, err := f.keeper.Look(ctx, checkpoint.Tracked(list, paths))
	if err != nil {
		return p, fmt.Errorf("look at the files of task %s: %w", ref.ID, err)
	}
	plan := checkpoint.PlanMoment(list, to.of(f), now, paths, rule)
	if p.plan, err = f.keeper.Resolve(ctx, plan, !o.DryRun); err != nil {
		return p, fmt.Errorf("plan to put back the files of task %s: %w", ref.ID, err)
	}
	p.tell()
	return p, nil
}

// recorded is a path as checkpoints name it.
func (f *floor) recorded(given string) (string, error) {
	p, err := f.ws.Resolve(given)
	if err != nil {
		return "", err
	}
	return p.Readable, nil
}

// tell fills in what a person is told of the plan.
func (p *restoring) tell() {
	r := &p.result
	r.Files, r.Conflicts, r.Lost, r.Left, r.Bytes = []RestoreItem{}, []RestoreItem{}, []RestoreItem{}, []string{}, p.plan.Counts().Bytes
	for _, i := range p.plan.Items {
		item := RestoreItem{Path: i.Path, Change: i.Change(), Why: i.Why, Doubt: i.Doubt}
		if i.Act.Changes() {
			item.How = string(i.Act)
			if item.Change == checkpoint.Added || item.Change == checkpoint.Modified {
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
	p.files = make([]task.RestoreFile, len(r.Files)) // until they are held
}

// safe makes what the plan replaces durable, as a checkpoint, and with it what replaces
// it. What it cannot hold is not replaced.
func (p *restoring) safe(ctx context.Context, e *Engine, s *task.State) (task.CheckpointSaved, error) {
	held, err := p.hold(ctx, p.plan.Paths())
	if err != nil {
		return task.CheckpointSaved{}, fmt.Errorf("keep what would be replaced: %w", err)
	}
	var left []checkpoint.Item
	p.files, left = p.plan.Files(held)
	for _, i := range left {
		p.leave(i)
	}
	return e.saved(ctx, p.floor, s, task.ReasonSafety, held, p.files)
}

// leave moves a file of the plan to those that stay as they are.
func (p *restoring) leave(i checkpoint.Item) {
	r := &p.result
	at := slices.IndexFunc(r.Files, func(f RestoreItem) bool { return f.Path == i.Path })
	if at < 0 {
		return
	}
	item := r.Files[at]
	r.Bytes -= item.Size
	item.How, item.Size, item.Why = "", 0, i.Why
	r.Files = slices.Delete(r.Files, at, at+1)
	r.Conflicts = append(r.Conflicts, item)
}

// saved makes a checkpoint of what stands at some paths durable, and gives its event.
// targets are kept with it: no other checkpoint may have them.
func (e *Engine) saved(ctx context.Context, f *floor, s *task.State, reason string, held map[string]task.FileVersion, targets []task.RestoreFile) (task.CheckpointSaved, error) {
	known := checkpoint.StateAt(inStore(s, f.keeper.Name()), s.NextCheckpoint())
	c := task.CheckpointSaved{Number: s.NextCheckpoint(), Reason: reason, Store: f.keeper.Name(), Message: newestMessage(s)}
	for path, v := range held {
		last, is := known[path]
		if is && last.Same(v) && (last.Blob != "" || v.Blob == "") || !is && v.Kind == task.KindOther {
			continue
		}
		if v.Kind == task.KindFile && v.Blob == "" {
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
		Task: keptAs(f.ref), Number: c.Number, Title: c.Title, At: e.opt.Now(), Parent: newestCommit(s, f.keeper.Name()), Files: known, Changed: changed,
	})
	return c, err
}

// newestMessage is the newest of the model's history; it never falls from one checkpoint
// to the next.
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

// hold keeps what stands at recorded paths, and at nothing else: where a link leads is
// none of them.
func (f *floor) hold(ctx context.Context, paths []string) (map[string]task.FileVersion, error) {
	held, err := f.keeper.Hold(ctx, paths)
	if err != nil {
		return nil, err
	}
	out := make(map[string]task.FileVersion, len(paths))
	for _, path := range paths {
		if v, is := held[path]; is {
			out[path] = v
		}
	}
	return out, nil
}
