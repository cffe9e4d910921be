package checkpoints

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// RestoreOptions select which files are put back, and how.
type RestoreOptions struct {
	api.NewRestore        // Plan is for Planned
	To             string // a checkpoint: c3, 3, the beginning of its commit, #12, 0; "" = before the newest change

	// Planned is called with the plan before anything changes; an error stops the restore. nil = not called.
	Planned func(api.RestoreResult) error
}

// Restore puts files back to what they were at a checkpoint. The histories stay as they are. It returns when the outcome
// is durable. The caller must call finish, which updates Roo's files of the task.
//
// Errors: *ReferenceError and ErrNone for a checkpoint that does not exist, *StoreMovedError, one that is
// checkpoint.ErrRefused, *journal.BusyError while the task runs, *setup.Error for a workspace that cannot be opened, or
// an error of store.Find. After *RolledBackError nothing has changed; after *HalfwayError the task is restoring.
func (svc *Service) Restore(ctx context.Context, given string, o RestoreOptions) (
	out api.RestoreResult, finish func(context.Context) error, err error) {
	ref, err := svc.store.Find(ctx, given)
	if err == nil && !o.DryRun {
		err = svc.requireCheckpoints(ctx, ref)
	}
	if err != nil {
		return out, finished, err
	}
	return svc.restore(ctx, ref, o, func(ref store.Ref, s *task.State) (plannedRestore, error) {
		return svc.planRestore(ctx, ref, s, o, nil)
	})
}

// restore carries out the restore that plan makes for a task, and returns its result; a dry run only plans.
func (svc *Service) restore(ctx context.Context, ref store.Ref, o RestoreOptions,
	plan func(store.Ref, *task.State) (plannedRestore, error)) (
	out api.RestoreResult, finish func(context.Context) error, err error) {
	if o.DryRun {
		ref = svc.store.Latest(ctx, ref)
		out, err = store.FromView(ctx, svc.store, ref, func(v *store.View) (api.RestoreResult, error) {
			p, err := plan(ref, v.State)
			return p.result, errors.Join(err, p.close())
		})
		return out, finished, err
	}
	finish, err = svc.change(ctx, ref, func(t *store.Task, forked string) error {
		p, err := plan(t.Ref, t.State())
		p.result.Forked = forked
		if err == nil {
			err = svc.carryOut(ctx, t, &p, o.Planned)
		}
		out = p.result
		return errors.Join(err, p.close())
	})
	return out, finish, err
}

// requireCheckpoints returns ErrNone for a task of another tool without checkpoints. Only Roost makes checkpoints, and an
// operation that cannot succeed must not take over the task's folder.
func (svc *Service) requireCheckpoints(ctx context.Context, ref store.Ref) error {
	if ref.Own {
		return nil
	}
	if _, ok := svc.store.Continued(ctx, ref); ok {
		return nil
	}
	return svc.store.WithView(ctx, ref, func(v *store.View) error {
		if len(v.State.Checkpoints) == 0 {
			return ErrNone
		}
		return nil
	})
}

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
	rule := cmp.Or(checkpoint.Rule(o.OnConflict), checkpoint.Keep)
	f, err := svc.openFilesOf(ref, s, p.to, o.Workspace)
	if err != nil {
		return p, err
	}
	p.taskFiles = f
	if o.DryRun {
		p.result.Workspace = f.ws.Root()
	}
	list := checkpointsIn(s, f.keeper.Name())
	paths, err := f.recordedPaths(o.Paths...)
	if err != nil {
		return p, err
	}
	now, err := f.keeper.Look(ctx, checkpoint.Tracked(list, paths))
	if err != nil {
		return p, fmt.Errorf("read the files of task %s: %w", ref.ID, err)
	}
	if o.Shown != nil {
		p.plan, err = f.planShown(ctx, s, list, paths, now, to.Number, *o.Shown, rule, !o.DryRun)
	} else {
		p.plan, err = f.keeper.Resolve(ctx, checkpoint.PlanMoment(list, to.of(f), now, paths, rule), !o.DryRun)
	}
	if err != nil {
		return p, fmt.Errorf("plan to put back the files of task %s: %w", ref.ID, err)
	}
	p.fillResult()
	if o.DryRun && len(paths) > 0 {
		err = p.preview(ctx)
	}
	return p, err
}

