package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// The plan of a dry run accepts only a restore that does the same.
func TestAPlanAcceptsOnlyTheSameRestore(t *testing.T) {
	t.Parallel()
	item := func(path string) []api.RestoreItem {
		return []api.RestoreItem{{Path: path, Change: "changed"}}
	}
	shown := api.RestoreResult{DryRun: true, To: api.Checkpoint{Number: 3}, Files: item("a"), Conflicts: item("b"), Lost: item("c")}
	same := shown
	same.DryRun, same.Safety = false, 9
	for _, plan := range []string{"", planOf(shown)} {
		if err := agreed(plan, same); err != nil {
			t.Errorf("plan %q of the same restore: got %v, want no error", plan, err)
		}
	}
	for name, change := range map[string]func(r *api.RestoreResult){
		"another file":       func(r *api.RestoreResult) { r.Files = item("x") },
		"one file more":      func(r *api.RestoreResult) { r.Files = append(item("a"), item("x")...) },
		"a conflict less":    func(r *api.RestoreResult) { r.Conflicts = nil },
		"another lost file":  func(r *api.RestoreResult) { r.Lost = item("x") },
		"another checkpoint": func(r *api.RestoreResult) { r.To.Number = 4 },
	} {
		now := same
		change(&now)
		var p *api.Problem
		if err := agreed(planOf(shown), now); !errors.As(err, &p) || p.Status != http.StatusConflict || p.Code != "changed_meanwhile" {
			t.Errorf("%s: got %v, want 409 changed_meanwhile", name, err)
		}
	}
}

// A restore that failed has one problem, whatever else went wrong with it; a full disk is named as such.
func TestAFailedRestoreHasOneProblem(t *testing.T) {
	t.Parallel()
	full := errors.Join(fmt.Errorf("keep what would be replaced: %w", &fs.PathError{Op: "write", Path: "/s/tmp/1", Err: syscall.ENOSPC}), errors.New("watermark: x"))
	closed := fmt.Errorf("put files back: put back ro/f: %w", fs.ErrPermission)
	for _, tt := range []struct {
		name         string
		err          error
		status       int
		code, detail string
	}{
		{"full", full, http.StatusInsufficientStorage, "disk_full", "nothing can be saved until the disk has room"},
		{"rolled back", &checkpoints.RolledBackError{Err: closed}, 500, "rolled_back", "put files back: put back ro/f: permission denied; everything is as it was before"},
		{"half-way", &checkpoints.HalfwayError{Task: "0199", Err: closed}, 500, "restoring", "put files back: put back ro/f: permission denied; the restore is not finished, and the next command that works on the task continues it"},
	} {
		p := report.ProblemOf(t.Context(), nil, fmt.Errorf("%w", tt.err), "0199")
		if p.Status != tt.status || p.Code != tt.code || p.Detail != tt.detail {
			t.Errorf("%s: got %d %s %q, want %d %s %q", tt.name, p.Status, p.Code, p.Detail, tt.status, tt.code, tt.detail)
		}
	}
}

// A run on a task keeps no other task of the same id, in another source, from being changed.
func TestARunKeepsItsOwnTaskBusy(t *testing.T) {
	id := "0199aaaa-0000-8000-8000-0000000000c1"
	storage, _ := storetest.RooStorage(t, id)
	st := storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage)
	refs := fixture.Must[[]store.Ref](t)(st.Refs(t.Context()))
	e := engine.New(st, engine.Options{Config: setup.Config{Keys: map[string]string{}}})
	defer func() { fixture.NoError(t, e.Close(context.Background())) }()
	s := New(st, e, Options{})
	storetest.Write(t, storage, "script.yaml", "- tools: [{name: execute_command, input: {command: \"sleep 600\"}}]\n")
	fixture.Must[engine.Ticket](t)(e.Submit(t.Context(), engine.Request{NewTask: id, Text: "go", Choice: setup.Choice{
		Workspace: t.TempDir(), Provider: "script", Model: filepath.Join(storage, "script.yaml"), Approve: "all"}}))
	if _, err := s.idle(t.Context(), refs[0].Source+":"+id); err != nil {
		t.Errorf("the task of %s: got %v, want no error", refs[0].Source, err)
	}
	var p *api.Problem
	if _, err := s.idle(t.Context(), store.OwnSource+":"+id); !errors.As(err, &p) || p.Code != "task_busy" {
		t.Errorf("the task of the run: got %v, want task_busy", err)
	}
}
