package postgres

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/journal"
)

// Health implements journal.Reader. It reads every commit and payload.
func (r *reader) Health(ctx context.Context) (journal.Health, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return journal.Health{}, err
	}
	h := journal.Health{Head: head}
	blobs := map[journal.Hash]bool{}
	for c, err := range r.Read(ctx, 1) {
		if damage, ok := errors.AsType[*journal.DamageError](err); ok {
			h.Damaged = append(h.Damaged, damage.Damage)
			continue
		}
		if err != nil {
			return journal.Health{}, err
		}
		h.Epoch, h.Commits = max(h.Epoch, c.Epoch), h.Commits+1
		for _, hash := range c.Blobs {
			blobs[hash] = true
		}
	}
	err = h.CheckBlobs(ctx, r, blobs)
	return h, err
}