// planShown plans to take back a difference that the caller looked at.
func (f *taskFiles) planShown(ctx context.Context, s *task.State, list []task.CheckpointSaved, paths []string,
	now map[string]api.FileVersion, from int, given api.Shown, rule checkpoint.Rule, keep bool) (checkpoint.Plan, error) {
	to, newer, err := f.newer(ctx, s, list, given.To, paths)
	if err != nil {
		return checkpoint.Plan{}, err
	}
	path := paths[max(0, slices.IndexFunc(paths, func(p string) bool { return newer[p].Kind != "" }))]
	older, known := checkpoint.StateAt(list, from)[path]
	is, looked := now[path]
	made, shown := newer[path]
	if !known || !looked || !shown {
		return checkpoint.Plan{}, fmt.Errorf("%s: %w", path, checkpoint.ErrShownChanged)
	}
	if to == onDisk {
		made = is // both are what is on the disk
	}
	return f.keeper.PlanShown(ctx, list, checkpoint.Shown{
		Path: path, Older: from, Newer: to, Hunk: given.Hunk, Hash: given.Hash, From: older, To: made,
	}, is, rule, keep)
}

// previewBytes bounds the differences that a dry run shows.
const previewBytes = 1 << 20

// preview adds to each file that changes the difference that the plan makes to it.
func (p *plannedRestore) preview(ctx context.Context) error {
	room, files := previewBytes, p.result.Files
	for _, i := range p.plan.Items {
		if !i.Act.Changes() {
			continue
		}
		patch, why, err := p.keeper.Preview(ctx, i, &room)
		if err != nil {
			return err
		}
		files[0].Patch, files[0].Why = patch, why // the result lists them in the order of the plan
		files = files[1:]
	}
	return nil
}

// fillResult describes the plan for the user.
func (p *plannedRestore) fillResult() {
	r := &p.result
	r.Files, r.Conflicts, r.Lost, r.Left, r.Bytes = []api.RestoreItem{}, []api.RestoreItem{}, []api.RestoreItem{},
		[]string{}, p.plan.Bytes()
	for _, i := range p.plan.Items {
		item := i.Result()
		if i.Act.Changes() {
			r.Files = append(r.Files, item)
			continue
		}
		would := i
		would.Act = checkpoint.ActRestore
		if item.Change = would.Change(); i.Act == checkpoint.ActLost {
			r.Lost = append(r.Lost, item)
		} else {
			r.Conflicts = append(r.Conflicts, item)
		}
	}
}

// saveReplaced makes what the plan replaces durable, as a checkpoint, together with what replaces it. A file whose content
// cannot be kept is not replaced.
func (p *plannedRestore) saveReplaced(ctx context.Context, svc *Service, s *task.State) (task.CheckpointSaved, error) {
	held, err := p.holdContents(ctx, p.plan.Paths())
	if err != nil {
		return task.CheckpointSaved{}, fmt.Errorf("keep what would be replaced: %w", err)
	}
	p.files = p.plan.Files(held)
	p.fillResult()
	return svc.saveCheckpoint(ctx, p.taskFiles, s, task.ReasonSafety, held, p.files)
}

// carryOut commits the intent of a planned restore, with the safety checkpoint, and applies it, unless planned refuses
// the plan. planned may be nil.
func (svc *Service) carryOut(ctx context.Context, t *store.Task, p *plannedRestore,
	planned func(api.RestoreResult) error) error {
	if planned != nil {
		if err := planned(p.result); err != nil {
			return err
		}
	}
	if len(p.result.Files) == 0 {
		p.result.Outcome = "nothing"
		if len(p.with) == 0 {
			return nil
		}
		return t.CommitSynced(ctx, p.with...)
	}
	safety, err := p.saveReplaced(ctx, svc, t.State())
	if err != nil {
		return err
	}
	line, err := encodeEvents(p.with)
	if err != nil {
		return err
	}
	begun := task.RestoreBegun{
		Restore: uuid.NewString(), To: p.to, Safety: safety.Number, Files: p.files, Rewind: line,
		Undoes: p.undoes, Redoes: p.redoes,
		Kept: api.Each(p.result.Conflicts, func(c api.RestoreItem) string { return c.Path }),
	}
	failpoint.Hit("restore.before")
	if err := t.CommitSynced(ctx, safety, begun); err != nil {
		return err
	}
	p.result.Safety = safety.Number
	failpoint.Hit("restore.begun")
	return svc.apply(ctx, t, p.keeper, &p.result)
}

