package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/sleep"
)

// What renew does about a locked row. It waits only when it renews a single row: waiting for several rows in any
// order could end in a deadlock.
const (
	skipLocked    = " SKIP LOCKED"
	waitForLocked = ""
)

// leases renews the leases of all owners of the Journals.
type leases struct {
	pool   *database.DB
	length time.Duration

	mu  sync.Mutex
	all map[int64]*owner // by the number of the journal
}

func (l *leases) add(o *owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[o.id] = o
}

// remove forgets the lease of an owner, unless the journal has a newer one here.
func (l *leases) remove(o *owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[o.id] == o {
		delete(l.all, o.id)
	}
}

func (l *leases) list() []*owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.all))
}

// run renews all leases every third of their length. When the database does not answer, it tries again at once: the
// leases still last for two thirds.
func (l *leases) run(ctx context.Context) {
	for ctx.Err() == nil {
		sleep.For(ctx, l.length/3)
		if all := l.list(); len(all) > 0 {
			limited, cancel := context.WithTimeout(ctx, l.length/3)
			_ = l.renew(limited, all, skipLocked) // a lease that is not renewed ends, and Held shows it
			cancel()
		}
	}
}

// renewal returns the statement that renews. It joins its input with nothing but the table, by the key: a plan for
// any number of leases, which expects few, would compare each row of one set with each row of the other. A journal
// that its owner released while the statement was on its way stays free.
func renewal(locked string) string {
	return `
WITH mine AS (
	SELECT j.id, j.epoch, w.epoch AS was FROM unnest($1::bigint[], $2::bigint[]) AS w(id, epoch)
	JOIN roost.journals j ON j.id = w.id FOR NO KEY UPDATE OF j` + locked + `
), renewed AS (
	UPDATE roost.journals j SET lease_until = clock_timestamp() + $3::interval
	FROM mine WHERE j.id = mine.id AND mine.epoch = mine.was AND j.owner IS NOT NULL
)
SELECT id, epoch FROM mine`
}

// renew extends the leases by another length, in one statement. locked selects what it does about a journal whose row
// is locked: an append or a renewal holds that lock for a moment, and extends the lease itself.
func (l *leases) renew(ctx context.Context, all []*owner, locked string) error {
	ids, epochs := make([]int64, len(all)), make([]int64, len(all))
	for i, o := range all {
		ids[i], epochs[i] = o.id, int64(o.Epoch())
	}
	asked := time.Now()
	now := map[int64]int64{}
	var id, epoch int64
	err := l.pool.Query(ctx, renewal(locked), ids, epochs, l.length).Each([]any{&id, &epoch}, func() error {
		now[id] = epoch
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range all {
		switch epoch, seen := now[o.id]; {
		case seen && epoch == int64(o.Epoch()):
			o.leased(asked.Add(l.length))
		case seen:
			o.Fence()
		}
	}
	return nil
}
