// Package spend adds up what tasks spent: in groups, since a moment, and in a tree of subtasks.
//
// The amounts are those of each task's requests (store.View.Expenses). A request whose price is unknown counts its tokens
// and no cost.
package spend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/store"
)

// By is what spending is grouped by.
type By string

// What spending can be grouped by.
const (
	ByDay       By = "day"       // when the request was sent, in the caller's time zone
	ByModel     By = "model"     // provider/model
	ByWorkspace By = "workspace" // the task's folder
	ByTask      By = "task"
	ByTool      By = "tool" // the tools that the reply called; its calls share the cost of a request
)

// Groupings are all of them.
var Groupings = []By{ByDay, ByModel, ByWorkspace, ByTask, ByTool}

// Filter narrows which requests count. Zero members do not filter.
type Filter struct {
	Source    string // a source's or a tool's name
	Workspace string
	Since     int64 // Unix milliseconds, of the request
	Until     int64
	Zone      *time.Location // of days; nil = UTC
}

// Totals are what was spent, in groups that add up to the total: a subtask counts
// once, with itself.
type Totals struct {
	By    By      `json:"by"`
	Items []Group `json:"items"`
	Total Group   `json:"total"`
}

// Group is one group.
type Group struct {
	Key      string      `json:"key"`             // a day, provider/model, folder, task id or tool; "" = not known
	Title    string      `json:"title,omitempty"` // of a task
	Source   string      `json:"source,omitempty"`
	ParentID string      `json:"parent_id,omitempty"`
	Tasks    int         `json:"tasks"`    // that spent something in this group
	Requests int         `json:"requests"` // a request that called two tools counts for both
	Unpriced int         `json:"unpriced"` // requests whose price is unknown
	Usage    store.Usage `json:"usage"`

	// WithChildren is a task's own usage and that of all its descendants. These
	// overlap and do not add up to the total.
	WithChildren *store.Usage `json:"with_children,omitempty"`

	last string // the path of the task that add counted last
}

// add counts a request of a task.
func (g *Group) add(task string, u store.Usage) {
	if g.last != task {
		g.last = task
		g.Tasks++
	}
	g.Requests++
	if u.Cost == nil {
		g.Unpriced++
	}
	g.Usage = g.Usage.Plus(u)
}

// Totals adds up the tasks that List lists. A task that cannot be read spent
// what its summary says: nothing that is known.
func Sum(ctx context.Context, s *store.Store, by By, f Filter) (Totals, error) {
	if !slices.Contains(Groupings, by) {
		return Totals{}, fmt.Errorf("group spending by %q: there is no such grouping", by)
	}
	if f.Zone == nil {
		f.Zone = time.UTC
	}
	listed, err := s.List(ctx, store.Filter{Source: f.Source, Workspace: f.Workspace})
	if err != nil {
		return Totals{}, err
	}
	refs, err := s.Refs(ctx)
	if err != nil {
		return Totals{}, err
	}
	at := make(map[string]store.Ref, len(refs))
	for _, ref := range refs {
		at[ref.Dir] = ref
	}
	sums := spendingSums{by: by, filter: f, groups: map[string]*Group{}}
	const atOnce = 64
	for from := 0; from < len(listed.Items); from += atOnce {
		store.Tell(ctx, store.Progress{What: "adding up", Done: from, Of: len(listed.Items)})
		part := listed.Items[from:min(from+atOnce, len(listed.Items))]
		bills, err := readBills(ctx, s, part, at)
		if err != nil {
			return Totals{}, fmt.Errorf("add up what was spent: %w", err)
		}
		for i := range part {
			sums.task(bills[i].task, bills[i].list)
		}
	}
	return sums.spending(listed.Items), nil
}

// bill holds what one task spent.
type bill struct {
	task store.Summary
	list []store.Expense
}

// readBills reads tasks, as many at a time as there are cores. It opens each task once: what a task spent is in its messages.
func readBills(ctx context.Context, s *store.Store, tasks []store.Summary, at map[string]store.Ref) ([]bill, error) {
	out := make([]bill, len(tasks))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tasks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out[i] = readBill(ctx, s, tasks[i], at)
			}
		})
	}
	workers.Wait()
	return out, ctx.Err()
}

