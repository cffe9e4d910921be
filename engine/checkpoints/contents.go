package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// RunStore is a run's agent/checkpoints.Store. It opens the store of contents, and creates it, before the first write or
// command of the run.
type RunStore struct {
	service *Service
	ws      *workspace.Workspace
	task    *store.Task

	mu   sync.Mutex
	k    *checkpoint.Keeper
	last string // the commit of the newest checkpoint that was saved here
}

// ForRun returns the store with which a run's agent keeps files.
func (svc *Service) ForRun(t *store.Task, w *workspace.Workspace) *RunStore {
	return &RunStore{service: svc, ws: w, task: t}
}

// CheckFree refuses a run in a workspace while a process of an earlier version works with its checkpoints: both would
// write, in two formats. The error wraps store.ErrForeignBusy.
func (svc *Service) CheckFree(w *workspace.Workspace) error {
	used := false
	err := svc.withContents(svc.storeNames(w.Root())[0], func(c *checkpoint.Contents) (err error) {
		used, err = c.UsedByEarlier()
		return err
	})
	if err != nil || !used {
		return nil //nolint:nilerr // the first write reports it
	}
	return inUse(checkpoint.ErrInUse)
}

// withContents opens the contents of a store for f.
func (svc *Service) withContents(name string, f func(*checkpoint.Contents) error) error {
	c, err := svc.place.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// refusal is why a workspace gets no checkpoints.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == checkpoints.ErrNone }

func (r refusal) Unwrap() error { return r.error }

func (k *RunStore) open() (*checkpoint.Keeper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.k != nil {
		return k.k, nil
	}
	keeper, err := k.service.openKeeper(k.ws, "")
	if errors.Is(err, checkpoint.ErrRefused) {
		return nil, refusal{err}
	}
	if err != nil {
		return nil, err
	}
	k.k = keeper
	return keeper, nil
}

// Close closes what the run had open.
func (k *RunStore) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.k == nil {
		return nil
	}
	return k.k.Close()
}

// Name returns the store that keeps the contents of this workspace.
func (k *RunStore) Name() string { return k.service.storeNames(k.ws.Root())[0] }

// Hold keeps the contents of files.
func (k *RunStore) Hold(ctx context.Context, paths []string) (map[string]api.FileVersion, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	return keeper.Hold(ctx, paths)
}

// Survey observes the workspace before something changes it; call names the command that does, "" = none.
func (k *RunStore) Survey(ctx context.Context, known []string, call string) (checkpoints.Survey, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	keeper.Know(known...)
	return keeper.SurveyFor(ctx, nameInStore(k.task.Ref), call)
}

// Interrupted returns the survey before a call whose run was killed; nil when there is none.
func (k *RunStore) Interrupted(ctx context.Context, call string) (checkpoints.Survey, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	s, err := keeper.Interrupted(ctx, nameInStore(k.task.Ref), call)
	if s == nil { // no survey at all, and not one without a value
		return nil, err
	}
	return s, err
}

// Save makes a checkpoint durable, and names its store and commit.
func (k *RunStore) Save(ctx context.Context, c task.CheckpointSaved, files map[string]api.FileVersion) (name, commit string, err error) {
	keeper, err := k.open()
	if err != nil {
		return "", "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == "" {
		k.last = newestCommit(k.task.State(), keeper.Name())
	}
	commit, err = keeper.Save(ctx, checkpoint.Snapshot{
		Task: nameInStore(k.task.Ref), Number: c.Number, Title: c.Title, At: k.service.now(), Parent: k.last, Files: files,
		Changed: c.Files,
	})
	if err != nil {
		return "", "", err
	}
	if k.last == "" {
		path := filepath.Join(k.service.place.Dir, keeper.Name(), rootFile)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			// Only restoring to an earlier workspace of a task depends on it.
			_ = os.MkdirAll(filepath.Dir(path), 0o700) // shared contents have no folder yet
			_ = os.WriteFile(path, []byte(k.ws.Root()+"\n"), 0o600)
		}
	}
	k.last = commit
	return keeper.Name(), commit, nil
}

// Save makes a checkpoint of the present contents of a task's files. What others changed since the task's last checkpoint
// is then distinct from what the task changes next. There is no new checkpoint when no file differs from the
// newest one. The caller must call finish, which updates Roo's files of the task.
//
// Errors: ErrNone where the task has no checkpoint yet, *journal.BusyError while it runs, and those of Restore.
func (svc *Service) Save(ctx context.Context, given string) (
	out api.SavedCheckpoint, finish func(context.Context) error, err error) {
	ref, err := svc.store.Find(ctx, given)
	if err == nil {
		err = svc.requireCheckpoints(ctx, ref)
	}
	if err != nil {
		return out, finished, err
	}
	finish, err = svc.change(ctx, ref, func(t *store.Task, _ string) (err error) {
		out.Checkpoint, err = svc.saveNow(ctx, t)
		return err
	})
	out.Task, out.Saved = ref.ID, out.Checkpoint != nil
	return out, finish, err
}

