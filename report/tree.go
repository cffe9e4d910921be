package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// FamilyOf returns a task and all of its descendants, also empty ones: a subtask is saved before its first message.
func FamilyOf(ctx context.Context, s *store.Store, ref store.Ref) (api.Family, error) {
	got, err := s.List(ctx, store.Filter{Tree: true, Empty: true, Sort: "oldest"})
	if err != nil {
		return api.Family{}, err
	}
	at := slices.IndexFunc(got.Items, func(t api.Summary) bool {
		return t.ID == ref.ID && (t.Path == ref.Dir || slices.Contains(t.Copies, ref.Dir))
	})
	if at < 0 {
		return api.Family{}, fmt.Errorf("%w: %q", store.ErrNotFound, ref.ID)
	}
	to := at + 1
	for to < len(got.Items) && got.Depths[to] > got.Depths[at] {
		to++
	}
	return api.Family{Tasks: got.Items[at:to], Depths: got.Depths[at:to]}, nil
}
