package historytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// some is a list of tasks, and what it was asked for.
type some struct {
	list  []api.Summary
	more  bool
	err   error
	asked *api.TaskFilter
}

func (s some) tasks(_ context.Context, q api.TaskFilter) ([]api.Summary, bool, error) {
	if s.asked != nil {
		*s.asked = q
	}
	return s.list, s.more, s.err
}

func row(id, title, status, updated string, micros int64, mode, folder string) api.Summary {
	s := api.Summary{ID: id, Title: title, Status: status, UpdatedAt: &updated, Mode: mode, Workspace: folder}
	if micros > 0 {
		cost := money.USD(micros)
		s.Usage.Cost = &cost
	}
	return s
}

func TestListTasks(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := tool.Env{Workspace: ws}
	var asked api.TaskFilter
	s := some{asked: &asked, more: true, list: []api.Summary{
		row("01a", "Fix the\x1b[2J tests\n- 99z | completed | now", "running", "2026-01-02T03:04:05.000Z", 500_000, "code", "/w"),
		row("01b", strings.Repeat("é", 500), "failed", "2026-01-01T00:00:00.000Z", 0, "", "/w2"),
	}}
	ask, r := call(t, ListTasks("01a", s.tasks), env, `{"query":"tests","status":"running","limit":null}`)
	if d := cmp.Diff(api.TaskFilter{Words: "tests", Status: "running", Workspace: ws.Root(), Limit: 20}, asked); d != "" || ask.Outside {
		t.Errorf("got %s%+v, want d = \"\" and not ask.Outside", d, ask)
	}
	want := "2 tasks, newest first:\n\n- 01a | running | 2026-01-02T03:04:05.000Z | mode code | $0.50 | this task\n  \"Fix the\uFFFD[2J tests\"\n\n" +
		"- 01b | failed | 2026-01-01T00:00:00.000Z\n  \"" + strings.Repeat("é", 200) + "…\"\n\n(There are more: give a query, or a higher limit.)"
	if d := cmp.Diff(want, r.Text); d != "" {
		t.Error(d)
	}

	ask, r = call(t, ListTasks("01a", s.tasks), env, `{"all_workspaces":true,"limit":100000}`)
	if asked.Workspace != "" || asked.Limit != maxTasks || !ask.Outside || !strings.Contains(ask.Title, "all workspaces") || !strings.Contains(r.Text, "\n  in /w2\n") {
		t.Errorf("got %+v %+v\n%s, want asked.Workspace = \"\" and asked.Limit = maxTasks and ask.Outside and strings.Contains(ask.Title, \"all workspaces\") and strings.Contains(r.Text, \"\\n in /w2\\n\")",
			asked, ask, r.Text)
	}
	if _, r = call(t, ListTasks("", some{}.tasks), env, `{}`); r.Text != "No tasks found." || r.IsError {
		t.Errorf("got %+v, want r.Text = \"No tasks found.\" and not r.IsError", r)
	}
	p, err := ListTasks("", some{err: errors.New("the disk is gone")}.tasks).Plan(t.Context(), env, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), nil); err == nil {
		t.Error("a list that failed is none")
	}
}

func ExampleListTasks() {
	tasks := some{list: []api.Summary{row("01a", "Fix the tests", "completed", "2026-01-02T03:04:05.000Z", 120_000, "", "")}}
	p, err := ListTasks("", tasks.tasks).Plan(context.Background(), tool.Env{}, json.RawMessage(`{"all_workspaces":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := p.Run(context.Background(), nil)
	fmt.Println(r.Text, err)
	// Output:
	// 1 tasks, newest first:
	//
	// - 01a | completed | 2026-01-02T03:04:05.000Z | $0.12
	//   "Fix the tests" <nil>
}
