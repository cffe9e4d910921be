// Package spend adds up what tasks spent: in groups, since a moment, and in a tree of subtasks.
//
// The amounts are those of each task's requests (Expenses). A request whose price is unknown counts its tokens
// and no cost.
package spend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
)

// Filter narrows which requests count. Zero members do not filter.
type Filter struct {
	Source    string // a source's or a tool's name
	Workspace string
	Since     int64 // Unix milliseconds, of the request
	Until     int64
	Zone      *time.Location // of days; nil = UTC
}

// add counts a request of a task, by its path. The requests of a task come one after another.
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

// Sum adds up the tasks that List lists. Of a task that cannot be read it counts the summary's usage, which is unknown.
func Sum(ctx context.Context, s *store.Store, by api.Grouping, f Filter) (api.Totals, error) {
	if !slices.Contains(api.Groupings, by) {
		return api.Totals{}, fmt.Errorf("group spending by %q: there is no such grouping", by)
	}
	if f.Zone == nil {
		f.Zone = time.UTC
	}
	listed, at, err := list(ctx, s, store.Filter{Source: f.Source, Workspace: f.Workspace})
	if err != nil {
		return api.Totals{}, err
	}
	sums := spendingSums{by: by, filter: f, groups: map[string]*api.SpendingGroup{}, last: map[*api.SpendingGroup]string{}}
	const atOnce = 64
	done := 0
	for part := range slices.Chunk(listed, atOnce) {
		progress.Report(ctx, progress.State{What: "adding up", Done: done, Of: len(listed)})
		bills, err := readBills(ctx, s, part, at)
		if err != nil {
			return api.Totals{}, fmt.Errorf("add up what was spent: %w", err)
		}
		for _, b := range bills {
			sums.task(b.task, b.list)
		}
		done += len(part)
	}
	return sums.spending(listed), nil
}

// list lists tasks. at has all tasks by their paths.
func list(ctx context.Context, s *store.Store, f store.Filter) (tasks []api.Summary, at map[string]store.Ref, err error) {
	listed, err := s.List(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	refs, err := s.Refs(ctx)
	at = make(map[string]store.Ref, len(refs))
	for _, ref := range refs {
		at[ref.Dir] = ref
	}
	return listed.Items, at, err
}

// bill holds what one task spent.
type bill struct {
	task api.Summary
	list []Expense
}

// readBills reads tasks, as many at a time as there are cores. It opens each task once: what a task spent is in its messages.
func readBills(ctx context.Context, s *store.Store, tasks []api.Summary, at map[string]store.Ref) ([]bill, error) {
	out := make([]bill, len(tasks))
	store.Parallel(ctx, runtime.GOMAXPROCS(0), len(tasks), func(i int) { out[i] = readBill(ctx, s, tasks[i], at) })
	return out, ctx.Err()
}

func readBill(ctx context.Context, s *store.Store, t api.Summary, at map[string]store.Ref) bill {
	b := bill{task: t}
	if t.Usage.NonZero() {
		b.list = []Expense{{At: t.TS, Usage: t.Usage}}
	}
	ref, ok := at[t.Path]
	if !ok {
		return b
	}
	v, err := s.ReadUnlabelled(ctx, ref)
	if err != nil {
		return b
	}
	list, err := Expenses(ctx, v)
	if errors.Join(err, v.Close()) != nil {
		return b
	}
	v.Summary.Title = t.Title // the list may have a newer one
	return bill{v.Summary, list}
}

// spendingSums collects groups.
type spendingSums struct {
	by     api.Grouping
	filter Filter
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

// keys are the groups that share an expense.
func (c *spendingSums) keys(t api.Summary, e Expense) []string {
	switch c.by {
	case api.ByDay:
		if e.At <= 0 {
			return []string{""}
		}
		return []string{time.UnixMilli(e.At).In(c.filter.Zone).Format(time.DateOnly)}
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

// spending orders the groups: days by time, all else by cost, then tokens.
func (c *spendingSums) spending(tasks []api.Summary) api.Totals {
	if c.by == api.ByTask {
		c.withChildren(tasks)
	}
	slices.SortStableFunc(c.order, func(a, b *api.SpendingGroup) int {
		if c.by == api.ByDay {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Usage.Micros(), a.Usage.Micros()), cmp.Compare(b.Usage.TokensIn, a.Usage.TokensIn), cmp.Compare(a.Key, b.Key))
	})
	out := api.Totals{By: c.by, Total: c.total, Items: make([]api.SpendingGroup, 0, len(c.order))}
	out.Total.Key = "total"
	for _, g := range c.order {
		out.Items = append(out.Items, *g)
	}
	return out
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
	listed, at, err := list(ctx, s, store.Filter{Since: since})
	var bills []bill
	if err == nil {
		bills, err = readBills(ctx, s, listed, at)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	for _, b := range bills {
		var sum int64
		for _, e := range b.list {
			if e.At >= since {
				sum = api.AddClamped(sum, max(e.Usage.Micros(), 0))
			}
		}
		if b.task.ID == id {
			own = money.USD(api.AddClamped(int64(own), sum))
		} else {
			others = money.USD(api.AddClamped(int64(others), sum))
		}
	}
	return own, others, nil
}

// ByFamily adds up what the tasks of a task's tree ever spent, without the task itself: its root task and all descendants
// of that one. Damaged folders may name each other as parents; each task counts once.
func ByFamily(ctx context.Context, s *store.Store, id, parent string) (money.USD, error) {
	listed, err := s.List(ctx, store.Filter{})
	if err != nil {
		return 0, fmt.Errorf("add up what a tree of tasks spent: %w", err)
	}
	parents := map[string]string{id: parent}
	children := map[string][]string{}
	cost := map[string]int64{}
	for _, t := range listed.Items {
		if t.ID != id {
			parents[t.ID] = t.ParentID
		}
		cost[t.ID] = api.AddClamped(cost[t.ID], max(t.Usage.Micros(), 0))
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
	var sum int64
	for _, member := range family(root, children) {
		if member != id {
			sum = api.AddClamped(sum, cost[member])
		}
	}
	return money.USD(sum), nil
}

// family is a task and all its descendants, each once: damaged folders may name each other as parents.
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