func readBill(ctx context.Context, s *store.Store, t store.Summary, at map[string]store.Ref) bill {
	if ref, ok := at[t.Path]; ok {
		if list, sum, err := readExpenses(ctx, s, ref); err == nil {
			sum.Title = t.Title // the list may have a newer one
			return bill{sum, list}
		}
	}
	b := bill{task: t}
	if t.Usage.NonZero() {
		b.list = []store.Expense{{At: t.TS, Usage: t.Usage}}
	}
	return b
}

// readExpenses reads one task, without its labels: they do not matter here.
func readExpenses(ctx context.Context, s *store.Store, ref store.Ref) ([]store.Expense, store.Summary, error) {
	v, err := s.ReadUnlabelled(ctx, ref)
	if err != nil {
		return nil, store.Summary{}, err
	}
	list, err := v.Expenses(ctx)
	return list, v.Summary, errors.Join(err, v.Close())
}

// spendingSums collects groups.
type spendingSums struct {
	by     By
	filter Filter
	groups map[string]*Group
	order  []*Group
	total  Group
}

func (c *spendingSums) task(t store.Summary, list []store.Expense) {
	for _, e := range list {
		if c.filter.Since != 0 && e.At < c.filter.Since || c.filter.Until != 0 && e.At >= c.filter.Until || !e.Usage.NonZero() && e.Usage.Cost != nil {
			continue
		}
		c.total.add(t.Path, e.Usage)
		keys := c.keys(t, e)
		for i, key := range keys {
			share := e.Usage.Share(i, len(keys))
			if slices.Contains(keys[:i], key) { // the same tool again, in one request
				g := c.group(key, t)
				g.Usage = g.Usage.Plus(share)
				continue
			}
			c.group(key, t).add(t.Path, share)
		}
	}
}

// keys are the groups that share an expense.
func (c *spendingSums) keys(t store.Summary, e store.Expense) []string {
	switch c.by {
	case ByDay:
		if e.At <= 0 {
			return []string{""}
		}
		return []string{time.UnixMilli(e.At).In(c.filter.Zone).Format(time.DateOnly)}
	case ByModel:
		if e.Provider == "" || e.Model == "" {
			return []string{e.Provider + e.Model}
		}
		return []string{e.Provider + "/" + e.Model}
	case ByWorkspace:
		return []string{t.Workspace}
	case ByTool:
		if len(e.Tools) > 0 {
			return e.Tools
		}
		return []string{""}
	}
	return []string{t.ID}
}

func (c *spendingSums) group(key string, t store.Summary) *Group {
	at := key
	if c.by == ByTask {
		at = t.Path // two storages may hold tasks of one id
	}
	g := c.groups[at]
	if g == nil {
		g = &Group{Key: key}
		if c.by == ByTask {
			g.Title, g.Source, g.ParentID = t.Title, t.Source, t.ParentID
		}
		c.groups[at] = g
		c.order = append(c.order, g)
	}
	return g
}

// spending orders the groups: days by time, all else by cost, then tokens.
func (c *spendingSums) spending(tasks []store.Summary) Totals {
	if c.by == ByTask {
		c.withChildren(tasks)
	}
	slices.SortStableFunc(c.order, func(a, b *Group) int {
		if c.by == ByDay {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Usage.Micros(), a.Usage.Micros()), cmp.Compare(b.Usage.TokensIn, a.Usage.TokensIn), cmp.Compare(a.Key, b.Key))
	})
	out := Totals{By: c.by, Total: c.total, Items: make([]Group, 0, len(c.order))}
	out.Total.Key = "total"
	for _, g := range c.order {
		out.Items = append(out.Items, *g)
	}
	return out
}

// withChildren adds to each task what its descendants spent, each once. Damaged
// folders may name each other as parents.
func (c *spendingSums) withChildren(tasks []store.Summary) {
	type taskKey struct{ source, id string }
	own := map[taskKey]store.Usage{}
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
		seen := map[taskKey]bool{at: true}
		var sum store.Usage
		for next := []taskKey{at}; len(next) > 0; next = next[1:] {
			sum = sum.Plus(own[next[0]])
			for _, child := range children[next[0]] {
				if !seen[child] {
					seen[child] = true
					next = append(next, child)
				}
			}
		}
		g.WithChildren = &sum
	}
}
