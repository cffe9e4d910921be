package cli

import (
	"fmt"
	"os"
	"testing"

	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
)

func TestImportExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    store.ImportReport
		dark int
		want int
	}{
		{store.ImportReport{Tasks: 3, Imported: 1, Same: 1, Empty: 1}, 0, ExitDone},
		{store.ImportReport{Tasks: 2, Forked: 2}, 0, ExitDone},
		{store.ImportReport{Tasks: 2, Imported: 1, Conflicts: 1}, 0, ExitBusy},
		{store.ImportReport{Tasks: 2, Conflicts: 1, Failed: 1}, 0, ExitFailed},
		{store.ImportReport{}, 1, ExitFailed},
	} {
		got := ExitDone
		if err := importFailure(tt.r, tt.dark); err != nil {
			got = failureOf(err).Exit
		}
		if got != tt.want {
			t.Errorf("%+v, %d unreachable: exit %d, want %d", tt.r, tt.dark, got, tt.want)
		}
	}
	for _, tt := range []struct {
		err  error
		want int
	}{{store.ErrNotFound, ExitNotFound}, {os.ErrNotExist, ExitNotFound}, {store.ErrOwnPlace, ExitUsage}, {export.ErrArchive, ExitDamaged}, {os.ErrPermission, ExitFailed}} {
		f := failureOf(importNotFound("x", fmt.Errorf("look: %w", tt.err)))
		if f.Exit != tt.want || f.Try == "" {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}
