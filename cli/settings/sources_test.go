package settings

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// A path that does not fit beside the rest of its line stands whole below it.
func TestSourcesFitIntoTheTerminal(t *testing.T) {
	t.Parallel()
	sources := []api.SourceState{{Name: "vscode-roo", Tool: "roo", State: "readable", Path: "/home/someone/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline"}}
	for width, below := range map[int]bool{0: false, 200: false, 80: true} {
		a, out, _ := clitest.New(t)
		a.OutTTY, a.Width, a.Flags.NoColour = width > 0, width, true
		(&commands{App: a}).sourceTable(sources)
		if strings.Contains(out.String(), "\n  "+sources[0].Path+"\n") != below || !strings.Contains(out.String(), sources[0].Path+"\n") {
			t.Errorf("in %d columns:\n%s", width, out)
		}
	}
}
