package trash

import (
	"context"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/overlay"
)

// Hide records the deletion of another tool's task while the caller holds the overlay.
func Hide(ctx context.Context, s *store.Store, ref store.Ref, table overlay.Table, add overlay.Append) (api.DeletedTask, error) {
	return hide(ctx, s, ref, table, overlay.Entry{Type: overlay.Deleted, Source: ref.Source, ID: ref.ID, Deleted: new(true)}, add)
}
