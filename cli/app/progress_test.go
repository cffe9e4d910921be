package app_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// Long work is told of on a terminal, and only there; before a result is printed
// nothing of it is left.
func TestWatched(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		tty, quiet, dumb  bool
		json, wait, shown bool
	}{
		{name: "on a terminal", tty: true, wait: true, shown: true},
		{name: "with --json, on a terminal all the same", tty: true, json: true, wait: true, shown: true},
		{name: "quick work", tty: true},
		{name: "into a log", wait: true},
		{name: "with -q", tty: true, quiet: true, wait: true},
		{name: "on a terminal that cannot", tty: true, dumb: true, wait: true},
	} {
		env := "TERM=xterm"
		if tt.dumb {
			env = "TERM=dumb"
		}
		a, out, errs := clitest.New(t, env)
		a.ErrTTY, a.Flags.Quiet, a.Flags.JSON = tt.tty, tt.quiet, tt.json
		now := a.Now()
		a.Now = func() time.Time { return now }
		ctx, done := a.Watched(context.Background())
		if tt.wait {
			now = now.Add(2 * time.Second)
		}
		progress.Report(ctx, progress.State{What: "importing", Done: 2, Of: 4, Files: 9, Bytes: 1_500_000})
		if got := errs.String(); strings.Contains(got, "[############............] importing 2 of 4 tasks, 9 files, 1.5 MB") != tt.shown || got != "" && !tt.shown {
			t.Errorf(`%s: got %q, want strings.Contains(got, "[############............] importing 2 of 4 tasks, 9 files, 1.5 MB") = tt.shown and (got = "" or tt.shown)`,
				tt.name, got)
		}
		done()
		if got := errs.String(); tt.shown && !strings.HasSuffix(got, "\r\x1b[K") || out.Len() > 0 {
			t.Errorf("%s: afterwards %q", tt.name, got)
		}
	}
}

func TestCountedBytes(t *testing.T) {
	t.Parallel()
	var told []int64
	w := &app.Counting{W: io.Discard, Tell: func(n int64) { told = append(told, n) }}
	for _, text := range []string{"four", "", "seven.."} {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Errorf("got %d, %v, want n = len(text) and no error", n, err)
		}
	}
	if len(told) != 3 || told[2] != 11 {
		t.Errorf("got %v, want len(told) = 3 and told[2] = 11", told)
	}
}
