package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/report"
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
