package editing

import (
	"fmt"
	"os"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
)

func TestImportExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    importer.Report
		dark int
		want int
		why  string
	}{
		{importer.Report{Tasks: 3, Imported: 1, Same: 1, Empty: 1}, 0, failure.ExitDone, ""},
		{importer.Report{Tasks: 2, Forked: 2}, 0, failure.ExitDone, ""},
		{importer.Report{Tasks: 2, Imported: 1, Conflicts: 1}, 0, failure.ExitBusy, "1 of 2 tasks have ids that other content has; they are left alone, the rest was imported"},
		{importer.Report{Tasks: 2, Conflicts: 1, Failed: 1}, 0, failure.ExitFailed, "1 of 2 tasks could not be imported; the rest was imported"},
		{importer.Report{}, 1, failure.ExitFailed, "1 source could not be reached; the rest was imported"},
		{importer.Report{Tasks: 9, Failed: 2, DryRun: true}, 2, failure.ExitFailed, "2 of 9 tasks could not be imported; 2 sources could not be reached; the rest would be imported"},
	} {
		got := &failure.Failure{}
		if err := importFailure(tt.r, tt.dark); err != nil {
			got = failure.Of(err)
		}
		if got.Exit != tt.want || got.Why != tt.why {
			t.Errorf("%+v, %d unreachable: exit %d, %q; want %d, %q", tt.r, tt.dark, got.Exit, got.Why, tt.want, tt.why)
		}
	}
	for _, tt := range []struct {
		err  error
		want int
	}{{store.ErrNotFound, failure.ExitNotFound}, {os.ErrNotExist, failure.ExitNotFound}, {importer.ErrInOwnRoot, failure.ExitUsage}, {export.ErrArchive, failure.ExitDamaged}, {os.ErrPermission, failure.ExitFailed}} {
		f := failure.Of(importNotFound("x", fmt.Errorf("look: %w", tt.err)))
		if f.Exit != tt.want || f.Try == "" {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}
