package store

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
)

// By says what spending is grouped by.
type By string

// What spending can be grouped by.
const (
	ByDay       By = "day"       // when the request went out, in the asker's time zone
	ByModel     By = "model"     // provider/model
	ByWorkspace By = "workspace" // the task's folder
	ByTask      By = "task"
	ByTool      By = "tool" // what the reply called; a request's cost is shared by its calls
)

// Groupings are all of them.
var Groupings = []By{ByDay, ByModel, ByWorkspace, ByTask, ByTool}

// SpendingFilter narrows which requests count. Zero members do not filter.
type SpendingFilter struct {
	Source    string // a source's or a tool's name
	Workspace string
	Since     int64 // Unix milliseconds, of the request
	Until     int64
	Zone      *time.Location // of days; nil = UTC
}

// Spending is what was spent, in groups that add up to the total: a subtask counts
// once, with itself.
type Spending struct {
	By    By      `json:"by"`
	Items []Spent `json:"items"`
	Total Spent   `json:"total"`
}

// Spent is one group.
type Spent struct {
	Key      string `json:"key"`             // a day, provider/model, folder, task id or tool; "" = not known
	Title    string `json:"title,omitempty"` // of a task
	Source   string `json:"source,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	Tasks    int    `json:"tasks"`    // that spent something in it
	Requests int    `json:"requests"` // one that called two tools counts for both
	Unpriced int    `json:"unpriced"` // requests whose price is unknown
	Usage    Usage  `json:"usage"`

	// WithChildren is a task's own usage and that of all its descendants. These
	// overlap and do not add up to the total.
	WithChildren *Usage `json:"with_children,omitempty"`

	last string // the path of the task that was counted last
}

// add counts a request of a task.
func (g *Spent) add(task string, u Usage) {
	if g.last != task {
		g.last = task
		g.Tasks++
	}
	g.Requests++
	if u.Cost == nil {
		g.Unpriced++
	}
	g.Usage = g.Usage.and(u)
}

// Spending adds up the tasks that List lists. A task that cannot be read spent
// what its summary says: nothing that is known.
func (s *Store) Spending(ctx context.Context, by By, f SpendingFilter) (Spending, error) {
	if !slices.Contains(Groupings, by) {
		return Spending{}, fmt.Errorf("group spending by %q: there is no such grouping", by)
	}
	if f.Zone == nil {
		f.Zone = time.UTC
	}
	listed, err := s.List(ctx, Filter{Source: f.Source, Workspace: f.Workspace})
	if err != nil {
		return Spending{}, err
	}
	refs, _, err := s.refs(ctx)
	if err != nil {
		return Spending{}, err
	}
	at := make(map[string]Ref, len(refs))
	for _, ref := range refs {
		at[ref.Dir] = ref
	}
	sums := spendingSums{by: by, filter: f, groups: map[string]*Spent{}}
	const atOnce = 64
	for from := 0; from < len(listed.Items); from += atOnce {
		Tell(ctx, Progress{What: "adding up", Done: from, Of: len(listed.Items)})
		part := listed.Items[from:min(from+atOnce, len(listed.Items))]
		bills, err := s.bills(ctx, part, at)
		if err != nil {
			return Spending{}, fmt.Errorf("add up what was spent: %w", err)
		}
		for i := range part {
			sums.task(bills[i].task, bills[i].list)
		}
	}
	return sums.spending(listed.Items), nil
}

// bill is what one task spent.
type bill struct {
	task Summary
	list []Expense
}

// bills reads tasks, as many at a time as there are cores: what they spent stands in
// their messages, and each is opened once.
func (s *Store) bills(ctx context.Context, tasks []Summary, at map[string]Ref) ([]bill, error) {
	out := make([]bill, len(tasks))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tasks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out[i] = s.bill(ctx, tasks[i], at)
			}
		})
	}
	workers.Wait()
	return out, ctx.Err()
}

func (s *Store) bill(ctx context.Context, t Summary, at map[string]Ref) bill {
	if ref, ok := at[t.Path]; ok {
		if list, sum, err := s.expenses(ctx, ref); err == nil {
			sum.Title = t.Title // the list may know a newer one
			return bill{sum, list}
		}
	}
	b := bill{task: t}
	if t.Usage.some() {
		b.list = []Expense{{At: t.TS, Usage: t.Usage}}
	}
	return b
}

// expenses reads one task. What a person filed it under says nothing of what it cost and
// is not looked at.
func (s *Store) expenses(ctx context.Context, ref Ref) ([]Expense, Summary, error) {
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return nil, Summary{}, err
	}
	list, err := v.Expenses(ctx)
	return list, v.Summary, errors.Join(err, v.Close())
}

// spendingSums collects groups.
type spendingSums struct {
	by     By
	filter SpendingFilter
	groups map[string]*Spent
	order  []*Spent
	total  Spent
}

func (c *spendingSums) task(t Summary, list []Expense) {
	for _, e := range list {
		if c.filter.Since != 0 && e.At < c.filter.Since || c.filter.Until != 0 && e.At >= c.filter.Until || !e.Usage.some() && e.Usage.Cost != nil {
			continue
		}
		c.total.add(t.Path, e.Usage)
		keys := c.keys(t, e)
		for i, key := range keys {
			share := e.Usage.share(i, len(keys))
			if slices.Contains(keys[:i], key) { // the same tool again, in one request
				g := c.group(key, t)
				g.Usage = g.Usage.and(share)
				continue
			}
			c.group(key, t).add(t.Path, share)
		}
	}
}

// keys are the groups that share an expense.
func (c *spendingSums) keys(t Summary, e Expense) []string {
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

func (c *spendingSums) group(key string, t Summary) *Spent {
	at := key
	if c.by == ByTask {
		at = t.Path // one id may stand in two places
	}
	g := c.groups[at]
	if g == nil {
		g = &Spent{Key: key}
		if c.by == ByTask {
			g.Title, g.Source, g.ParentID = t.Title, t.Source, t.ParentID
		}
		c.groups[at] = g
		c.order = append(c.order, g)
	}
	return g
}

// spending orders the groups: days by time, all else by cost, then tokens.
func (c *spendingSums) spending(tasks []Summary) Spending {
	if c.by == ByTask {
		c.withChildren(tasks)
	}
	slices.SortStableFunc(c.order, func(a, b *Spent) int {
		if c.by == ByDay {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Usage.micros(), a.Usage.micros()), cmp.Compare(b.Usage.TokensIn, a.Usage.TokensIn), cmp.Compare(a.Key, b.Key))
	})
	out := Spending{By: c.by, Total: c.total, Items: make([]Spent, 0, len(c.order))}
	out.Total.Key = "total"
	for _, g := range c.order {
		out.Items = append(out.Items, *g)
	}
	return out
}

// withChildren adds to each task what its descendants spent, each once. Damaged
// folders may name each other as parents.
func (c *spendingSums) withChildren(tasks []Summary) {
	type place struct{ source, id string }
	own := map[place]Usage{}
	children := map[place][]place{}
	for _, t := range tasks {
		at := place{t.Source, t.ID}
		if g := c.groups[t.Path]; g != nil {
			own[at] = g.Usage
		}
		if t.ParentID != "" {
			parent := place{t.Source, t.ParentID}
			children[parent] = append(children[parent], at)
		}
	}
	for _, g := range c.order {
		at := place{g.Source, g.Key}
		if len(children[at]) == 0 {
			continue
		}
		seen := map[place]bool{at: true}
		var sum Usage
		for next := []place{at}; len(next) > 0; next = next[1:] {
			sum = sum.and(own[next[0]])
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
