package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// RewindFiles takes both histories back, and the files with them: to what they were before the first hidden message had
// any effect. Both move in one action: between the intent and the outcome the task is restoring. The histories go back
// also where no file changes. o.To is ignored.
//
// Errors are those of history.Rewind and of Restore.
func (svc *Service) RewindFiles(ctx context.Context, given string, r history.RewindOptions, o RestoreOptions) (
	taken api.RewindResult, files api.RestoreResult, finish func(context.Context) error, err error) {
	ref, err := svc.store.Find(ctx, given)
	if err != nil {
		return taken, files, finished, err
	}
	if r.DryRun = r.DryRun || o.DryRun; r.DryRun {
		o.DryRun = true
		ref = svc.store.Latest(ref)
		err := svc.store.WithView(ctx, ref, func(v *store.View) error {
			var p plannedRestore
			var err error
			taken, p, err = svc.planRewind(ctx, ref, v.State, r, o)
			files = p.result
			return errors.Join(err, p.close())
		})
		taken.DryRun = true
		return taken, files, finished, err
	}
	if !ref.Own {
		dry := r
		dry.DryRun = true
		if _, _, err := history.Rewind(ctx, svc.store, ref, dry); err != nil {
			return taken, files, finished, err // and the task was not taken over
		}
	}
	finish, err = svc.change(ctx, ref, func(t *store.Task, forked string) error {
		var p plannedRestore
		var err error
		taken, p, err = svc.planRewind(ctx, t.Ref, t.State(), r, o)
		taken.Forked, p.result.Forked = forked, forked
		if err == nil {
			err = svc.carryOut(ctx, t, &p, o.Planned)
		}
		files = p.result
		if err = errors.Join(err, p.close()); err == nil {
			taken.Branch = store.BranchName(t.State().Seq)
		}
		return err
	})
	return taken, files, finish, err
}

func (svc *Service) planRewind(ctx context.Context, ref store.Ref, s *task.State, r history.RewindOptions,
	o RestoreOptions) (api.RewindResult, plannedRestore, error) {
	taken, events, err := history.PlanRewind(s, r, svc.now())
	taken.ID = ref.ID
	if err != nil {
		return taken, plannedRestore{}, err
	}
	if len(s.Checkpoints) == 0 {
		// No change of a file by this task is recorded.
		return taken, plannedRestore{with: events, result: api.RestoreResult{
			ID: ref.ID, DryRun: o.DryRun, To: initialState(),
			Files: []api.RestoreItem{}, Conflicts: []api.RestoreItem{}, Lost: []api.RestoreItem{}, Left: []string{},
		}}, nil
	}
	to := targetOf(s, events)
	p, err := svc.planRestore(ctx, ref, s, o, &to)
	p.with = events
	return taken, p, err
}

// UndoFiles takes back what an action did to files, or does it again: they are restored once more. Files that others
// changed since stay as they are, and are in the result's Conflicts.
func (svc *Service) UndoFiles(ctx context.Context, t *store.Task, d task.Action, redo bool) (*api.RestoreResult, error) {
	s := t.State()
	if n, path := s.ChangedSince(d); n != 0 {
		return nil, &ChangedSinceError{Task: t.Ref.ID, Path: path, Checkpoint: n, Safety: d.Safety, Redo: redo}
	}
	event := d.Back()
	if redo {
		event = d.Again()
	}
	begun, is := event.(task.RestoreBegun)
	if !is {
		return nil, fmt.Errorf("the %s put no files back", d.Kind)
	}
	f, err := svc.openFiles(t.Ref, svc.rootOf(s, contentStore(s, d.Safety)))
	if err != nil {
		return nil, err
	}
	p := plannedRestore{taskFiles: f, to: begun.To, undoes: begun.Undoes, redoes: begun.Redoes}
	p.result = api.RestoreResult{ID: t.Ref.ID, To: describeNumber(s, begun.To)}
	err = p.planUndo(ctx, begun.Files)
	if err == nil {
		p.with, err = decodeEvents(begun.Rewind, s.NextMessage())
	}
	if err == nil {
		err = svc.carryOut(ctx, t, &p, nil)
	}
	return &p.result, errors.Join(err, f.close())
}

