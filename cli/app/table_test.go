package app_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// A title says what a task is, so a narrow terminal leaves the other columns out, the
// last ones first.
func TestANarrowListKeepsTheTitles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width    int
		head     string
		title    string
		subtasks bool
	}{
		{0, "ID      AGE  STATUS        COST  MSGS  TOOL  FOLDER           TITLE", "a title of some length that goes on", false},
		{100, "ID      AGE  STATUS        COST  MSGS  TOOL  FOLDER           TITLE", "a title of some length that goes on", false},
		{64, "ID      AGE  STATUS        FOLDER          TITLE", "a title of some leng…", false},
		{60, "ID      AGE  STATUS        TITLE", "a title of some length that goes…", false},
		{40, "ID      AGE  TITLE", "a title of some length tha…", false},
		{30, "ID      TITLE", "a title of some lengt…", false},
		{12, "ID      TIT…", "a t…", false},
		{64, "ID      AGE  STATUS        FOLDER          TITLE", "a title of some leng…", true},
		{0, "ID      AGE  STATUS        COST  WITH SUBTASKS  MSGS  TOOL  FOLDER           TITLE", "a title of some length that goes on", true},
	} {
		a, out, _ := clitest.New(t)
		a.OutTTY, a.Width = tt.width > 0, tt.width
		a.Flags.NoColour = true
		items := []api.Summary{{ID: "p", Title: "a title of some length that goes on", Status: "interrupted!", TS: 1, Workspace: "/home/me/garden"}, {ID: "q", ParentID: "p"}}
		depths := []int{0, 0}
		if tt.subtasks {
			depths[1] = 1
		}
		a.Table(items, depths, map[string]string{":p": "0198aa", ":q": "0198bb"}, nil)
		got := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if len(got) != 3 || strings.TrimRight(got[0], " ") != tt.head || !strings.HasPrefix(got[1], "0198aa  ") || !strings.Contains(got[1], tt.title) {
			t.Errorf("%d columns: want %q and %q:\n%s", tt.width, tt.head, tt.title, out)
		}
		for _, line := range got {
			if tt.width > 0 && display.Columns(line) > tt.width {
				t.Errorf("%d columns in a terminal of %d: %q", display.Columns(line), tt.width, line)
			}
		}
		if tt.subtasks && !strings.Contains(got[2], "  (no title)") {
			t.Errorf("a subtask without a title: %q", got[2])
		}
	}
}
