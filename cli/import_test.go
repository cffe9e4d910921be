package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/store"
)

// Work under a second is not talked about; on a terminal a bar is drawn and wiped
// away, and a log gets a line now and then.
func TestImportBar(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{false, true} {
		a, _, errs := app(t)
		a.ErrTTY = tty
		now := a.Now()
		a.Now = func() time.Time { return now }
		b := a.importBar()
		at := func(after time.Duration, tasks int) string {
			errs.Reset()
			now = now.Add(after)
			b.show(store.ImportProgress{Tasks: tasks, Of: 4, Files: 9, Bytes: 1_500_000})
			return errs.String()
		}
		if got := at(900*time.Millisecond, 1); got != "" {
			t.Errorf("too early: %q", got)
		}
		got := at(200*time.Millisecond, 2)
		if !strings.Contains(got, "2 of 4 tasks, 9 files, 1.5 MB") || strings.Contains(got, "\x1b") != tty || strings.Contains(got, "[############............]") != tty {
			t.Errorf("terminal %v: %q", tty, got)
		}
		if got := at(10*time.Millisecond, 3); got != "" {
			t.Errorf("too often: %q", got)
		}
		errs.Reset()
		b.clear()
		if got := errs.String(); (got != "") != tty || strings.Contains(got, "#") {
			t.Errorf("the bar stays: %q", got)
		}
		a.flags.quiet = true
		if got := at(time.Hour, 4); got != "" {
			t.Errorf("with -q: %q", got)
		}
	}
}

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
