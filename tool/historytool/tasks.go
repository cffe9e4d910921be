package historytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// ListTasksName is the name of the tool that lists tasks.
const ListTasksName = "list_tasks"

// Query selects the tasks of a list.
type Query struct {
	Words     string // that title or id hold; "" for all
	Status    string
	Workspace string // "" for those of every workspace
	Limit     int
}

// Task is one line of the list.
type Task struct {
	ID, Title, Status string
	Workspace, Mode   string
	Updated           string // a time as text
	Cost              string // in US dollars as text; "" when unknown
	Current           bool   // the one that asks
}

// Lister lists tasks, newest first, and reports whether there are more.
type Lister interface {
	Tasks(ctx context.Context, q Query) (list []Task, more bool, err error)
}

// ListTasks returns list_tasks.
func ListTasks(l Lister) tool.Tool {
	return tool.Make(listTasksSpec, func(_ context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
		return planTasks(l, env, in)
	})
}

// Limits of a list.
const (
	defaultTasks = 20
	maxTasks     = 200
	maxTitle     = 200 // characters
)

// listTasksSpec is built once: every turn needs it.
var listTasksSpec = tool.Spec{
	Name: ListTasksName,
	Description: "List earlier tasks of this workspace, newest first: id, status, when, cost and what they were about. " +
		"Use it when the user speaks of earlier work. Tasks of other workspaces need the user's consent.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"query":{"type":["string","null"],"description":"Words that the title or the id holds"},` +
		`"status":{"type":["string","null"],"enum":["queued","running","waiting","delegated","interrupted","completed","failed","cancelled","idle",null],"description":"Only tasks in this state"},` +
		`"all_workspaces":{"type":["boolean","null"],"description":"Also tasks of other workspaces"},` +
		`"limit":{"type":["integer","null"],"description":"How many at most; 20 if not given, 200 at most"}` +
		`},"required":[],"additionalProperties":false}`),
	Class: tool.Read, Replay: tool.Again,
}

func planTasks(l Lister, env tool.Env, in tool.Input) (tool.Plan, error) {
	p := &tasksPlan{from: l}
	var wrong [3]error
	var limit int64
	p.query.Words, wrong[0] = in.Optional("query")
	p.query.Status, wrong[1] = in.Optional("status")
	limit, wrong[2] = in.Whole(defaultTasks, "limit")
	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}
	p.all, _ = in.Boolean(false, "all_workspaces")
	if limit < 1 {
		return nil, in.Wrong(`"limit" must be at least 1`)
	}
	p.query.Limit = int(min(limit, maxTasks))
	if !p.all {
		if env.Workspace == nil {
			return nil, in.Wrong(`there is no workspace: set "all_workspaces"`)
		}
		p.query.Workspace = env.Workspace.Root()
	}
	return p, nil
}

type tasksPlan struct {
	from  Lister
	query Query
	all   bool
}

func (p *tasksPlan) Ask() tool.Ask {
	title := ListTasksName
	if p.query.Words != "" {
		title += " " + tool.OneLine(p.query.Words)
	}
	if p.query.Status != "" {
		title += " (" + tool.OneLine(p.query.Status) + ")"
	}
	if p.all {
		title += " of all workspaces"
	}
	row := esjson.ObjectOf("tool", "listTasks", "query", esjson.Given(p.query.Words),
		"status", esjson.Given(p.query.Status),
		"isOutsideWorkspace", p.all)
	return tool.Ask{Tool: ListTasksName, Kind: "tool", Text: string(row), Title: title, Outside: p.all}
}

func (p *tasksPlan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	list, more, err := p.from.Tasks(ctx, p.query)
	if err != nil {
		return tool.Result{}, err
	}
	if len(list) == 0 {
		return tool.Result{Text: "No tasks found."}, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks, newest first:\n", len(list))
	for _, t := range list {
		fmt.Fprintf(&b, "\n- %s | %s | %s", tool.OneLine(t.ID), t.Status, t.Updated)
		if t.Mode != "" {
			fmt.Fprintf(&b, " | mode %s", tool.OneLine(t.Mode))
		}
		if t.Cost != "" {
			fmt.Fprintf(&b, " | $%s", t.Cost)
		}
		if t.Current {
			b.WriteString(" | this task")
		}
		if p.all && t.Workspace != "" {
			fmt.Fprintf(&b, "\n  in %s", tool.OneLine(t.Workspace))
		}
		fmt.Fprintf(&b, "\n  %s\n", title(t.Title))
	}
	if more {
		b.WriteString("\n(There are more: give a query, or a higher limit.)")
	}
	return tool.Result{Text: strings.TrimRight(b.String(), "\n")}, nil
}

// title is a task's title as one line. It is data of another task, and may hold any text: it is quoted.
func title(s string) string {
	r := []rune(tool.OneLine(strings.TrimSpace(s)))
	if len(r) > maxTitle {
		r = append(r[:maxTitle], '…')
	}
	return fmt.Sprintf("%q", string(r))
}
