package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/checkpoint/object"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
)

// CollectedStore is what cleaning one store of contents did, or would do.
type CollectedStore struct {
	Store   string   `json:"store"`
	Tasks   int      `json:"tasks"`   // whose checkpoints it keeps
	Removed []string `json:"removed"` // tasks that are no more, whose checkpoints went
	Objects int      `json:"objects"` // that went
	Before  int64    `json:"before"`  // bytes on the disk
	After   int64    `json:"after"`
	Err     error    `json:"-"`
}

// unborn is how young a task's name in a store must be for its task to be still in the
// making.
const unborn = time.Hour

// taskRefs begins the refs of tasks: see object.RefName.
const taskRefs = "refs/roost/"

// CollectCheckpoints removes contents that no task needs, from all stores. What a task
// needs, also one in the trash, is never lost by it, whatever is killed or runs meanwhile.
// With dryRun it only says what would go.
func (e *Engine) CollectCheckpoints(ctx context.Context, dryRun bool) ([]CollectedStore, error) {
	entries, err := os.ReadDir(e.checkpointsDir())
	if errors.Is(err, os.ErrNotExist) {
		return []CollectedStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the stores of checkpoints: %w", err)
	}
	living, err := e.living()
	if err != nil {
		return nil, err
	}
	out := []CollectedStore{}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		c := CollectedStore{Store: entry.Name(), Removed: []string{}}
		c.Err = e.collect(ctx, &c, living, dryRun)
		out = append(out, c)
	}
	return out, nil
}

func (e *Engine) collect(ctx context.Context, c *CollectedStore, living map[string]bool, dryRun bool) (err error) {
	dir := filepath.Join(e.checkpointsDir(), c.Store)
	s, err := object.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	refs, err := s.Refs()
	if err != nil {
		return err
	}
	var gone []string
	for ref := range refs {
		name, ours := strings.CutPrefix(ref, taskRefs)
		if !ours || living[ref] || young(filepath.Join(dir, filepath.FromSlash(ref))) {
			c.Tasks++
			continue
		}
		c.Removed, gone = append(c.Removed, name), append(gone, ref)
		if dryRun {
			continue
		}
		if err := s.DeleteRef(ref); err != nil {
			return err
		}
	}
	if !dryRun {
		checkpoint.SweepCalls(dir, living, unborn)
	}
	did, err := e.collectIn(ctx, s, c.Store, dryRun, gone...)
	c.Objects, c.Before, c.After = did.Removed, did.Before, did.After
	return err
}

// collectIn cleans one store; what the newest look at its workspace relies on stays, where
// there still is one. A dry run takes the refs in without for removed.
func (e *Engine) collectIn(ctx context.Context, s *object.Store, name string, dryRun bool, without ...string) (object.Collected, error) {
	if data, err := os.ReadFile(filepath.Join(e.checkpointsDir(), name, rootFile)); err == nil {
		if ws, err := e.resolver.OpenWorkspace(strings.TrimSpace(string(data))); err == nil && checkpoint.NameOf(ws.Root()) == name {
			if k, err := e.keeper(ws); err == nil {
				did, err := k.Collect(ctx, dryRun, without...)
				return did, errors.Join(err, k.Close())
			}
		}
	}
	return s.Collect(ctx, object.CollectOptions{DryRun: dryRun, Without: without})
}

func young(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) < unborn
}

// living are the refs of all tasks that there are, in their places, in the trash and in
// the making. When that cannot be told nothing is collected.
func (e *Engine) living() (map[string]bool, error) {
	out := map[string]bool{}
	root := e.store.Root()
	list := func(keep func(name string), at ...string) error {
		entries, err := os.ReadDir(filepath.Join(append([]string{root}, at...)...))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		for _, entry := range entries {
			keep(entry.Name())
		}
		return err
	}
	own := func(name string) {
		id, _, _ := strings.Cut(name, "~")
		if fork, ok := strings.CutPrefix(id, ".fork-"); ok { // one in the making: see store.makeFork
			id = fork[:max(strings.LastIndexByte(fork, '-'), 0)]
		}
		out[object.RefName(keptAs(store.Ref{ID: id, Own: true}))] = true
	}
	var sources []string
	// Tasks are listed again: one may come back from the trash meanwhile, behind the first
	// list and in front of the second.
	err := errors.Join(list(own, "tasks"), list(own, "trash"), list(own, "tasks"), list(func(source string) { sources = append(sources, source) }, "adopted"))
	for _, source := range sources {
		err = errors.Join(err, list(func(id string) { out[object.RefName(keptAs(store.Ref{ID: id, Source: source}))] = true }, "adopted", source))
	}
	if err != nil {
		return nil, fmt.Errorf("list the tasks whose checkpoints stay: %w", err)
	}
	return out, nil
}