// apply finishes the restore of a task that is restoring: either all of it is done, or everything is as it was.
func (svc *Service) apply(ctx context.Context, t *store.Task, k *checkpoint.Keeper, out *api.RestoreResult) error {
	r := t.State().Restoring
	ended := task.RestoreEnded{Restore: r.Restore, Begun: r.Seq, Outcome: task.RestoreDone, Undoes: r.Undoes, Redoes: r.Redoes}
	// A restore that has begun is not interrupted, even when the caller gives up.
	ctx = context.WithoutCancel(ctx)
	left, failed := k.Apply(ctx, r.Files)
	var events []task.Event
	if failed == nil {
		ended.Files, ended.Left = len(r.Files)-len(left), left
		var err error
		if events, err = decodeEvents(r.Rewind, t.State().NextMessage()); err != nil {
			return &HalfwayError{Task: t.Ref.ID, Err: err}
		}
	} else {
		if _, err := k.Apply(ctx, task.Swapped(r.Files)); err != nil && !nothingReplaced(ctx, k, r.Files) {
			return &HalfwayError{Task: t.Ref.ID, Err: errors.Join(failed, err)}
		}
		ended.Outcome, ended.Undoes, ended.Redoes = task.RestoreRolledBack, 0, 0
	}
	failpoint.Hit("restore.applied")
	// The move of the histories comes first: both are one action, which undo takes back together.
	if err := t.CommitSynced(ctx, append(events, ended)...); err != nil {
		return &HalfwayError{Task: t.Ref.ID, Err: err}
	}
	failpoint.Hit("restore.ended")
	out.Outcome, out.Left = ended.Outcome, append([]string{}, ended.Left...)
	if failed != nil {
		return &RolledBackError{failed}
	}
	return nil
}

// nothingReplaced reports whether no file of an intent has its new content: then there is nothing to revert.
func nothingReplaced(ctx context.Context, k *checkpoint.Keeper, files []task.RestoreFile) bool {
	now, err := k.Look(ctx, pathsOf(files))
	return err == nil && !slices.ContainsFunc(files, func(f task.RestoreFile) bool { return now[f.Path].Same(f.To) && !f.From.Same(f.To) })
}

// change takes a task over, finishes a restore that a kill interrupted, and lets f change the task. The caller must
// call finish, which updates Roo's files of the task; after an error the task is as it was, and finish does nothing.
func (svc *Service) change(ctx context.Context, ref store.Ref, f func(t *store.Task, forked string) error) (
	finish func(context.Context) error, err error) {
	owned, err := svc.store.OwnLean(ctx, ref)
	if err != nil {
		return finished, err
	}
	if _, err = svc.FinishOwned(ctx, owned.Task); err == nil {
		err = f(owned.Task, owned.Forked)
	}
	if err != nil {
		return finished, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
	}
	return owned.Task.Close, nil
}

// finished is the finish of an operation that has changed nothing.
func finished(context.Context) error { return nil }