// saveNow returns the new checkpoint; nil when there is none.
func (svc *Service) saveNow(ctx context.Context, t *store.Task) (_ *api.Checkpoint, err error) {
	s := t.State()
	if len(s.Checkpoints) == 0 {
		return nil, ErrNone
	}
	root, err := svc.resolver().FindWorkspace(s.Settings)
	if err != nil {
		return nil, err
	}
	f, err := svc.openFiles(t.Ref, root, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	held, err := f.holdContents(ctx, checkpoint.Tracked(checkpointsIn(s, f.keeper.Name()), nil))
	if err != nil {
		return nil, fmt.Errorf("keep the files of task %s: %w", t.Ref.ID, err)
	}
	c, err := svc.saveCheckpoint(ctx, f, s, task.ReasonManual, held, nil)
	if err != nil || len(c.Files) == 0 {
		return nil, err
	}
	if err := t.CommitSynced(ctx, c); err != nil {
		return nil, err
	}
	return new(describeNumber(t.State(), c.Number)), nil
}

// DiffOptions select the states to compare.
type DiffOptions struct {
	From  string   // a checkpoint, as for a restore; "" = before the newest change
	To    string   // a checkpoint, or "now"; "" = now
	Paths []string // files or folders; none = all
	Patch bool     // with the difference by lines
}

// Diff compares two checkpoints, or one with the present files. It changes nothing.
func (svc *Service) Diff(ctx context.Context, given string, o DiffOptions) (api.Diff, error) {
	out := api.Diff{Files: []api.FileDiff{}}
	ref, err := svc.store.FindLatest(ctx, given)
	if err != nil {
		return out, err
	}
	out.ID = ref.ID
	err = svc.store.WithView(ctx, ref, func(v *store.View) error { return svc.diff(ctx, v, o, &out) })
	return out, err
}

func (svc *Service) diff(ctx context.Context, v *store.View, o DiffOptions, out *api.Diff) (err error) {
	s := v.State
	from, err := resolve(s, o.From)
	if err != nil {
		return err
	}
	f, err := svc.openFilesOf(v.Ref, s, from, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	list := checkpointsIn(s, f.keeper.Name())
	options := checkpoint.DiffOptions{Stat: !o.Patch}
	if options.Paths, err = f.recordedPaths(o.Paths...); err != nil {
		return err
	}
	out.From = fmt.Sprintf("c%d", from)
	to, now, err := f.newer(ctx, s, list, o.To, options.Paths)
	if err != nil {
		return err
	}
	if out.To = fmt.Sprintf("c%d", to); to == onDisk {
		out.To, options.Now = "now", true
	}
	diffs, err := f.keeper.Diff(ctx, checkpoint.StateAt(list, from), now, options)
	if len(diffs) > 0 {
		authors, all := f.authors(s), checkpoint.Transitions(list)
		for i := range diffs {
			authors.sign(ctx, &diffs[i], all[diffs[i].Path], from, to)
		}
	}
	out.Files = append(out.Files, diffs...)
	return err
}

// onDisk is the number of the newer side of a difference that is no checkpoint, but what is on the disk.
const onDisk = -1

// newer returns the newer side of a difference: a checkpoint, or what is on the disk for "now" and "".
func (f *taskFiles) newer(ctx context.Context, s *task.State, list []task.CheckpointSaved, given string, paths []string) (
	number int, files map[string]api.FileVersion, err error) {
	if given == "" || given == "now" {
		files, err = f.keeper.Look(ctx, checkpoint.Tracked(list, paths))
		return onDisk, files, err
	}
	if number, err = resolve(s, given); err != nil {
		return 0, nil, err
	}
	return number, checkpoint.StateAt(list, number), nil
}

// newTaskGrace is the age from which contents of a task without a folder count as those of a removed task: a fork has
// its contents before its folder exists. An hour is far longer than any fork takes.
const newTaskGrace = time.Hour

// Collect removes contents that no task needs from all stores. It never removes what a task needs, also one in the trash,
// even when it is killed or tasks run at the same time. With dryRun it only reports what it would remove.
func (svc *Service) Collect(ctx context.Context, dryRun bool) ([]api.CollectedStore, error) {
	names, err := svc.place.List(ctx)
	if err != nil || len(names) == 0 {
		return []api.CollectedStore{}, err
	}
	live, err := svc.liveOwners(ctx)
	if err != nil {
		return nil, err
	}
	out := []api.CollectedStore{}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		c := api.CollectedStore{Store: name, Removed: []string{}}
		c.Err = inUse(svc.withContents(c.Store, func(s *checkpoint.Contents) error {
			return svc.collectStore(ctx, s, &c, live, dryRun)
		}))
		out = append(out, c)
	}
	return out, nil
}

func (svc *Service) collectStore(ctx context.Context, s *checkpoint.Contents, c *api.CollectedStore,
	live map[string]bool, dryRun bool) error {
	owners, err := s.Owners(ctx)
	if err != nil {
		return err
	}
	for owner, saved := range owners {
		if live[owner] || time.Since(saved) < newTaskGrace {
			c.Tasks++
			continue
		}
		c.Removed = append(c.Removed, owner)
		if dryRun {
			continue
		}
		if err := s.Forget(ctx, owner); err != nil {
			return err
		}
	}
	if !dryRun {
		checkpoint.SweepCalls(filepath.Join(svc.place.Dir, c.Store), live, newTaskGrace)
	}
	did, err := svc.removeUnused(ctx, s, c.Store, dryRun, c.Removed...)
	c.Objects, c.Before, c.After = did.Removed, did.Before, did.After
	return err
}

// removeUnused collects one store. What the newest survey of its workspace relies on stays, where the workspace still
// exists. A dry run treats the owners in without as removed.
func (svc *Service) removeUnused(ctx context.Context, s *checkpoint.Contents, name string, dryRun bool,
	without ...string) (content.Collected, error) {
	surveys := false
	if data, err := os.ReadFile(filepath.Join(svc.place.Dir, name, rootFile)); err == nil {
		ws, err := svc.resolver().OpenWorkspace(strings.TrimSpace(string(data)))
		surveys = err == nil && slices.Contains(svc.storeNames(ws.Root()), name)
	}
	return s.Collect(ctx, dryRun, surveys, without...)
}

// liveOwners returns the owners of contents of all tasks that exist, including those in the trash and those that are
// being created. When they cannot be listed, nothing is collected.
func (svc *Service) liveOwners(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	add := func(ref store.Ref) { out[checkpoint.OwnerOf(nameInStore(ref))] = true }
	if svc.shared != nil {
		tasks, err := svc.shared.Tasks(ctx)
		for _, ref := range tasks {
			add(ref)
		}
		if err != nil {
			err = fmt.Errorf("list the tasks whose checkpoints stay: %w", err)
		}
		return out, err
	}
	root := svc.store.Root()
	list := func(keep func(name string), at ...string) error {
		entries, err := os.ReadDir(filepath.Join(append([]string{root}, at...)...))
		if errors.Is(err, os.ErrNotExist) && at[0] != "tasks" { // every store of contents had tasks: theirs is lost, or not there now
			return nil
		}
		for _, entry := range entries {
			keep(entry.Name())
		}
		return err
	}
	own := func(name string) {
		id, _, _ := strings.Cut(name, "~")
		if fork, ok := strings.CutPrefix(id, ".fork-"); ok { // a fork that is being created: see store.TempName
			id = fork[:max(strings.LastIndexByte(fork, '-'), 0)]
		}
		add(store.Ref{ID: id, Own: true})
	}
	var sources []string
	// Tasks are listed twice: one may come back from the trash between the first list of tasks and the list of the
	// trash.
	err := errors.Join(list(own, "tasks"), list(own, "trash"), list(own, "tasks"),
		list(func(source string) { sources = append(sources, source) }, "adopted"))
	for _, source := range sources {
		err = errors.Join(err, list(func(id string) { add(store.Ref{ID: id, Source: source}) }, "adopted", source))
	}
	return out, api.Failed(err, "list the tasks whose checkpoints stay")
}

// Forget takes the contents of a purged task from it in all stores, unless another task has the same id. It returns the
// stores that held checkpoints of it, for RemoveUnused. The task may have had several workspaces.
func (svc *Service) Forget(ctx context.Context, purged store.Ref) (stores []string, err error) {
	live, err := svc.liveOwners(ctx)
	if err != nil {
		return nil, nil //nolint:nilerr // the next collection removes them
	}
	owner := checkpoint.OwnerOf(nameInStore(purged))
	if live[owner] {
		return nil, nil
	}
	names, err := svc.place.List(ctx)
	for _, name := range names {
		err = errors.Join(err, svc.withContents(name, func(s *checkpoint.Contents) error {
			owners, err := s.Owners(ctx)
			if _, has := owners[owner]; has {
				stores = append(stores, name)
			}
			return errors.Join(err, s.Forget(ctx, owner))
		}))
	}
	return stores, api.Failed(err, "the task is removed; its checkpoints could not be removed")
}

// RemoveUnused removes what no task needs from stores, after tasks were purged.
func (svc *Service) RemoveUnused(ctx context.Context, stores []string) (err error) {
	slices.Sort(stores)
	for _, name := range slices.Compact(stores) {
		err = errors.Join(err, svc.withContents(name, func(s *checkpoint.Contents) error {
			_, err := svc.removeUnused(ctx, s, name, false)
			return err
		}))
	}
	return api.Failed(err, "the task is removed; contents of its checkpoints remain until roost checkpoint gc removes them")
}

// ShareWithFork keeps the checkpoints of a state of from for a new fork of it, before the fork exists, so that neither
// task needs the other one.
func (svc *Service) ShareWithFork(ctx context.Context, from store.Ref, id string, s *task.State) error {
	newest := map[string]string{} // commits by store
	for _, c := range s.Checkpoints {
		if c.Commit != "" && c.Store != "" {
			newest[c.Store] = c.Commit
		}
	}
	for name, commit := range newest {
		if _, err := os.Stat(filepath.Join(svc.place.Dir, name)); err != nil && svc.place.Stores == nil {
			continue // its contents are lost already
		}
		old, fork := checkpoint.OwnerOf(nameInStore(from)), checkpoint.OwnerOf(nameInStore(store.Ref{ID: id, Own: true}))
		err := svc.withContents(name, func(c *checkpoint.Contents) error { return c.Share(ctx, commit, old, fork) })
		if err != nil {
			return fmt.Errorf("keep the checkpoints that the task shares: %w", inUse(err))
		}
	}
	return nil
}

// Verify reads every content that the checkpoints of tasks rely on, each once, and compares it with what the journals
// record. With repair, a damaged content is kept again where the file in the workspace still has the same bytes. Nothing
// else is written, and nothing is removed. It adds what it finds to a checkup.
func (svc *Service) Verify(ctx context.Context, ids []string, repair bool, out *api.Checkup) error {
	refs, err := svc.store.FindAll(ctx, ids)
	if err != nil {
		return err
	}
	check := checkpoint.NewVerifier(svc.place)
	for _, ref := range refs {
		err := svc.store.WithView(ctx, ref, func(v *store.View) error { return svc.verifyTask(ctx, ref, v.State, check, repair, out) })
		if err != nil && ctx.Err() == nil {
			continue // the task itself cannot be read, which the check of its journal reports
		}
		if err != nil {
			break
		}
	}
	out.Contents, out.ContentBytes = check.Objects, check.Bytes
	return errors.Join(check.Close(), ctx.Err())
}

func (svc *Service) verifyTask(ctx context.Context, ref store.Ref, s *task.State, check *checkpoint.Verifier,
	repair bool, out *api.Checkup) error {
	seen := map[string]bool{}
	for c, f := range recorded(s) {
		err := check.Verify(ctx, c.Store, f.Now)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || seen[f.Path+f.Now.Blob] {
			continue
		}
		seen[f.Path+f.Now.Blob] = true
		if errors.Is(err, checkpoint.ErrUnkept) && mayLackContents(s) && !check.Lost(ctx, c.Store, nameInStore(ref)) {
			continue
		}
		found := api.Finding{
			ID: ref.ID, Path: ref.Dir, File: filepath.Join(svc.place.Dir, c.Store),
			Problem:   fmt.Sprintf("checkpoint c%d: the content of %s: %v", c.Number, f.Path, err),
			Recovered: "what the other checkpoints hold", Lost: "the content of " + f.Path + " at that time",
		}
		if repair && svc.repairContent(ctx, ref, s, c.Store, f.Path, f.Now) {
			found.Recovered, found.Lost = "the file in the workspace has the same bytes, and they are kept again", ""
			out.Repaired = append(out.Repaired, found)
			continue
		}
		out.Damaged = append(out.Damaged, found)
	}
	return nil
}

// repairContent keeps a damaged content again, where the file in the workspace still has it.
func (svc *Service) repairContent(ctx context.Context, ref store.Ref, s *task.State, name, path string, v api.FileVersion) bool {
	root, err := svc.rootOf(s, name)
	if err != nil {
		return false
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return false
	}
	f, err := svc.openFiles(ref, root, name)
	if err != nil {
		return false
	}
	defer func() { _ = f.close() }() // what it has kept is durable
	k := f.keeper
	if k.Name() != name {
		return false
	}
	now, err := k.Look(ctx, []string{path})
	if err != nil || now[path].Hash != v.Hash || v.Hash == "" {
		return false
	}
	held, err := k.HoldAt(ctx, []string{path})
	if err != nil || held[path].Blob == "" || held[path].Hash != v.Hash {
		return false
	}
	fresh := checkpoint.NewVerifier(svc.place)
	defer func() { _ = fresh.Close() }() // it only reads
	return fresh.Verify(ctx, name, v) == nil
}
