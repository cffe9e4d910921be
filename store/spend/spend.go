// Package spend adds up what tasks spent: in groups, since a moment, and in a tree of subtasks.
//
// The amounts are those of each task's requests (Expenses). A request whose price is unknown counts its tokens
// and no cost. Of a task of another tool and the copy that Roost continues, each request counts once: in the original
// while that is listed and has it, else in the copy.
package spend

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// add counts a request of a task; task is its path. The requests of one task must come one after another.
func (c *spendingSums) add(g *api.SpendingGroup, task string, u api.Usage) {
	if c.last[g] != task {
		c.last[g] = task
		g.Tasks++
	}
	g.Requests++
	if u.Cost == nil {
		g.Unpriced++
	}
	g.Usage = g.Usage.Plus(u)
}

// Sum adds up the tasks of a source or a tool, and of a workspace, as far as f names them. Only requests of the time in f
// count. zone is that of days. For a task that cannot be read Sum counts the summary's usage, which is unknown.
func Sum(ctx context.Context, s *store.Store, by api.Grouping, f api.TaskFilter, zone *time.Location) (api.Totals, error) {
	if !slices.Contains(api.Groupings, by) {
		return api.Totals{}, fmt.Errorf("group spending by %q: there is no such grouping", by)
	}
	listed, err := s.List(ctx, store.Filter{TaskFilter: api.TaskFilter{Source: f.Source, Workspace: f.Workspace}})
	if err != nil {
		return api.Totals{}, err
	}
	sums := spendingSums{by: by, filter: f, zone: zone, groups: map[string]*api.SpendingGroup{}, last: map[*api.SpendingGroup]string{}}
	// The time of a task without a journal is what its files claim: such a task is always opened.
	open := func(t api.Summary, r store.Ref) bool {
		return changedSince(t, f.Since) || !r.Own || !s.HasJournal(ctx, r)
	}
	if err := readBills(ctx, s, listed, open, sums.task); err != nil {
		return api.Totals{}, err
	}
	return sums.spending(listed.Items), nil
}

// changedSince reports whether a task changed since a time in Unix milliseconds. A rewind takes the time of the messages
// back, and not what was spent.
func changedSince(t api.Summary, since int64) bool {
	return t.TS >= since || t.UpdatedAt != nil && *t.UpdatedAt >= api.Stamp(since)
}

// readBills passes to each what the listed tasks spent that open names. It reads as many tasks at a time as there are cores.
func readBills(ctx context.Context, s *store.Store, listed store.Listing, open func(api.Summary, store.Ref) bool,
	each func(api.Summary, []Expense)) error {
	var places []int
	originals := map[string]store.Ref{} // by their folders
	for i, t := range listed.Items {
		if ref := listed.Refs[i]; !ref.Own {
			originals[ref.Dir] = ref
		}
		if open(t, listed.Refs[i]) {
			places = append(places, i)
		}
	}
	const atOnce = 64
	for from := 0; from < len(places); from += atOnce {
		progress.Report(ctx, progress.State{What: "adding up", Done: from, Of: len(places)})
		part := places[from:min(from+atOnce, len(places))]
		tasks, lists := make([]api.Summary, len(part)), make([][]Expense, len(part))
		store.Parallel(ctx, runtime.GOMAXPROCS(0), len(part), func(i int) {
			tasks[i], lists[i] = readBill(ctx, s, listed.Items[part[i]], listed.Refs[part[i]], originals)
		})
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("add up what was spent: %w", err)
		}
		for i := range part {
			each(tasks[i], lists[i])
		}
	}
	return nil
}

// readBill returns a task and what it spent. It leaves out of a copy what its original counts, if originals has that.
func readBill(ctx context.Context, s *store.Store, t api.Summary, ref store.Ref, originals map[string]store.Ref) (api.Summary, []Expense) {
	var known []Expense
	if t.Usage.NonZero() {
		known = []Expense{{At: t.TS, Usage: t.Usage}}
	}
	v, err := s.ReadUnlabelled(ctx, ref)
	if err != nil {
		return t, known
	}
	list, err := Expenses(ctx, v)
	if errors.Join(err, v.Close()) != nil {
		return t, known
	}
	if original, copied := originals[v.CopiedFrom()]; copied {
		amounts := func(u api.Usage) [5]int64 {
			return [...]int64{u.TokensIn, u.TokensOut, u.CacheWrites, u.CacheReads, u.Micros()}
		}
		counted := map[[5]int64]int{}
		_, theirs := readBill(ctx, s, api.Summary{}, original, nil)
		for _, e := range theirs {
			counted[amounts(e.Usage)]++
		}
		list = slices.DeleteFunc(list, func(e Expense) bool {
			counted[amounts(e.Usage)]--
			return counted[amounts(e.Usage)] >= 0
		})
	}
	v.Summary.Title = t.Title // the list may have a newer one
	return v.Summary, list
}

