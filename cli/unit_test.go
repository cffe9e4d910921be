package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/store"
)

func TestExitOfErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		exit int
	}{
		{fmt.Errorf("x: %w", store.ErrNotFound), ExitNotFound},
		{&store.AmbiguousError{Given: "1"}, ExitUsage},
		{&store.RootError{Path: "/x", Check: "y"}, ExitConfig},
		{&engine.ConfigError{What: "a"}, ExitConfig},
		{fmt.Errorf("x: %w", &journal.BusyError{}), ExitBusy},
		{&llm.Error{Kind: llm.Server}, ExitProvider},
		{&llm.Error{Kind: llm.Auth}, ExitConfig},
		{errors.New("x"), ExitFailed},
		{errors.Join(usage("a", "b", "c"), errors.New("x")), ExitUsage},
	}
	for _, tt := range tests {
		if got := failureOf(tt.err).Exit; got != tt.exit {
			t.Errorf("%v: exit %d, want %d", tt.err, got, tt.exit)
		}
	}
}

func TestExitOfOutcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state, code   string
		stopped, exit int
	}{
		{"waiting", "", 0, ExitInput}, {"denied", "", 0, ExitDenied}, {"limit", "turns", 0, ExitLimit},
		{"limit", "timeout", 0, ExitTimeout}, {"cancelled", "", 0, ExitCancelled}, {"cancelled", "", ExitInterrupt, ExitInterrupt},
		{"cancelled", "", ExitTerminated, ExitTerminated}, {"failed", "provider", 0, ExitProvider}, {"failed", "auth", 0, ExitConfig},
		{"failed", "fenced", 0, ExitBusy}, {"failed", "internal", 0, ExitFailed}, {"failed", "save", 0, ExitFailed},
	}
	for _, tt := range tests {
		f := failureOfOutcome("id", engine.Outcome{State: tt.state, Code: tt.code}, tt.stopped)
		if f == nil || f.Exit != tt.exit {
			t.Errorf("%s/%s: %+v, want exit %d", tt.state, tt.code, f, tt.exit)
		}
	}
	if f := failureOfOutcome("id", engine.Outcome{State: "completed"}, 0); f != nil {
		t.Errorf("completed: %+v", f)
	}
}

func TestTreeSurvivesCircles(t *testing.T) {
	t.Parallel()
	items := []store.Summary{{ID: "a", Path: "1", ParentID: "b"}, {ID: "b", Path: "2", ParentID: "a"}, {ID: "c", Path: "3"}, {ID: "d", Path: "4", ParentID: "c"}}
	out, depths := asTree(items)
	var ids []string
	for _, t := range out {
		ids = append(ids, t.ID)
	}
	if diff := cmp.Diff([]string{"c", "d", "a", "b"}, ids); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 1, 0, 0}, depths); diff != "" {
		t.Error(diff)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f        showFlags
		from, to int
	}{{showFlags{}, 0, 10}, {showFlags{tail: 3}, 7, 10}, {showFlags{to: 4}, 0, 3}, {showFlags{to: 4, tail: 2}, 1, 3}, {showFlags{to: 99}, 0, 10}, {showFlags{to: 1}, 0, 0}} {
		from, to := window(10, tt.f)
		if from != tt.from || to != tt.to {
			t.Errorf("%+v: %d %d", tt.f, from, to)
		}
	}
}