// FinishOwned finishes a restore of an owned task that a kill interrupted. The note describes what was done; "" when
// there was nothing to do.
func (svc *Service) FinishOwned(ctx context.Context, t *store.Task) (note string, err error) {
	if t.State().Restoring != nil && t.Standing() != store.Ours {
		// This root did not write the intent: it must not decide which files change.
		if err := t.Receive(ctx, string(t.Standing()), t.State().Person, false); err != nil {
			return "", err
		}
	}
	r := t.State().Restoring
	if r == nil {
		return "", nil
	}
	f, err := svc.openFilesOf(t.Ref, t.State(), r.Safety, "")
	if folder, missing := errors.AsType[*setup.WorkspaceError](err); missing && folder.Of == (api.FolderID{}) {
		// No other folder has these files.
		folder.Fault.What, folder.Fault.Try = "finish the interrupted restore of files: "+folder.Fault.What,
			"roost fork "+api.ShellWord(t.Ref.ID)+"  # to go on elsewhere; or put the folder back"
	}
	if err != nil {
		return "", fmt.Errorf("finish the restore of files of task %s that was interrupted: %w", t.Ref.ID, err)
	}
	var out api.RestoreResult
	err = svc.apply(ctx, t, f.keeper, &out)
	if back, ok := errors.AsType[*RolledBackError](err); ok {
		note = fmt.Sprintf("the interrupted restore to c%d could not be finished (%v): everything is as it was before", r.To, back.Err)
		err = nil
	} else if err == nil {
		note = fmt.Sprintf("finished the interrupted restore of %d files to c%d", len(r.Files), r.To)
	}
	return note, errors.Join(err, f.close())
}

// encodeEvents encodes events as the intent of a restore keeps them: one event, or a list of them.
func encodeEvents(events []task.Event) (json.RawMessage, error) {
	list, err := api.TryEach(events, task.Encode)
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode the events that move the histories: %w", err)
	case len(list) == 0:
		return nil, nil
	case len(list) == 1:
		return list[0], nil
	}
	return json.Marshal(list)
}

// decodeEvents decodes what encodeEvents encoded. A message among the events gets the next free number.
func decodeEvents(raw json.RawMessage, next uint64) ([]task.Event, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	list := []json.RawMessage{raw}
	if bytes.HasPrefix(raw, []byte("[")) {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("decode the events that move the histories: %w", err)
		}
	}
	var out []task.Event
	for _, line := range list {
		e, err := task.Decode(line)
		if err != nil {
			return nil, fmt.Errorf("decode the events that move the histories: %w", err)
		}
		if m, is := e.(task.MessageAdded); is {
			m.Message = next
			e, next = m, next+1
		}
		out = append(out, e)
	}
	return slices.Clip(out), nil
}

// Finish finishes a restore that a kill interrupted, where a task is restoring. The note describes what was done; "" when
// there was nothing to do.
//
// Errors are those of Restore.
func (svc *Service) Finish(ctx context.Context, given string) (note string, err error) {
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return "", err
	}
	isRestoring, err := store.FromView(ctx, svc.store, ref, func(v *store.View) (bool, error) {
		return v.State.Restoring != nil, nil
	})
	if err != nil || !isRestoring {
		return "", err
	}
	owned, err := svc.store.OwnLean(ctx, ref)
	if err != nil {
		return "", err
	}
	note, err = svc.FinishOwned(ctx, owned.Task)
	return note, errors.Join(err, owned.Task.Close(context.WithoutCancel(ctx)))
}

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
	r.DryRun = r.DryRun || o.DryRun
	o.DryRun = r.DryRun
	if !r.DryRun && !ref.Own {
		dry := r
		dry.DryRun = true
		if _, _, err := history.Rewind(ctx, svc.store, ref, dry); err != nil {
			return taken, files, finished, err // before the task is taken over
		}
	}
	var state *task.State
	files, finish, err = svc.restore(ctx, ref, o, func(ref store.Ref, s *task.State) (p plannedRestore, err error) {
		state = s
		taken, p, err = svc.planRewind(ctx, ref, s, r, o)
		return p, err
	})
	if taken.Forked, taken.DryRun = files.Forked, r.DryRun; err == nil && !r.DryRun {
		taken.Branch = store.BranchName(state.Seq)
	}
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
		p := plannedRestore{with: events, result: api.RestoreResult{ID: ref.ID, DryRun: o.DryRun, To: initialState()}}
		p.fillResult()
		return taken, p, nil
	}
	to := targetOf(s, events)
	p, err := svc.planRestore(ctx, ref, s, o, &to)
	p.with = events
	return taken, p, err
}

