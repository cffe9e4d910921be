package report

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

func TestLocalProblems(t *testing.T) {
	t.Parallel()
	denied := &roofmt.UnreadError{Path: "/x", Err: os.ErrPermission}
	for _, tt := range []struct {
		err                 error
		code, title, detail string
		status, helps       int
		retryable           bool
	}{
		{store.ErrNotFound, "task_not_found", "find the task", "x: " + store.ErrNotFound.Error(), 404, 1, false},
		{&store.AmbiguousError{Given: "1"}, "ambiguous_id", "find task 1", `"1" fits 0 tasks`, 0, 1, false},
		{&journal.BusyError{}, "task_busy", "own the task", "x: " + (&journal.BusyError{}).Error(), 409, 1, true},
		{store.ErrForeignBusy, "task_busy", "own the task", "x: " + store.ErrForeignBusy.Error(), 409, 1, true},
		{journal.ErrFenced, "task_fenced", "continue the task", "x: " + journal.ErrFenced.Error(), 409, 1, false},
		{journal.ErrUntrustedLocks, "untrusted_locks", "take the lock", "x: " + journal.ErrUntrustedLocks.Error(), 0, 1, false},
		{&store.RootError{Path: "/x", Check: "y", Err: errors.New("z")}, "root_unusable", "use the root /x", "y: z", 0, 1, false},
		{denied, "permission_denied", "read /x", roofmt.Reason(os.ErrPermission) + "; the task does not continue without it, and nothing was changed", 403, 1, false},
	} {
		got := LocalProblem(fmt.Errorf("x: %w", tt.err))
		if got == nil || got.Code != tt.code || got.Title != tt.title || got.Detail != tt.detail || got.Status != tt.status ||
			len(got.Suggestions) != tt.helps || got.Retryable != tt.retryable {
			t.Errorf("%v: got %+v, want %+v", tt.err, got, tt)
		}
	}
	if got := LocalProblem(errors.New("x")); got != nil {
		t.Errorf("got %+v, want nil", got)
	}
}
