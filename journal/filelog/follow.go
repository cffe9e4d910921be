package filelog

import (
	"context"
	"iter"
	"time"

	"github.com/roost-dev/roost/journal"
)

// Follow implements journal.Reader.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, poll, cancel := theHub.subscribe(r.key)
		defer cancel()
		c, limit, head, err := r.open(ctx, from)
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			if err == nil && limit > c.off && !r.emit(ctx, &c, limit, head, yield) {
				return
			}
			if err == nil {
				err = r.check(ctx)
			}
			if err != nil {
				yield(journal.Commit{}, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-r.closed:
			case <-wake:
			case <-tick.C:
			}
			if err = r.check(ctx); err == nil {
				limit, head, err = r.visible()
			}
		}
	}
}
