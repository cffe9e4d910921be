package spend

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// Expense is what one request to a model cost.
type Expense struct {
	At       int64 // Unix milliseconds; 0 when unknown
	Provider string
	Model    string   // "" when unknown
	Tools    []string // that its reply called, in order
	Usage    api.Usage
}

// Expenses lists what a task spent, request by request, oldest first. The list adds up to the summary's usage, to the
// micro-dollar: what no request explains any more, because the journal lost a commit or the rows are gone, is an expense
// of its own without a model.
func Expenses(ctx context.Context, v *store.View) ([]Expense, error) {
	list, err := foreignExpenses(ctx, v)
	if err != nil {
		return nil, err
	}
	own, err := ownExpenses(ctx, v)
	if err != nil {
		return nil, err
	}
	list = append(list, own...)
	for i := range list {
		if list[i].At <= 0 {
			list[i].At = max(v.Summary.TS, 0)
		}
	}
	slices.SortStableFunc(list, func(a, b Expense) int { return cmp.Compare(a.At, b.At) })
	addTools(v, list)
	var sum api.Usage
	for _, e := range list {
		sum = sum.Plus(e.Usage)
	}
	if rest := v.Summary.Usage.Less(sum); rest.NonZero() {
		if rest.Cost == nil && v.Summary.Usage.Cost != nil {
			rest.Cost = new(money.USD)
		}
		list = append(list, Expense{At: max(v.Summary.TS, 0), Usage: rest})
	}
	return list, nil
}

// foreignExpenses splits the sum of other programs' rows into the rows' shares. A sum of doubles that is rounded once
// does not equal the sum of rounded doubles, so each row gets its step in the rounded sum.
func foreignExpenses(ctx context.Context, v *store.View) ([]Expense, error) {
	var list []Expense
	var sum usage.Tokens
	var before api.Usage
	var costBefore money.USD
	rows := cost.ForeignRows(v.State)
	models, err := models(ctx, v, rows)
	if err != nil {
		return nil, err
	}
	for i, m := range rows {
		spent, _ := m.Spent()
		spent.AddTo(&sum)
		now, price := cost.Round(sum)
		step, share := now.Less(before), price-costBefore
		before, costBefore = now, price
		if share == 0 && !step.NonZero() {
			continue // a request that brought no reply
		}
		if v.Summary.Usage.Cost != nil { // otherwise no row has a price
			step.Cost = &share
		}
		list = append(list, Expense{At: m.TS(), Provider: models[i][0], Model: models[i][1], Usage: step})
	}
	return list, nil
}

// models gives the provider and the model of each row. Cline's rows name them, and Roo's when they hold the request;
// for other rows they are the task's.
func models(ctx context.Context, v *store.View, rows []*task.Message) ([][2]string, error) {
	out := make([][2]string, len(rows))
	i := -1
	for raw, err := range fold.Raws(ctx, v.State, rows) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		i++
		at := &out[i]
		*at = [2]string{v.State.Settings.Provider, cmp.Or(v.State.Settings.Model, v.Summary.Model)}
		if err != nil {
			continue // its bytes are gone; its cost is known
		}
		info, ok := esjson.Get(raw, "modelInfo")
		if !ok || esjson.TypeOf(info) != esjson.TypeObject {
			at[1] = cmp.Or(roofmt.EnvironmentOf(raw).Model, at[1])
			continue
		}
		if model, ok := esjson.GetString(info, "modelId"); ok && model != "" {
			at[1] = model
			at[0], _ = esjson.GetString(info, "providerId")
		}
	}
	return out, nil
}

