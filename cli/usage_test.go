package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
)

// spent is a group of a month's work.
func spent(key string) api.SpendingGroup {
	cost := money.USD(1_234_567)
	g := api.SpendingGroup{Key: key, Tasks: 12, Requests: 3456}
	g.Usage.TokensIn, g.Usage.TokensOut, g.Usage.CacheWrites, g.Usage.CacheReads, g.Usage.Cost = 123456789, 1234567, 12345678, 123456789, &cost
	return g
}

// In a terminal no line of a table wraps; elsewhere nothing is left out of it.
func TestWhatWasSpentFitsIntoTheTerminal(t *testing.T) {
	t.Parallel()
	folder := "/home/someone/work/with/a/rather/long/name/of/a/folder"
	for _, width := range []int{0, 200, 110, 80, 66} {
		a, out, _ := app(t)
		a.OutTTY, a.Width, a.flags.noColour = width > 0, width, true
		if err := a.showSpending(api.Totals{By: api.ByWorkspace, Items: []api.SpendingGroup{spent(folder)}, Total: spent("total")}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := display.Columns(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
			}
		}
		whole := width == 0 || width == 200
		for text, want := range map[string]bool{"$1.234567": true, "3456": true, folder: whole, "CACHE R": whole || width == 110} {
			if strings.Contains(out.String(), text) != want {
				t.Errorf("in %d columns %q stands there: %v\n%s", width, text, !want, out)
			}
		}
	}
}

// A path that does not fit beside the rest of its line stands whole below it.
func TestSourcesFitIntoTheTerminal(t *testing.T) {
	t.Parallel()
	sources := []api.SourceState{{Name: "vscode-roo", Tool: "roo", State: "readable", Path: "/home/someone/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline"}}
	for width, below := range map[int]bool{0: false, 200: false, 80: true} {
		a, out, _ := app(t)
		a.OutTTY, a.Width, a.flags.noColour = width > 0, width, true
		if err := a.sourceTable(sources); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\n  "+sources[0].Path+"\n") != below || !strings.Contains(out.String(), sources[0].Path+"\n") {
			t.Errorf("in %d columns:\n%s", width, out)
		}
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space is left")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Help that cannot be printed is a failure like any other output's.
func TestOutputThatCannotBePrintedIsAFailure(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"--help"}, {"help", "list"}, {"export", "--help"}, {"help", "exit-codes"}, {"version"}, {"sources"}, {"completion", "bash"}} {
		a, _, errs := app(t)
		a.Out = full{}
		if code := a.Run(t.Context(), args); code != ExitFailed || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
}
