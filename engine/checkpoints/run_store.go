package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
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

// ForRun gives a run's agent what it keeps files by.
func (svc *Service) ForRun(t *store.Task, w *workspace.Workspace) *RunStore {
	return &RunStore{service: svc, ws: w, task: t}
}

// CheckFree refuses a run in a workspace with whose checkpoints a process of an earlier version works: both would
// write, in two formats. The error wraps store.ErrForeignBusy.
func (svc *Service) CheckFree(w *workspace.Workspace) error {
	c, err := checkpoint.OpenContents(svc.dir(), checkpoint.NameOf(w.Root()))
	if err != nil {
		return nil //nolint:nilerr // the first write reports it
	}
	used, err := c.UsedByEarlier()
	if err = errors.Join(err, c.Close()); err == nil && used {
		err = inUse(checkpoint.ErrInUse)
	}
	return err
}

// inUse makes an error that wraps checkpoint.ErrInUse wrap store.ErrForeignBusy too: it is reported like another program
// at work.
func inUse(err error) error {
	if errors.Is(err, checkpoint.ErrInUse) {
		return fmt.Errorf("%w: %w", store.ErrForeignBusy, err)
	}
	return err
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
	keeper, err := k.service.openKeeper(k.ws)
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

// Name is the store that keeps the contents of this workspace.
func (k *RunStore) Name() string { return checkpoint.NameOf(k.ws.Root()) }

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
	var s *checkpoint.Survey
	if call == "" {
		s, err = keeper.Survey(ctx)
	} else {
		s, err = keeper.SurveyFor(ctx, nameInStore(k.task.Ref), call)
	}
	if err != nil {
		return nil, err
	}
	return survey{s}, nil
}

// Interrupted is the survey before a call whose run was killed; nil when there is none.
func (k *RunStore) Interrupted(ctx context.Context, call string) (checkpoints.Survey, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	s, err := keeper.Interrupted(ctx, nameInStore(k.task.Ref), call)
	if s == nil || err != nil {
		return nil, err
	}
	return survey{s}, nil
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
		k.service.noteRoot(keeper.Name(), k.ws.Root())
	}
	k.last = commit
	return keeper.Name(), commit, nil
}

// survey is a checkpoint.Survey in the form of agent/checkpoints.Survey.
type survey struct{ *checkpoint.Survey }

func (s survey) Unheld() string {
	u := s.Survey.Unheld()
	if !u.Any() {
		return ""
	}
	return u.String()
}

func (s survey) Hidden() string { return s.Survey.Unheld().HiddenText() }
