package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// checkpointsDir is where the contents of files are kept, one store per workspace.
func (e *Engine) checkpointsDir() string { return filepath.Join(e.store.Root(), "checkpoints") }

// keeper opens the checkpoints of a workspace.
func (e *Engine) keeper(w *workspace.Workspace) (*checkpoint.Keeper, error) {
	c := e.opt.Config
	return checkpoint.Open(e.checkpointsDir(), w, checkpoint.Options{
		MaxFile: c.CheckpointFile, MaxSurvey: c.CheckpointSurvey, MaxStore: c.CheckpointStore,
	})
}

// keptAs is the name under which a task's contents are kept. Ids of other tools' tasks
// are theirs alone in their own storage only.
func keptAs(ref store.Ref) string {
	if ref.Own {
		return ref.ID
	}
	return ref.Source + "." + ref.ID
}

// keeping is a run's checkpoints.Store. Nothing is opened, and nothing made, before the
// first write or command.
type keeping struct {
	engine *Engine
	ws     *workspace.Workspace
	task   *store.Task

	mu   sync.Mutex
	k    *checkpoint.Keeper
	last string // the commit of the newest checkpoint that was saved here
}

// checkpoints are what a run's agent keeps files by; nil when that is switched off.
func (e *Engine) checkpoints(t *store.Task, w *workspace.Workspace, r Request) *keeping {
	if e.opt.Config.NoCheckpoints || r.NoCheckpoints {
		return nil
	}
	return &keeping{engine: e, ws: w, task: t}
}

// refusal is a workspace that gets no checkpoints.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == checkpoints.ErrNone }

func (r refusal) Unwrap() error { return r.error }

func (k *keeping) open() (*checkpoint.Keeper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.k != nil {
		return k.k, nil
	}
	keeper, err := k.engine.keeper(k.ws)
	if errors.Is(err, checkpoint.ErrRefused) {
		return nil, refusal{err}
	}
	if err != nil {
		return nil, err
	}
	k.k = keeper
	return keeper, nil
}

// close lets go of what the run had open.
func (k *keeping) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.k == nil {
		return nil
	}
	return k.k.Close()
}

// Name is where contents of this workspace are kept.
func (k *keeping) Name() string { return checkpoint.NameOf(k.ws.Root()) }

func (k *keeping) Hold(ctx context.Context, paths []string) (map[string]task.FileVersion, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	return keeper.Hold(ctx, paths)
}

func (k *keeping) Survey(ctx context.Context, known []string, call string) (checkpoints.Survey, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	keeper.Know(known...)
	var s *checkpoint.Survey
	if call == "" {
		s, err = keeper.Survey(ctx)
	} else {
		s, err = keeper.SurveyFor(ctx, keptAs(k.task.Ref), call)
	}
	if err != nil {
		return nil, err
	}
	return survey{s}, nil
}

func (k *keeping) Interrupted(ctx context.Context, call string) (checkpoints.Survey, error) {
	keeper, err := k.open()
	if err != nil {
		return nil, err
	}
	s, err := keeper.Interrupted(ctx, keptAs(k.task.Ref), call)
	if s == nil || err != nil {
		return nil, err
	}
	return survey{s}, nil
}

func (k *keeping) Save(ctx context.Context, c task.CheckpointSaved, files map[string]task.FileVersion) (name, commit string, err error) {
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
		Task: keptAs(k.task.Ref), Number: c.Number, Title: c.Title, At: k.engine.opt.Now(), Parent: k.last, Files: files, Changed: c.Files,
	})
	if err != nil {
		return "", "", err
	}
	if k.last == "" {
		k.engine.noteRoot(keeper.Name(), k.ws.Root())
	}
	k.last = commit
	return keeper.Name(), commit, nil
}

// newestCommit is the commit of a task's newest checkpoint in a store, "" without one.
func newestCommit(s *task.State, store string) string {
	for i := len(s.Checkpoints) - 1; i >= 0; i-- {
		if c := s.Checkpoints[i]; c.Commit != "" && c.Store == store {
			return c.Commit
		}
	}
	return ""
}

// survey is a checkpoint.Survey as the agent knows it.
type survey struct{ *checkpoint.Survey }

func (s survey) Unheld() string {
	u := s.Survey.Unheld()
	if !u.Any() {
		return ""
	}
	return u.String()
}

func (s survey) Hidden() string { return s.Survey.Unheld().HiddenText() }

// StoreMovedError: a checkpoint is of a workspace that lay elsewhere.
type StoreMovedError struct {
	Checkpoint int
	Store      string // where its contents are
	Workspace  string // the folder that was looked into
}

func (e *StoreMovedError) Error() string {
	return fmt.Sprintf("checkpoint c%d is of another folder than %s: its contents are kept as %s", e.Checkpoint, e.Workspace, e.Store)
}

// CheckpointError: a reference to a checkpoint fits none, or several.
type CheckpointError struct {
	Given      string
	Why        string
	Candidates []Checkpoint
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("checkpoint %s: %s", e.Given, e.Why)
}

// ErrNoCheckpoints: the task has none.
var ErrNoCheckpoints = errors.New("the task has no checkpoints")

// inStore are the checkpoints of a task whose contents are in one store.
func inStore(s *task.State, name string) []task.CheckpointSaved {
	var out []task.CheckpointSaved
	for _, c := range s.Checkpoints {
		if c.Store == name || c.Store == "" {
			out = append(out, c.CheckpointSaved)
		}
	}
	return out
}

// commits reports whether a word may be the beginning of a commit's name.
func commits(word string) bool {
	return len(word) >= 4 && len(word) <= 40 && strings.Trim(word, "0123456789abcdef") == ""
}
