package filelog

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/journal"
)

// Health implements journal.Reader: it reads every line and every blob.
func (r *reader) Health(ctx context.Context) (journal.Health, error) {
	var h journal.Health
	if err := r.check(ctx); err != nil {
		return h, err
	}
	limit, head, err := r.visible()
	if err != nil {
		return h, err
	}
	var c cursor
	blobs := map[journal.Hash]bool{}
	err = r.walk(ctx, &c.off, &c.order, limit, func(it item) bool {
		h.Damaged = append(h.Damaged, it.lost...)
		h.SetAside = append(h.SetAside, it.rejected...)
		if !it.commit {
			return true
		}
		cm, err := decode(it.raw)
		var d *journal.DamageError
		if errors.As(err, &d) {
			h.Damaged = append(h.Damaged, d.Damage)
			return true
		}
		h.Commits++
		for _, b := range cm.Blobs {
			blobs[b] = true
		}
		return true
	})
	if err != nil {
		return h, err
	}
	h.Head, h.Epoch = c.order.last, c.order.epoch
	tail := journal.Damage{Seq: 0, Offset: c.off, Length: limit - c.off, Reason: "the last line is not finished"}
	if c.order.zero {
		at := c.order.bad[c.order.zeAt]
		tail = journal.Damage{Offset: at.Offset, Length: limit - at.Offset, Reason: at.Reason}
	}
	if tail.Length > 0 {
		h.TornTail = &tail
	}
	h.Damaged = append(h.Damaged, c.order.end(limit, head)...)
	for b := range blobs {
		switch err := r.checkBlob(ctx, b); {
		case errors.Is(err, journal.ErrBlobMissing):
			h.MissingBlobs = append(h.MissingBlobs, b)
		case errors.Is(err, journal.ErrBlobDamaged):
			h.DamagedBlobs = append(h.DamagedBlobs, b)
		case err != nil:
			return h, err
		}
	}
	return h, nil
}

func (r *reader) checkBlob(ctx context.Context, h journal.Hash) error {
	b, err := r.Blob(ctx, h)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.(*blob).verify()
}
