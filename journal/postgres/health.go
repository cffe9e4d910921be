package postgres

import (
	"context"
	"errors"
	"io"

	"github.com/roost-dev/roost/journal"
)

// Health implements journal.Reader. It reads every commit and payload.
func (r *reader) Health(ctx context.Context) (journal.Health, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return journal.Health{}, err
	}
	h := journal.Health{Head: head}
	seen := map[journal.Hash]bool{}
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
			if seen[hash] {
				continue
			}
			seen[hash] = true
			switch err := r.checkBlob(ctx, hash); {
			case errors.Is(err, journal.ErrBlobMissing):
				h.MissingBlobs = append(h.MissingBlobs, hash)
			case errors.Is(err, journal.ErrBlobDamaged):
				h.DamagedBlobs = append(h.DamagedBlobs, hash)
			case err != nil:
				return journal.Health{}, err
			}
		}
	}
	return h, nil
}

// checkBlob reads a payload without keeping it.
func (r *reader) checkBlob(ctx context.Context, h journal.Hash) error {
	b, err := r.Blob(ctx, h)
	if err != nil {
		return err
	}
	return journal.CopyBlob(io.Discard, b, h)
}
