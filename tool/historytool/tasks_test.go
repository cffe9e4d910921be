package historytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// some is a list of tasks, and what it was asked for.
type some struct {
	list  []Task
	more  bool
	err   error
	asked *Query
}

func (s some) Tasks(_ context.Context, q Query) ([]Task, bool, error) {
	if s.asked != nil {
		*s.asked = q
	}
	return s.list, s.more, s.err
}

func TestListTasks(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := tool.Env{Workspace: ws}
	var asked Query
	s := some{asked: &asked, more: true, list: []Task{
		{ID: "01a", Title: "Fix the\x1b[2J tests\n- 99z | completed | now", Status: "running", Updated: "2026-01-02T03:04:05.000Z", Mode: "code", Cost: "0.50", Current: true, Workspace: "/w"},
		{ID: "01b", Title: strings.Repeat("é", 500), Status: "failed", Updated: "2026-01-01T00:00:00.000Z", Workspace: "/w2"},
	}}
	ask, r := call(t, ListTasks(s), env, `{"query":"tests","status":"running","limit":null}`)
	if d := cmp.Diff(Query{Words: "tests", Status: "running", Workspace: ws.Root(), Limit: 20}, asked); d != "" || ask.Outside {
		t.Errorf("got %s%+v, want d = \"\" and not ask.Outside", d, ask)
	}
	want := "2 tasks, newest first:\n\n- 01a | running | 2026-01-02T03:04:05.000Z | mode code | $0.50 | this task\n  \"Fix the\uFFFD[2J tests\"\n\n" +
		"- 01b | failed | 2026-01-01T00:00:00.000Z\n  \"" + strings.Repeat("é", 200) + "…\"\n\n(There are more: give a query, or a higher limit.)"
	if d := cmp.Diff(want, r.Text); d != "" {
		t.Error(d)
	}

	ask, r = call(t, ListTasks(s), env, `{"all_workspaces":true,"limit":100000}`)
	if asked.Workspace != "" || asked.Limit != maxTasks || !ask.Outside || !strings.Contains(ask.Title, "all workspaces") || !strings.Contains(r.Text, "\n  in /w2\n") {
		t.Errorf("got %+v %+v\n%s, want asked.Workspace = \"\" and asked.Limit = maxTasks and ask.Outside and strings.Contains(ask.Title, \"all workspaces\") and strings.Contains(r.Text, \"\\n in /w2\\n\")",
			asked, ask, r.Text)
	}
	if _, r = call(t, ListTasks(some{}), env, `{}`); r.Text != "No tasks found." || r.IsError {
		t.Errorf("got %+v, want r.Text = \"No tasks found.\" and not r.IsError", r)
	}
	p, err := ListTasks(some{err: errors.New("the disk is gone")}).Plan(t.Context(), env, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), nil); err == nil {
		t.Error("a list that failed is none")
	}
}

func ExampleListTasks() {
	tasks := some{list: []Task{{ID: "01a", Title: "Fix the tests", Status: "completed", Updated: "2026-01-02T03:04:05.000Z", Cost: "0.12"}}}
	p, err := ListTasks(tasks).Plan(context.Background(), tool.Env{}, json.RawMessage(`{"all_workspaces":true}`))
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