// spendingSums collects groups.
type spendingSums struct {
	by     api.Grouping
	filter api.TaskFilter
	zone   *time.Location // of days
	groups map[string]*api.SpendingGroup
	order  []*api.SpendingGroup
	total  api.SpendingGroup
	last   map[*api.SpendingGroup]string // the path of the task that add counted last
}

func (c *spendingSums) task(t api.Summary, list []Expense) {
	for _, e := range list {
		if c.filter.Since != 0 && e.At < c.filter.Since || c.filter.Until != 0 && e.At >= c.filter.Until || !e.Usage.NonZero() && e.Usage.Cost != nil {
			continue
		}
		c.add(&c.total, t.Path, e.Usage)
		keys := c.keys(t, e)
		for i, key := range keys {
			share := e.Usage.Share(i, len(keys))
			if slices.Contains(keys[:i], key) { // the same tool again, in one request
				g := c.group(key, t)
				g.Usage = g.Usage.Plus(share)
				continue
			}
			c.add(c.group(key, t), t.Path, share)
		}
	}
}

// keys returns the groups that share an expense.
func (c *spendingSums) keys(t api.Summary, e Expense) []string {
	switch c.by {
	case api.ByDay, api.ByWeek, api.ByMonth:
		if e.At < api.EarliestTime {
			return []string{""}
		}
		return []string{c.by.KeyAt(time.UnixMilli(e.At).In(c.zone))}
	case api.ByModel:
		if e.Provider == "" || e.Model == "" {
			return []string{e.Provider + e.Model}
		}
		return []string{e.Provider + "/" + e.Model}
	case api.ByWorkspace:
		return []string{t.Workspace}
	case api.ByTool:
		if len(e.Tools) > 0 {
			return e.Tools
		}
		return []string{""}
	}
	return []string{t.ID}
}

func (c *spendingSums) group(key string, t api.Summary) *api.SpendingGroup {
	at := key
	if c.by == api.ByTask {
		at = t.Path // two storages may hold tasks of one id
	}
	g := c.groups[at]
	if g == nil {
		g = &api.SpendingGroup{Key: key}
		if c.by == api.ByTask {
			g.Title, g.Source, g.ParentID = t.Title, t.Source, t.ParentID
		}
		c.groups[at] = g
		c.order = append(c.order, g)
	}
	return g
}

// spending orders the groups: periods of time by time, all others by cost, then tokens.
func (c *spendingSums) spending(tasks []api.Summary) api.Totals {
	if c.by == api.ByTask {
		c.withChildren(tasks)
	}
	slices.SortStableFunc(c.order, func(a, b *api.SpendingGroup) int {
		if c.by.OverTime() {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Usage.Micros(), a.Usage.Micros()), cmp.Compare(b.Usage.TokensIn, a.Usage.TokensIn), cmp.Compare(a.Key, b.Key))
	})
	c.total.Key = "total"
	return api.Totals{By: c.by, Total: c.total, Items: api.Each(c.order, func(g *api.SpendingGroup) api.SpendingGroup { return *g })}
}

// withChildren adds to each task what its descendants spent, each once. Damaged
// folders may name each other as parents.
func (c *spendingSums) withChildren(tasks []api.Summary) {
	type taskKey struct{ source, id string }
	own := map[taskKey]api.Usage{}
	children := map[taskKey][]taskKey{}
	for _, t := range tasks {
		at := taskKey{t.Source, t.ID}
		if g := c.groups[t.Path]; g != nil {
			own[at] = g.Usage
		}
		if t.ParentID != "" {
			parent := taskKey{t.Source, t.ParentID}
			children[parent] = append(children[parent], at)
		}
	}
	for _, g := range c.order {
		at := taskKey{g.Source, g.Key}
		if len(children[at]) == 0 {
			continue
		}
		var sum api.Usage
		for _, member := range family(at, children) {
			sum = sum.Plus(own[member])
		}
		g.WithChildren = &sum
	}
}

