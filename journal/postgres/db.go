package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/journal"
)

// Options are settings of a DB. The zero value is usable.
type Options struct {
	// Owner is shown to those who find a journal owned by this DB. PID, Boot, Host and Started are filled in if zero.
	Owner journal.OwnerInfo
	// Lease is how long a journal stays owned after its owner renewed last. Default 3 s, at least 300 ms.
	Lease time.Duration
	// Warn is called with what does not stop work and should be known, such as a lost connection that listened.
	Warn func(error)
}

func (o Options) filled() Options {
	o.Owner.PID = cmp.Or(o.Owner.PID, os.Getpid())
	o.Owner.Boot = cmp.Or(o.Owner.Boot, process.System())
	if o.Owner.Host == "" {
		o.Owner.Host, _ = os.Hostname() // without it the message is shorter
	}
	if o.Owner.Started.IsZero() {
		o.Owner.Started = time.Now().UTC()
	}
	o.Lease = max(cmp.Or(o.Lease, 3*time.Second), 300*time.Millisecond)
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return o
}

// DB is a database with journals. It is safe for concurrent use.
type DB struct {
	pool   *pgxpool.Pool
	opt    Options
	hub    *hub
	leases *leases

	stop context.CancelFunc
	work sync.WaitGroup // the goroutines of hub and leases
}

// Open connects to the database at url, which pgx describes: postgres://USER@HOST/NAME, with several hosts if there are
// several. Errors wrap ErrNoSchema, ErrNewerSchema, ErrReadOnly and ErrNotDurable.
func Open(ctx context.Context, url string, opt Options) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: the address is not valid: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := fit(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	db := &DB{pool: pool, opt: opt.filled(), stop: stop}
	db.hub = newHub(pool, db.opt.Warn)
	db.leases = &leases{pool: pool, length: db.opt.Lease, all: map[int64]lease{}}
	for _, run := range []func(context.Context){db.hub.listen, db.hub.send, db.hub.poll, db.leases.run} {
		db.work.Go(func() { run(background) })
	}
	return db, nil
}

// Close ends followers and releases the connections. Owners must be closed before.
func (db *DB) Close() {
	db.stop()
	db.work.Wait()
	db.pool.Close()
}

// unsaved wraps what the database answered to a write into the error that callers know.
func unsaved(what, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrClosed) {
		return fmt.Errorf("%s of journal %s: %w", what, name, err)
	}
	return fmt.Errorf("%s of journal %s: %w: %w", what, name, explained(err), journal.ErrNotSaved)
}

// row scans one row and reports whether there was one.
func row(r pgx.Row, into ...any) (found bool, err error) {
	err = r.Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
