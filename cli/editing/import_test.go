package editing

import (
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

func TestImportExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    api.Import
		want int
		why  string
	}{
		{api.Import{Tasks: 3, Imported: 1, Same: 1, Empty: 1}, failure.ExitDone, ""},
		{api.Import{Tasks: 2, Forked: 2}, failure.ExitDone, ""},
		{api.Import{Tasks: 2, Imported: 1, Conflicts: 1}, failure.ExitBusy, "1 of 2 tasks have ids that other content has; they are left alone, the rest was imported"},
		{api.Import{Tasks: 2, Conflicts: 1, Failed: 1}, failure.ExitFailed, "1 of 2 tasks could not be imported; the rest was imported"},
		{api.Import{Unreachable: make([]api.SourceState, 1)}, failure.ExitFailed, "1 source could not be reached; the rest was imported"},
		{api.Import{Tasks: 9, Failed: 2, DryRun: true, Unreachable: make([]api.SourceState, 2)}, failure.ExitFailed, "2 of 9 tasks could not be imported; 2 sources could not be reached; the rest would be imported"},
	} {
		got := &failure.Failure{}
		if err := importFailure(tt.r); err != nil {
			got = failure.Of(err)
		}
		if got.Exit != tt.want || got.Why != tt.why {
			t.Errorf("%+v: exit %d, %q; want %d, %q", tt.r, got.Exit, got.Why, tt.want, tt.why)
		}
	}
	for _, tt := range []struct {
		code   string
		status int
		want   int
	}{
		{"not_found", 404, failure.ExitNotFound},
		{"usage", 0, failure.ExitUsage},
		{"damaged", 0, failure.ExitDamaged},
		{"import_failed", 0, failure.ExitFailed},
		{"import_busy", 0, failure.ExitBusy},
	} {
		f := failure.Of(api.NewProblem(tt.status, tt.code, "import x", "why", "what to do"))
		if f.Exit != tt.want || f.What != "import x" || f.Why != "why" || tt.status == 0 && f.Try != "what to do" {
			t.Errorf(`%s: got %+v, want f.Exit = %v and f.What = "import x" and f.Why = "why" and (tt.status != 0 or f.Try = "what to do")`,
				tt.code, f, tt.want)
		}
	}
}