// Since adds up what all tasks spent from a moment on, in Unix milliseconds: own is the part of the task with that id, and
// others that of all other tasks. A request whose price is unknown adds nothing. Since opens only tasks that changed since.
func Since(ctx context.Context, s *store.Store, since int64, id string) (own, others money.USD, err error) {
	listed, err := s.List(ctx, store.Filter{})
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	changed := func(t api.Summary, _ store.Ref) bool { return changedSince(t, since) }
	err = readBills(ctx, s, listed, changed, func(t api.Summary, list []Expense) {
		to := &others
		if t.ID == id {
			to = &own
		}
		for _, e := range list {
			if e.At >= since {
				*to = money.USD(api.AddClamped(int64(*to), max(e.Usage.Micros(), 0)))
			}
		}
	})
	return own, others, err
}

// ByFamily adds up what the tasks of a task's tree ever spent: its root task and all descendants of the root, without
// the task itself. Damaged folders may name each other as parents; each task counts once.
func ByFamily(ctx context.Context, s *store.Store, id, parent string) (money.USD, error) {
	listed, err := s.List(ctx, store.Filter{})
	if err != nil {
		return 0, fmt.Errorf("add up what a tree of tasks spent: %w", err)
	}
	parents := map[string]string{id: parent}
	children := map[string][]string{}
	for _, t := range listed.Items {
		if t.ID != id {
			parents[t.ID] = t.ParentID
		}
	}
	for child, of := range parents {
		if of != "" {
			children[of] = append(children[of], child)
		}
	}
	root, up := id, map[string]bool{id: true}
	for parents[root] != "" && !up[parents[root]] {
		root = parents[root]
		up[root] = true
	}
	var others store.Listing
	members := api.SetOf(family(root, children))
	for i, t := range listed.Items {
		if t.ID != id && members[t.ID] {
			others.Items, others.Refs = append(others.Items, t), append(others.Refs, listed.Refs[i])
		}
	}
	var sum int64
	all := func(api.Summary, store.Ref) bool { return true }
	err = readBills(ctx, s, others, all, func(_ api.Summary, list []Expense) {
		for _, e := range list {
			sum = api.AddClamped(sum, max(e.Usage.Micros(), 0))
		}
	})
	return money.USD(sum), err
}

// family returns a task and all its descendants, each once: damaged folders may name each other as parents.
func family[K comparable](root K, children map[K][]K) []K {
	out, seen := []K{root}, map[K]bool{root: true}
	for i := 0; i < len(out); i++ {
		for _, child := range children[out[i]] {
			if !seen[child] {
				seen[child] = true
				out = append(out, child)
			}
		}
	}
	return out
}

// Expense is what one request to a model cost.
type Expense struct {
	At       int64 // Unix milliseconds; 0 when unknown
	Provider string
	Model    string   // "" when unknown
	Tools    []string // that its reply called, in order
	Usage    api.Usage
}

// Expenses lists what a task spent, request by request, oldest first. The list adds up to the summary's usage, to the
// micro-dollar: an amount that no request explains any more, because the journal lost a commit or the rows are gone,
// is an expense of its own without a model.
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
// does not equal the sum of rounded doubles, so each row gets the amount by which it raises the rounded sum.
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

// models returns the provider and the model of each row. Cline's rows name both, and so do Roo's rows that hold the
// request; other rows get those of the task.
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
			at[0] = esjson.TextOf(info, "providerId")
		}
	}
	return out, nil
}

// ownExpenses reads Roost's requests from the journal. The journal of a running task may hold more commits than the
// folded state: it leaves these out.
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
		e.Usage.Cost = new(money.USD(max(*line.CostMicros, 0)))
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

// toolOfKind names the tool that a row of a kind shows; "" = the row's text names it.
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
	inner := []byte(esjson.TextOf(raw, "text"))
	if esjson.TypeOf(inner) != esjson.TypeObject || !esjson.Valid(inner) {
		return ""
	}
	name := esjson.TextOf(inner, "tool")
	if tool, ok := toolOfText[name]; ok {
		return tool
	}
	return name
}