// ownExpenses reads Roost's requests from the journal. The journal of a task that runs may hold more commits than the
// folded state: they are left to the next reader.
func ownExpenses(ctx context.Context, v *store.View) ([]Expense, error) {
	if v.Log == nil || v.State.Usage.Requests == 0 {
		return nil, nil
	}
	var out []Expense
	from := uint64(1)
	if v.State.Fork != nil { // requests before the fork are the other task's
		from = v.State.Fork.Seq + 1
	}
	for c, err := range journal.Whole(v.Log.Read(ctx, from)) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("task %s: read what it spent: %w", v.Ref.ID, err)
		case c.Seq > v.State.Seq:
			return out, nil
		}
		for _, raw := range c.Events {
			if !bytes.Contains(raw, []byte("usage.changed")) {
				continue
			}
			e, err := task.Decode(raw)
			line, ok := e.(task.UsageChanged)
			if err != nil || !ok {
				continue
			}
			if e := expense(v, line, c.At); line.More && len(out) > 0 {
				out[len(out)-1].Usage.Add(e.Usage)
			} else {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

func expense(v *store.View, line task.UsageChanged, at int64) Expense {
	if m := v.State.Message(line.Request); m != nil && m.TS() > 0 {
		at = m.TS() // when the request was sent: its reply's calls are later
	}
	in, read, write := max(line.Input, 0), max(line.CacheRead, 0), max(line.CacheWrite, 0)
	e := Expense{At: at, Provider: line.Provider, Model: line.Model, Usage: api.Usage{
		TokensIn: api.AddClamped(in, api.AddClamped(read, write)), TokensOut: max(line.Output, 0), CacheReads: read, CacheWrites: write,
	}}
	if line.CostMicros != nil && v.Summary.Usage.Cost != nil { // with unknown and free requests only, the sum is unknown
		price := money.USD(max(*line.CostMicros, 0))
		e.Usage.Cost = &price
	}
	return e
}

// addTools adds each tool call to the request whose reply made it: the last one before it. Tasks from before native tool
// calls have no calls in the API history; there the UI rows name the tools.
func addTools(v *store.View, list []Expense) {
	give := func(ts int64, tool string) {
		i, _ := slices.BinarySearchFunc(list, ts+1, func(e Expense, ts int64) int { return cmp.Compare(e.At, ts) })
		if i > 0 && tool != "" {
			list[i-1].Tools = append(list[i-1].Tools, tool)
		}
	}
	if len(list) == 0 {
		return
	}
	if calls := v.State.Calls(); len(calls) > 0 {
		for _, c := range calls {
			if m := v.State.Message(c.Message); m != nil && m.TS() > 0 {
				give(m.TS(), c.Name)
			}
		}
		return
	}
	for _, m := range v.State.UI() {
		tool, known := toolOfKind[m.Kind()]
		if !known || m.TS() <= 0 {
			continue
		}
		if tool == "" {
			raws, err := v.State.Raws([]*task.Message{m})
			if err != nil {
				continue // its bytes are gone
			}
			tool = toolOfRow(raws[0])
		}
		give(m.TS(), tool)
	}
}

// toolOfKind is the tool that a row of a kind shows; "" = the row's text names it.
var toolOfKind = map[string]string{
	"ask:tool": "", "say:tool": "",
	"ask:command": "execute_command", "say:command": "execute_command",
	"ask:use_mcp_server": "use_mcp_tool", "say:use_mcp_server": "use_mcp_tool",
	"ask:followup": "ask_followup_question", "ask:plan_mode_respond": "plan_mode_respond",
	"say:completion_result":     "attempt_completion",
	"ask:browser_action_launch": "browser_action", "say:browser_action_launch": "browser_action",
}

// toolOfText translates the names in tool rows. Other names stay as they are.
var toolOfText = map[string]string{
	"editedExistingFile": "write_to_file", "newFileCreated": "write_to_file", "appliedDiff": "apply_diff",
	"readFile": "read_file", "listFilesTopLevel": "list_files", "listFilesRecursive": "list_files", "listFiles": "list_files",
	"searchFiles": "search_files", "codebaseSearch": "codebase_search", "listCodeDefinitionNames": "list_code_definition_names",
	"fetchInstructions": "fetch_instructions", "insertContent": "insert_content", "searchAndReplace": "search_and_replace",
	"switchMode": "switch_mode", "newTask": "new_task", "updateTodoList": "update_todo_list", "runSlashCommand": "run_slash_command",
	"generateImage": "generate_image", "readCommandOutput": "read_command_output", "webFetch": "web_fetch", "webSearch": "web_search",
	"finishTask": "", "imageGenerated": "", // rows about a call that has its own
}

func toolOfRow(raw []byte) string {
	text, _ := esjson.GetString(raw, "text")
	inner := []byte(text)
	if esjson.TypeOf(inner) != esjson.TypeObject || !esjson.Valid(inner) {
		return ""
	}
	name, _ := esjson.GetString(inner, "tool")
	if tool, ok := toolOfText[name]; ok {
		return tool
	}
	return name
}
