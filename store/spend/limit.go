package spend

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
)

// Since adds up what all tasks spent from a moment on, in Unix milliseconds: own is the part of the task with that id, and
// others that of all other tasks. A request whose price is unknown adds nothing. Since opens only tasks that changed since.
func Since(ctx context.Context, s *store.Store, since int64, id string) (own, others money.USD, err error) {
	listed, err := s.List(ctx, store.Filter{Since: since})
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	refs, err := s.Refs(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	at := make(map[string]store.Ref, len(refs))
	for _, ref := range refs {
		at[ref.Dir] = ref
	}
	bills, err := readBills(ctx, s, listed.Items, at)
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
	seen := map[string]bool{root: true}
	for next := []string{root}; len(next) > 0; next = next[1:] {
		if next[0] != id {
			sum = api.AddClamped(sum, cost[next[0]])
		}
		for _, child := range children[next[0]] {
			if !seen[child] {
				seen[child] = true
				next = append(next, child)
			}
		}
	}
	return money.USD(sum), nil
}
