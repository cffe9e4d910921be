package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store"
)

// Family is a task with its subtasks, as they are listed: each behind its parent.
type Family struct {
	Tasks  []api.Summary
	Depths []int
}

// FamilyOf returns a task and all of its descendants, also empty ones: a subtask is saved before its first message.
func FamilyOf(ctx context.Context, s *store.Store, ref store.Ref) (Family, error) {
	got, err := s.List(ctx, store.Filter{Tree: true, Empty: true, Sort: "oldest"})
	if err != nil {
		return Family{}, err
	}
	at := slices.IndexFunc(got.Items, func(t api.Summary) bool {
		return t.ID == ref.ID && (t.Path == ref.Dir || slices.Contains(t.Copies, ref.Dir))
	})
	if at < 0 {
		return Family{}, fmt.Errorf("%w: %q", store.ErrNotFound, ref.ID)
	}
	to := at + 1
	for to < len(got.Items) && got.Depths[to] > got.Depths[at] {
		to++
	}
	return Family{got.Items[at:to], got.Depths[at:to]}, nil
}

// CostsBelow are the costs of each task of a tree together with its subtasks; nil where none
// of them is known, and where a task has none.
func CostsBelow(tasks []api.Summary, depths []int) []*money.USD {
	out := make([]*money.USD, len(tasks))
	for i := range tasks {
		if i+1 == len(tasks) || depths[i+1] <= depths[i] {
			continue
		}
		for j := i; j < len(tasks) && (j == i || depths[j] > depths[i]); j++ {
			if c := tasks[j].Usage.Cost; c != nil {
				if out[i] == nil {
					out[i] = new(money.USD)
				}
				*out[i] += *c
			}
		}
	}
	return out
}

// Branch is a task and its subtasks as JSON.
type Branch struct {
	Task     api.Summary `json:"task"`
	Cost     *money.USD  `json:"cost"` // of all of them; null when nothing is known
	Children []Branch    `json:"children"`
}

// Branch is the family as one document.
func (f Family) Branch() Branch {
	all := CostsBelow(f.Tasks, f.Depths)
	b := Branch{Task: f.Tasks[0], Cost: all[0], Children: []Branch{}}
	if b.Cost == nil {
		b.Cost = f.Tasks[0].Usage.Cost
	}
	for i := 1; i < len(f.Tasks); {
		to := i + 1
		for to < len(f.Tasks) && f.Depths[to] > f.Depths[i] {
			to++
		}
		b.Children = append(b.Children, Family{f.Tasks[i:to], f.Depths[i:to]}.Branch())
		i = to
	}
	return b
}
