package tasks

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/money"
)

// Folders come in the order of their first tasks; sums have all their digits, and
// what nobody knows is not zero.
func TestTasksByFolder(t *testing.T) {
	t.Parallel()
	cents := func(n money.USD) api.Usage { return api.Usage{Cost: &n} }
	items := []api.Summary{
		{ID: "1", Path: "1", Workspace: "/b", Usage: cents(500_000)}, {ID: "2", Path: "2", Workspace: "/a\x1b[2J"}, {ID: "3", Path: "3", Workspace: "/b", Usage: cents(1)},
		{ID: "4", Path: "4", ParentID: "3", Workspace: "/b"}, {ID: "5", Path: "5"},
	}
	for _, tree := range []bool{false, true} {
		a, out, _ := clitest.New(t)
		(&commands{App: a}).grouped(items, tree, app.Listed{Names: map[string]string{"1": "1", "2": "2", "3": "3", "4": "4", "5": "5"}})
		var heads []string
		for _, line := range strings.Split(out.String(), "\n") {
			if strings.Contains(line, " task") {
				heads = append(heads, line)
			}
		}
		if got := strings.Join(heads, "|"); !strings.HasPrefix(got, "/b  3 tasks, $0.50|/a") || !strings.HasSuffix(got, "  1 task, unknown|(no folder)  1 task, unknown") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q", got)
		}
	}
}