// UndoFiles undoes what an action did to files, or redoes it, with another restore. Files that others changed since stay as
// they are, and are in the result's Conflicts.
func (svc *Service) UndoFiles(ctx context.Context, t *store.Task, d task.Action, redo bool) (*api.RestoreResult, error) {
	s := t.State()
	if s.Received.Untrusted() && d.Seq < s.Begins { // an undo does not ask, and the log may name any file
		return nil, &ChangedSinceError{Task: t.Ref.ID, Safety: d.Safety, Redo: redo}
	}
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
	name := contentStore(s, d.Safety)
	root, err := svc.rootOf(s, name)
	if err != nil {
		return nil, err
	}
	f, err := svc.openFiles(t.Ref, root, name)
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
	now, err := p.keeper.Look(ctx, pathsOf(files))
	if err != nil {
		return fmt.Errorf("read the files of task %s: %w", p.ref.ID, err)
	}
	var plan checkpoint.Plan
	for _, f := range files {
		i := checkpoint.Item{Path: f.Path, Now: now[f.Path], Target: f.To, Act: checkpoint.ActRestore}
		switch {
		case i.Now.Same(f.To):
			continue
		case !i.Now.Same(f.From) && (i.Now.Kind != api.KindOther || f.From.Kind != api.KindGone): // not behind a new link
			i.Act, i.Conflict, i.Why = checkpoint.ActKeep, true, "others have changed it since"
		}
		plan.Items = append(plan.Items, i)
	}
	if p.plan, err = p.keeper.Resolve(ctx, plan, false); err != nil {
		return fmt.Errorf("plan to put back the files of task %s: %w", p.ref.ID, err)
	}
	p.fillResult()
	return nil
}

// rewindTarget is the state that a rewind gives the files: the one from before the first hidden reply. Where a reply stays
// and only some of its calls' outcomes are hidden, the files that those calls changed get the state from before them. What
// the other calls of that reply changed stays, like their outcomes.
type rewindTarget struct {
	checkpoint.Moment
	named map[string]int // the same for files that hidden calls were to change, by the paths that their tools used
}

// first returns the oldest checkpoint that files go back to.
func (m rewindTarget) first() int {
	return min(m.First(), checkpoint.Moment{Number: m.Number, Of: m.named}.First())
}

// of returns the moment with the files under the paths that checkpoints record.
func (m rewindTarget) of(f *taskFiles) checkpoint.Moment {
	out := checkpoint.Moment{Number: m.Number, Of: maps.Clone(m.Of)}
	for given, n := range m.named {
		paths, _ := f.recordedPaths(given) // none: it is outside of what checkpoints record
		for _, path := range paths {
			earliest(out.Of, path, n)
		}
	}
	return out
}

// earliest sets the checkpoint of a path, unless it has an older one.
func earliest(of map[string]int, path string, n int) {
	if last, is := of[path]; !is || n < last {
		of[path] = n
	}
}

// targetOf returns the target of a rewind, which its events describe.
func targetOf(s *task.State, events []task.Event) rewindTarget {
	m := rewindTarget{Moment: checkpoint.Moment{Number: s.CheckpointAt(firstHiddenReply(s, events)), Of: map[string]int{}},
		named: map[string]int{}}
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

// stateBeforeCall returns the newest checkpoint from before a call had any effect, and what the call changed as far
// as a survey found it. A call that had nothing to record has no checkpoint of its own: then those of the calls
// before it in its reply count.
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
			changed = api.Each(c.Files, func(f task.CheckpointFile) string { return f.Path })
			return c.Number - 1, changed // the others that name a call were taken before it
		default:
			number = c.Number
		}
	}
	return number, nil
}

// firstHiddenReply returns the message whose effects a rewind undoes first: the first hidden reply, because only
// replies change files. A hidden message of the user is not the bound, because the user may have edited the files
// after it.
func firstHiddenReply(s *task.State, events []task.Event) uint64 {
	first := ^uint64(0)
	for _, e := range events {
		r, is := e.(task.Rewound)
		if !is || len(r.Hide) == 0 {
			continue
		}
		first = min(first, r.Hide[0][0])
		for _, m := range s.API() {
			hides := func(run task.Run64) bool { return run[0] <= m.ID && m.ID <= run[1] }
			if m.Kind() == "assistant" && slices.ContainsFunc(r.Hide, hides) {
				return m.ID
			}
		}
	}
	return first
}
