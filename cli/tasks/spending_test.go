package tasks

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/testing/clitest"
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
		a, out, _ := clitest.New(t)
		a.OutTTY, a.Width, a.Flags.NoColour = width > 0, width, true
		(&commands{App: a}).showSpending(api.Totals{By: api.ByWorkspace, Items: []api.SpendingGroup{spent(folder)}, Total: spent("total")})
		for line := range strings.Lines(out.String()) {
			if n := display.Columns(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
			}
		}
		whole := width == 0 || width == 200
		for text, want := range map[string]bool{"$1.23": true, "$1.234567": false, "3,456": true, folder: whole, "CACHE R": whole || width == 110} {
			if strings.Contains(out.String(), text) != want {
				t.Errorf("in %d columns %q stands there: %v\n%s", width, text, !want, out)
			}
		}
	}
}
