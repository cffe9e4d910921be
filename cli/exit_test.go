package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
)

func TestExitOfErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		err       error
		exit      int
		code      string
		status    int
		retryable bool
	}{
		{"no such task", fmt.Errorf("x: %w", store.ErrNotFound), failure.ExitNotFound, "task_not_found", 404, false},
		{"several tasks", &store.AmbiguousError{Given: "1"}, failure.ExitUsage, "ambiguous_id", 0, false},
		{"a root that cannot be used", &store.RootError{Path: "/x", Check: "y"}, failure.ExitConfig, "root_unusable", 0, false},
		{"busy", fmt.Errorf("x: %w", &journal.BusyError{}), failure.ExitBusy, "task_busy", 409, true},
		{"files that another program writes", fmt.Errorf("x: %w", store.ErrForeignBusy), failure.ExitBusy, "task_busy", 409, true},
		{"somebody else has taken it", fmt.Errorf("x: %w", journal.ErrFenced), failure.ExitBusy, "task_fenced", 409, false},
		{"locks that cannot be trusted", fmt.Errorf("x: %w", journal.ErrUntrustedLocks), failure.ExitConfig, "untrusted_locks", 0, false},
		{"too late", fmt.Errorf("x: %w", context.DeadlineExceeded), failure.ExitTimeout, "timeout", 0, false},
		{"stopped", fmt.Errorf("x: %w", context.Canceled), failure.ExitCancelled, "cancelled", 0, false},
		{"no permission", fmt.Errorf("x: %w", syscall.EACCES), failure.ExitFailed, "permission_denied", 0, false},
		{"anything else", errors.New("x"), failure.ExitFailed, "failed", 0, false},
		{"a mistake in the words wins over what followed", errors.Join(failure.Usage("a", "b", "c"), errors.New("x")), failure.ExitUsage, "usage", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := failure.Of(tt.err)
			if f.Exit != tt.exit || f.Code != tt.code || f.Status != tt.status || f.Retryable != tt.retryable {
				t.Errorf("got %+v, want f.Exit = tt.exit and f.Code = tt.code and f.Status = tt.status and f.Retryable = tt.retryable",
					f)
			}
			if f.What == "" || f.Try == "" && tt.code != "configuration" {
				t.Errorf("a line is missing: %+v", f)
			}
		})
	}
}

// What is there and cannot be opened is named, with a way to look at it; so is a folder
// that is missing. A file of ours that could not be made, or a full disk, is none of that.
func TestWhatCannotBeOpenedIsNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b")
	must(t, os.Mkdir(dir, 0o700))
	none := filepath.Join(dir, "none")
	for _, tt := range []struct {
		err       error
		what, try string
	}{
		{&os.PathError{Op: "open", Path: dir, Err: syscall.EACCES}, "open " + dir, "ls -ld '" + dir + "'"},
		{&os.PathError{Op: "stat", Path: dir, Err: syscall.ELOOP}, "open " + dir, "ls -ld '" + dir + "'"},
		{&os.PathError{Op: "open", Path: filepath.Join(none, "x.md"), Err: syscall.ENOENT}, "use the folder " + none, "mkdir -p '" + none + "'"},
		{&os.PathError{Op: "open", Path: filepath.Join(dir, ".temp"), Err: syscall.EACCES}, "task x", ""},
		{&os.PathError{Op: "openat", Path: "ui_messages.json", Err: syscall.EACCES}, "task x", ""},
		{&os.PathError{Op: "write", Path: dir, Err: syscall.EIO}, "task x", ""},
	} {
		f := failure.Of(fmt.Errorf("task x: %w", tt.err))
		if f.What != tt.what || !strings.HasPrefix(f.Try, tt.try) || tt.try == "" && (strings.HasPrefix(f.Try, "ls") || strings.HasPrefix(f.Try, "mk")) || !strings.Contains(f.Why, tt.err.Error()) {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}

func TestExitOfOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state, code   string
		stopped, exit int
		try           string
	}{
		{"waiting", "", 0, failure.ExitInput, `roost resume id "your answer"`},
		{"denied", "", 0, failure.ExitDenied, "roost resume id"},
		{"limit", "turns", 0, failure.ExitLimit, "roost resume id --max-turns N"},
		{"limit", "cost", 0, failure.ExitLimit, "roost resume id --max-cost AMOUNT"},
		{"limit", "mistakes", 0, failure.ExitLimit, "roost resume id"},
		{"limit", "timeout", 0, failure.ExitTimeout, "roost resume id"},
		{"cancelled", "", 0, failure.ExitCancelled, "roost resume id"},
		{"cancelled", "", failure.ExitInterrupt, failure.ExitInterrupt, "roost resume id"},
		{"cancelled", "", failure.ExitTerminated, failure.ExitTerminated, "roost resume id"},
		{"interrupted", "", failure.ExitHangup, failure.ExitHangup, "roost resume id"},
		{"failed", "provider", 0, failure.ExitProvider, "roost resume id"},
		{"failed", "context", 0, failure.ExitProvider, "roost resume id"},
		{"failed", "auth", 0, failure.ExitConfig, "roost resume id"},
		{"failed", "fenced", 0, failure.ExitBusy, "roost resume id"},
		{"failed", "internal", 0, failure.ExitFailed, "roost resume id"},
		{"failed", "save", 0, failure.ExitFailed, "roost resume id"},
		{"failed", "", failure.ExitInterrupt, failure.ExitFailed, "roost resume id"}, // it failed before the signal counted
	}
	for _, tt := range tests {
		f := failure.OfOutcome("id", engine.Outcome{State: tt.state, Code: tt.code, Err: errors.New("why")}, tt.stopped)
		if f == nil || f.Exit != tt.exit || f.Task != "id" || f.Try != tt.try || f.Why != "why" {
			t.Errorf("%s/%s: %+v, want exit %d and %s", tt.state, tt.code, f, tt.exit, tt.try)
		}
	}
	if f := failure.OfOutcome("id", engine.Outcome{State: "completed"}, failure.ExitInterrupt); f != nil {
		t.Errorf("a signal that came too late: %+v", f)
	}
	f := failure.OfOutcome("id", engine.Outcome{State: "completed", Reason: "all done", Err: errors.New("disk full")}, 0)
	if f == nil || f.Exit != failure.ExitFailed || f.Why != "disk full" {
		t.Errorf("an end that was not saved: %+v", f)
	}
}

// The codes that help prints are those of docs/scripting.md, each with a meaning.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "scripting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Exit codes")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[int]bool{}
	for _, m := range regexp.MustCompile(`[0-9]+`).FindAllString(table, -1) {
		n, err := strconv.Atoi(m)
		if err != nil {
			t.Fatal(err)
		}
		told[n] = true
	}
	last := -1
	for _, c := range failure.Codes {
		if !told[c.Code] {
			t.Errorf("docs/scripting.md does not name %d (%s)", c.Code, c.Meaning)
		}
		delete(told, c.Code)
		if c.Code <= last || c.Meaning == "" {
			t.Errorf("%d %q is out of order or says nothing", c.Code, c.Meaning)
		}
		last = c.Code
	}
	if len(told) > 0 {
		t.Errorf("docs/scripting.md names codes that do not exist: %v", told)
	}
}
