package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

func TestTreeSurvivesCircles(t *testing.T) {
	t.Parallel()
	items := []api.Summary{{ID: "a", Path: "1", ParentID: "b"}, {ID: "b", Path: "2", ParentID: "a"}, {ID: "c", Path: "3"}, {ID: "d", Path: "4", ParentID: "c"}}
	out, depths := asTree(items)
	var ids []string
	for _, t := range out {
		ids = append(ids, t.ID)
	}
	if diff := cmp.Diff([]string{"c", "d", "a", "b"}, ids); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 1, 0, 0}, depths); diff != "" {
		t.Error(diff)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f        showFlags
		from, to int
	}{{showFlags{}, 0, 10}, {showFlags{tail: 3}, 7, 10}, {showFlags{to: 4}, 0, 3}, {showFlags{to: 4, tail: 2}, 1, 3}, {showFlags{to: 99}, 0, 10}, {showFlags{to: 1}, 0, 0}} {
		from, to := window(10, tt.f)
		if from != tt.from || to != tt.to {
			t.Errorf("%+v: %d %d", tt.f, from, to)
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	a, _, _ := app(t) // it is noon of 2026-04-20, UTC
	ms := func(text string) int64 {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when.UnixMilli()
	}
	local := time.Date(2026, 4, 1, 0, 0, 0, 0, time.Local).UnixMilli()
	for text, want := range map[string]int64{
		"": 0, "2026-04-01T00:00:00Z": ms("2026-04-01T00:00:00Z"), "2026-04-01T00:00:00.5+02:00": ms("2026-03-31T22:00:00Z") + 500,
		"2026-04-01": local, "2026-04-01 00:00": local, "2026-04-01T00:00:00": local, "7d": ms("2026-04-13T12:00:00Z"), "90m": ms("2026-04-20T10:30:00Z"), "0d": ms("2026-04-20T12:00:00Z"),
	} {
		if got, err := a.moment("since", text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1d", "-5m", "7", "7w", "2026-13-01", "1.5d"} {
		if got, err := a.moment("since", text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{"": nil, "a": {"a"}, " a , b,,": {"a", "b"}, ",": nil} {
		if diff := cmp.Diff(want, list(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
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
	a, out, errs := app(t)
	a.bySource(sources)
	a.sumUp(api.Found{Sources: sources}, 5)
	want := "    3  roost  /root\n    2  code-1 (roo)  /code  1 damaged  4 empty\n" +
		"! /locked (locked) is unreachable: permission denied\n5 tasks in 2 sources, 1 damaged (details: roost doctor), 4 empty\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" || out.Len() > 0 {
		t.Errorf("stdout %q; %s", out, diff)
	}
	for copies, want := range map[int]string{1: ", 1 of them a copy of another, ", 2: ", 2 of them copies of others, "} {
		errs.Reset()
		if a.sumUp(api.Found{Sources: sources, Copies: copies}, 0); !strings.Contains(errs.String(), want) {
			t.Errorf("%d copies: %s", copies, errs)
		}
	}
	errs.Reset()
	a.sumUp(api.Found{Sources: sources[2:]}, 0)
	want = "no tasks found; looked in:\n  /none (none)\n  /locked (locked) is unreachable: permission denied\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Error(diff)
	}
}
