package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/money"
)

// SpentSince adds up what all tasks spent from a moment on, in Unix milliseconds: one
// task's part, by its id, and that of all others. Requests whose price is unknown
// count nothing. Tasks in which nothing happened since are not opened.
func (s *Store) SpentSince(ctx context.Context, since int64, id string) (own, others money.USD, err error) {
	listed, err := s.List(ctx, Filter{Since: since})
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	refs, _, err := s.refs(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	at := make(map[string]Ref, len(refs))
	for _, ref := range refs {
		at[ref.Dir] = ref
	}
	bills, err := s.bills(ctx, listed.Items, at)
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	for _, b := range bills {
		var sum int64
		for _, e := range b.list {
			if e.At >= since {
				sum = plus(sum, max(e.Usage.micros(), 0))
			}
		}
		if b.task.ID == id {
			own = money.USD(plus(int64(own), sum))
		} else {
			others = money.USD(plus(int64(others), sum))
		}
	}
	return own, others, nil
}

// SpentByFamily adds up what the tasks of a task's tree ever spent, beside the task
// itself: the first of its parents, and all that come from that one. Damaged folders
// may name each other as parents.
func (s *Store) SpentByFamily(ctx context.Context, id, parent string) (money.USD, error) {
	listed, err := s.List(ctx, Filter{})
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
		cost[t.ID] = plus(cost[t.ID], max(t.Usage.micros(), 0))
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
			sum = plus(sum, cost[next[0]])
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