// planUndo plans to give each file its target, where it is still as the action left it.
func (p *plannedRestore) planUndo(ctx context.Context, files []task.RestoreFile) error {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	now, err := p.keeper.Look(ctx, paths)
	if err != nil {
		return fmt.Errorf("read the files of task %s: %w", p.ref.ID, err)
	}
	plan := checkpoint.Plan{To: p.to, Rule: checkpoint.Keep}
	for _, f := range files {
		i := checkpoint.Item{Path: f.Path, Now: now[f.Path], Target: f.To, Act: checkpoint.ActRestore}
		switch {
		case i.Now.Same(f.To):
			continue
		case !i.Now.Same(f.From):
			i.Act, i.Conflict, i.Why = checkpoint.ActKeep, true, "it was changed by others since"
		}
		plan.Items = append(plan.Items, i)
	}
	if p.plan, err = p.keeper.Resolve(ctx, plan, false); err != nil {
		return fmt.Errorf("plan to put back the files of task %s: %w", p.ref.ID, err)
	}
	p.fillResult()
	return nil
}

// rewindTarget is the state that a rewind gives the files: that from before the first hidden reply; and where a reply stays
// and only some of its calls' outcomes are hidden, what those calls changed is as it was before them. What the other calls
// of that reply changed stays, like their outcomes.
type rewindTarget struct {
	checkpoint.Moment
	named map[string]int // what hidden calls were to change, under the paths that their tools used
}

// first is the oldest checkpoint that files go back to.
func (m rewindTarget) first() int {
	return min(m.First(), checkpoint.Moment{Number: m.Number, Of: m.named}.First())
}

// of has the files under the paths that checkpoints record.
func (m rewindTarget) of(f *taskFiles) checkpoint.Moment {
	out := checkpoint.Moment{Number: m.Number, Of: maps.Clone(m.Of)}
	for given, n := range m.named {
		path, err := f.recordedPath(given)
		if err != nil {
			continue // it is outside of what checkpoints record
		}
		if last, is := out.Of[path]; !is || n < last {
			out.Of[path] = n
		}
	}
	return out
}

// targetOf is the target of a rewind, which its events describe.
func targetOf(s *task.State, events []task.Event) rewindTarget {
	m := rewindTarget{Moment: checkpoint.Moment{Number: s.CheckpointAt(firstHiddenReply(s, events)), Of: map[string]int{}},
		named: map[string]int{}}
	earliest := func(of map[string]int, path string, n int) {
		if last, is := of[path]; !is || n < last {
			of[path] = n
		}
	}
	for _, e := range events {
		r, is := e.(task.Rewound)
		if !is {
			continue
		}
		for _, id := range r.Calls {
			call := s.Call(id)
			if call == nil || !call.Started {
				continue
			}
			before, changed := stateBeforeCall(s, call)
			for path := range call.Before {
				earliest(m.named, path, before)
			}
			for _, path := range changed {
				earliest(m.Of, path, before)
			}
		}
	}
	return m
}

// stateBeforeCall is the newest checkpoint from before a call had any effect, and what the call changed as far as a survey
// found it. A call that had nothing to record has no checkpoint of its own: then those of the calls before it in its reply
// count.
func stateBeforeCall(s *task.State, call *task.Call) (number int, changed []string) {
	number = s.CheckpointAt(call.Message)
	earlier := map[string]bool{}
	for _, c := range s.Calls() {
		if c.ID == call.ID {
			break
		}
		if c.Message == call.Message {
			earlier[c.ID] = true
		}
	}
	for _, c := range s.Checkpoints {
		switch {
		case c.Message < call.Message || c.Reason == task.ReasonOthers:
		case earlier[c.Call]:
			number = max(number, c.Number)
		case c.Call != call.ID:
		case c.Reason == task.ReasonCommand, c.Reason == task.ReasonDoubt:
			for _, f := range c.Files {
				changed = append(changed, f.Path)
			}
			return c.Number - 1, changed // the others that name a call were taken before it
		default:
			number = c.Number
		}
	}
	return number, nil
}

// firstHiddenReply is the message before whose effects a rewind puts the files: the first hidden reply, as only replies
// change files. Before a hidden message of the user the files may have been different again, because the user edited
// them.
func firstHiddenReply(s *task.State, events []task.Event) uint64 {
	first := ^uint64(0)
	for _, e := range events {
		r, is := e.(task.Rewound)
		if !is || len(r.Hide) == 0 {
			continue
		}
		first = min(first, r.Hide[0][0])
		for _, m := range s.API() {
			if m.Kind() == "assistant" && hides(r, m.ID) {
				return m.ID
			}
		}
	}
	return first
}

func hides(r task.Rewound, id uint64) bool {
	for _, run := range r.Hide {
		if run[0] <= id && id <= run[1] {
			return true
		}
	}
	return false
}
