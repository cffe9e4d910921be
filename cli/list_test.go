package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestTreeSurvivesCircles(t *testing.T) {
	t.Parallel()
	items := []api.Summary{
		{ID: "a", ParentID: "b"}, {ID: "b", ParentID: "a"}, {ID: "c"}, {ID: "d", ParentID: "c"}, {ID: "e", ParentID: "d"}, {ID: "f", ParentID: "c"},
		{ID: "g", ParentID: "absent"}, {ID: "h", ParentID: "h"},
	}
	if diff := cmp.Diff([]int{0, 1, 0, 1, 2, 1, 0, 0}, api.DepthsOf(items)); diff != "" {
		t.Errorf("depths (-want +got): %s", diff)
	}
}

func TestAnExportOfNothingIsAFailure(t *testing.T) {
	a, _, errs := clitest.New(t)
	file := filepath.Join(t.TempDir(), "tasks.zip")
	if code := Run(t.Context(), a, []string{"export", "--all", "-o", file}); code != failure.ExitNotFound || !strings.Contains(errs.String(), "try: roost list") {
		t.Errorf("got exit code %d: %s, want %d and the advice to look at the list", code, errs, failure.ExitNotFound)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{"": nil, "a": {"a"}, " a , b,,": {"a", "b"}, ",": nil} {
		if diff := cmp.Diff(want, config.List(text)); diff != "" {
			t.Errorf("%q: got %s, want diff = \"\"", text, diff)
		}
	}
}

func TestSourcesAreToldOneByOne(t *testing.T) {
	t.Parallel()
	sources := []api.SourceState{
		{Name: "roost", Tool: "roost", Path: "/root", State: "readable", Tasks: 3},
		{Name: "code-1", Tool: "roo", Path: "/code", State: "readable", Tasks: 2, Damaged: 1, Empty: 4},
		{Name: "none", Path: "/none", State: "readable"},
		{Name: "locked", Path: "/locked", State: "unreachable: permission denied"},
	}
	a, out, errs := clitest.New(t)
	a.BySource(sources)
	a.SumUp(api.Found{Sources: sources}, 5)
	want := "    3  roost  /root\n    2  code-1 (roo)  /code  1 damaged  4 empty\n" +
		"! /locked (locked) is unreachable: permission denied\n5 tasks in 2 sources, 1 damaged (details: roost doctor), 4 empty\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" || out.Len() > 0 {
		t.Errorf("stdout %q; %s", out, diff)
	}
	for copies, want := range map[int]string{1: ", 1 of them a copy of another, ", 2: ", 2 of them copies of others, "} {
		errs.Reset()
		if a.SumUp(api.Found{Sources: sources, Copies: copies}, 0); !strings.Contains(errs.String(), want) {
			t.Errorf("%d copies: %s", copies, errs)
		}
	}
	errs.Reset()
	a.SumUp(api.Found{Sources: sources[2:]}, 0)
	want = "no tasks found; looked in:\n  /none (none)\n  /locked (locked) is unreachable: permission denied\nto look in another place: roost sources add DIR\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Error(diff)
	}
}
