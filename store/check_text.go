package store

import (
	"bytes"
	"context"

	"github.com/roost-dev/roost/catalog"
)

// compareText says whether the messages that can be found of a task are those that its
// folder gives.
func (s *Store) compareText(ctx context.Context, v *View, snap *catalog.Snapshot, row catalog.Task) (string, error) {
	var fresh catalog.Builder
	for m, err := range texts(ctx, v.State) {
		if err != nil {
			return "", ctx.Err() // it is damaged, and would not have been kept
		}
		fresh.Add(m)
		fresh.Shed()
	}
	want := fresh.Entry("", "", 0, nil).Digest()
	have, err := snap.Digest(ctx, row.ID)
	if err != nil {
		return "its text cannot be read: " + err.Error(), ctx.Err()
	}
	if !bytes.Equal(have, want) {
		return "its text is not what the folder gives", nil
	}
	return "", nil
}
