package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

// Options are settings of Journals. The zero value is usable.
type Options struct {
	// Owner is shown to other programs that find a journal owned by this process. PID, Boot, Host and Started are
	// filled in if zero.
	Owner journal.OwnerInfo
	// Lease is how long a journal stays owned after its owner renewed last. Default 3 s, at least 300 ms.
	Lease time.Duration
	// Warn is called with problems that do not stop work but that a person should know, such as a lost connection for
	// LISTEN.
	Warn func(error)
}

func (o Options) filled() Options {
	o.Owner = o.Owner.Filled(time.Now().UTC())
	o.Lease = max(cmp.Or(o.Lease, 3*time.Second), 300*time.Millisecond)
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return o
}

// Journals are the journals of a database. It is safe for concurrent use.
type Journals struct {
	db     *database.DB
	opt    Options
	hub    *hub
	leases *leases
	group  *group

	stop context.CancelFunc
	work sync.WaitGroup // the goroutines of hub and leases
}

// Open follows and renews in db until Close; the end of ctx does not stop that.
func Open(ctx context.Context, db *database.DB, opt Options) *Journals {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	j := &Journals{db: db, opt: opt.filled(), stop: stop}
	j.hub = newHub(db, j.opt.Warn)
	j.leases = &leases{pool: db, length: j.opt.Lease, all: map[int64]*owner{}}
	j.group = &group{db: db, lease: j.opt.Lease}
	for _, run := range []func(context.Context){j.hub.listen, j.hub.send, j.hub.poll, j.leases.run} {
		j.work.Go(func() { run(background) })
	}
	return j
}

// Close ends followers and the renewing of leases. Close the owners first.
func (j *Journals) Close() {
	j.stop()
	j.work.Wait()
}

// unsaved wraps the database's error of a write into the error that callers know.
func unsaved(what, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrClosed) {
		return fmt.Errorf("%s of journal %s: %w", what, name, err)
	}
	return fmt.Errorf("%s of journal %s: %w: %w", what, name, database.Explained(err), journal.ErrNotSaved)
}
