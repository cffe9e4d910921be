package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// newTaskGrace is the age from which contents of a task without a folder count as those of a removed task: a fork has
// its contents before its folder exists. An hour is far longer than any fork takes.
const newTaskGrace = time.Hour

// Collect removes contents that no task needs from all stores. It never removes what a task needs, also one in the trash,
// even when it is killed or tasks run at the same time. With dryRun it only reports what it would remove.
func (svc *Service) Collect(ctx context.Context, dryRun bool) ([]api.CollectedStore, error) {
	entries, err := os.ReadDir(svc.dir())
	if errors.Is(err, os.ErrNotExist) {
		return []api.CollectedStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the stores of checkpoints: %w", err)
	}
	live, err := svc.liveOwners()
	if err != nil {
		return nil, err
	}
	out := []api.CollectedStore{}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		c := api.CollectedStore{Store: entry.Name(), Removed: []string{}}
		c.Err = inUse(svc.collectStore(ctx, &c, live, dryRun))
		out = append(out, c)
	}
	return out, nil
}

func (svc *Service) collectStore(ctx context.Context, c *api.CollectedStore, live map[string]bool, dryRun bool) (err error) {
	s, err := checkpoint.OpenContents(svc.dir(), c.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	owners, err := s.Owners()
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
		if err := s.Forget(owner); err != nil {
			return err
		}
	}
	if !dryRun {
		checkpoint.SweepCalls(filepath.Join(svc.dir(), c.Store), live, newTaskGrace)
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
	if data, err := os.ReadFile(filepath.Join(svc.dir(), name, rootFile)); err == nil {
		ws, err := svc.resolver.OpenWorkspace(strings.TrimSpace(string(data)))
		surveys = err == nil && checkpoint.NameOf(ws.Root()) == name
	}
	return s.Collect(ctx, dryRun, surveys, without...)
}

// liveOwners are the owners of contents of all tasks that exist, including those in the trash and those that are being created. When
// they cannot be listed, nothing is collected.
func (svc *Service) liveOwners() (map[string]bool, error) {
	out := map[string]bool{}
	root := svc.store.Root()
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
		if fork, ok := strings.CutPrefix(id, ".fork-"); ok { // a fork that is being created: see store.makeFork
			id = fork[:max(strings.LastIndexByte(fork, '-'), 0)]
		}
		out[checkpoint.OwnerOf(nameInStore(store.Ref{ID: id, Own: true}))] = true
	}
	var sources []string
	// Tasks are listed twice: one may come back from the trash between the first list of tasks and the list of the
	// trash.
	err := errors.Join(list(own, "tasks"), list(own, "trash"), list(own, "tasks"),
		list(func(source string) { sources = append(sources, source) }, "adopted"))
	for _, source := range sources {
		err = errors.Join(err, list(func(id string) {
			out[checkpoint.OwnerOf(nameInStore(store.Ref{ID: id,
				Source: source}))] = true
		}, "adopted", source))
	}
	if err != nil {
		return nil, fmt.Errorf("list the tasks whose checkpoints stay: %w", err)
	}
	return out, nil
}

// Forget takes the contents of a purged task from it in all stores, unless another task has the same id. It returns the
// stores that held checkpoints of it, for RemoveUnused. The task may have had several workspaces.
func (svc *Service) Forget(purged store.Ref) (stores []string, err error) {
	live, err := svc.liveOwners()
	if err != nil {
		return nil, nil //nolint:nilerr // the next collection removes them
	}
	owner := checkpoint.OwnerOf(nameInStore(purged))
	if live[owner] {
		return nil, nil
	}
	entries, err := os.ReadDir(svc.dir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s, bad := checkpoint.OpenContents(svc.dir(), entry.Name())
		if bad == nil {
			owners, unread := s.Owners()
			if _, has := owners[owner]; has {
				stores = append(stores, entry.Name())
			}
			bad = errors.Join(unread, s.Forget(owner), s.Close())
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		return stores, fmt.Errorf("the task is removed; its checkpoints could not be removed: %w", err)
	}
	return stores, nil
}

// RemoveUnused removes what no task needs from stores, after tasks were purged.
func (svc *Service) RemoveUnused(ctx context.Context, stores []string) (err error) {
	slices.Sort(stores)
	for _, name := range slices.Compact(stores) {
		s, bad := checkpoint.OpenContents(svc.dir(), name)
		if bad == nil {
			_, bad = svc.removeUnused(ctx, s, name, false)
			bad = errors.Join(bad, s.Close())
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		return fmt.Errorf("the task is removed; contents of its checkpoints remain until roost checkpoint gc removes them: %w", err)
	}
	return nil
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
		if _, err := os.Stat(filepath.Join(svc.dir(), name)); err != nil {
			continue // its contents are lost already
		}
		c, err := checkpoint.OpenContents(svc.dir(), name)
		if err != nil {
			return err
		}
		err = c.Share(ctx, commit, checkpoint.OwnerOf(nameInStore(from)), checkpoint.OwnerOf(nameInStore(store.Ref{ID: id, Own: true})))
		if err = errors.Join(inUse(err), c.Close()); err != nil {
			return fmt.Errorf("keep the checkpoints that it shares: %w", err)
		}
	}
	return nil
}