// Purge is store.Purge, and takes the task's checkpoints with it, with the contents that no
// other task needs. Where those could not be removed the error says so, and the task is
// gone all the same.
func (e *Engine) Purge(ctx context.Context, given string) (trash.DeletedTask, error) {
	stores := map[string]bool{}
	t, err := e.purge(ctx, given, stores)
	return t, errors.Join(err, e.clear(ctx, stores))
}

// PurgeAll is Purge of several, until an error of one or of told, which is told of each
// that is gone. Contents are removed once, at the end.
func (e *Engine) PurgeAll(ctx context.Context, given []string, told func(trash.DeletedTask) error) (err error) {
	stores := map[string]bool{}
	for _, g := range given {
		var t trash.DeletedTask
		if t, err = e.purge(ctx, g, stores); err == nil {
			err = told(t)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, e.clear(ctx, stores))
}

// purge adds the stores that the task had checkpoints in.
func (e *Engine) purge(ctx context.Context, given string, stores map[string]bool) (trash.DeletedTask, error) {
	t, err := trash.Purge(ctx, e.store, given)
	if err != nil {
		return t, err
	}
	living, err := e.living()
	if err != nil {
		return t, nil //nolint:nilerr // the next collection does it
	}
	ref := object.RefName(keptAs(store.Ref{ID: t.ID, Source: t.Source, Own: !t.Hidden}))
	if living[ref] {
		return t, nil // another one of that id is there
	}
	return t, e.forget(ref, stores)
}

// forget takes a task's checkpoints out of all stores: it may have had several workspaces.
func (e *Engine) forget(ref string, stores map[string]bool) error {
	entries, err := os.ReadDir(e.checkpointsDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s, bad := object.Open(filepath.Join(e.checkpointsDir(), entry.Name()))
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		checkpoint.ForgetCalls(filepath.Join(e.checkpointsDir(), entry.Name()), ref)
		if _, has := s.Ref(ref); has == nil {
			err = errors.Join(err, s.DeleteRef(ref))
			stores[entry.Name()] = true
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return fmt.Errorf("the task is gone; its checkpoints could not be taken out: %w", err)
	}
	return nil
}

// clear removes what nobody needs from stores.
func (e *Engine) clear(ctx context.Context, stores map[string]bool) (err error) {
	for name := range stores {
		s, bad := object.Open(filepath.Join(e.checkpointsDir(), name))
		if bad == nil {
			_, bad = e.collectIn(ctx, s, name, false)
			bad = errors.Join(bad, s.Close())
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		return fmt.Errorf("the task is gone; contents of files that its checkpoints had are still there, until roost checkpoint gc removes them: %w", err)
	}
	return nil
}

// Fork is store.Fork. The checkpoints that the new task shares with the other one are
// kept for it before there is anything of it, so that neither needs the other one to live.
func (e *Engine) Fork(ctx context.Context, ref store.Ref, o history.ForkOptions) (history.ForkResult, func(context.Context) error, error) {
	change := o.Settings
	o.Settings = func(s *task.Settings) error {
		if change != nil {
			if err := change(s); err != nil {
				return err
			}
		}
		return e.resolver.CheckWorkspace(s.Workspace)
	}
	o.Before = func(id string, s *task.State) error {
		commits := map[string]string{} // the newest, by store
		for _, c := range s.Checkpoints {
			if c.Commit != "" && c.Store != "" {
				commits[c.Store] = c.Commit
			}
		}
		for name, commit := range commits {
			dir := filepath.Join(e.checkpointsDir(), name)
			if _, err := os.Stat(dir); err != nil {
				continue // its contents are lost already
			}
			st, err := object.Open(dir)
			if err != nil {
				return err
			}
			if st.Has(object.ID(commit)) {
				err = st.SetRef(object.RefName(keptAs(store.Ref{ID: id, Own: true})), object.ID(commit))
			}
			if err = errors.Join(err, st.Close()); err != nil {
				return fmt.Errorf("keep the checkpoints that it shares: %w", err)
			}
		}
		return nil
	}
	return history.Fork(ctx, e.store, ref, o)
}
