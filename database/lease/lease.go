// Package lease keeps leases of running servers in the database. Rows that a server relies on or works at name its
// lease, and are removed with the lease when the server ends, also when it is killed.
//
// A lease is a row of roost.leases, and lasts while the row is there. One goroutine renews it every third of its
// length. Only the clock of the database decides that a lease has run out, and only End acts on that: it removes the
// row, and with it every row that names the lease (ON DELETE CASCADE). So a server that was stopped for a while keeps
// its lease as long as no other server ends it. After that the database refuses each row that names the ended lease,
// and the server notices.
//
// The owner of a journal has a lease of another kind, which is part of the journal's row (package journal/postgres).
package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database"
)

// Lease is the lease of one part of a running server. It is safe for concurrent use.
type Lease struct {
	db     *database.DB
	length time.Duration

	mu    sync.Mutex
	id    int64     // 0: none
	asked time.Time // start of the newest successful renewal

	shown    int64 // the lease that announces the document
	announce []byte

	stop context.CancelFunc // nil: no goroutine renews
	work sync.WaitGroup
}

// New makes a lease of a length. The first call of ID takes it.
func New(db *database.DB, length time.Duration) *Lease { return &Lease{db: db, length: length} }

// ID returns the number of the lease, and takes a lease if there is none. After another server has ended the lease,
// ID takes a new one with a new number; the rows that named the ended lease are gone.
func (l *Lease) ID(ctx context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != 0 && time.Since(l.asked) > l.length*2/3 {
		if err := l.renew(ctx); err != nil {
			return 0, err
		}
	}
	if l.id != 0 {
		return l.id, nil
	}
	asked := time.Now()
	err := l.db.QueryRow(ctx, `INSERT INTO roost.leases (lease_until) VALUES (clock_timestamp() + $1::interval) RETURNING id`, l.length).Scan(&l.id)
	if err != nil {
		return 0, fmt.Errorf("take a lease: %w", database.Explained(err))
	}
	l.asked = asked
	if l.stop == nil {
		background, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.stop = stop
		l.work.Go(func() { l.run(background) })
	}
	return l.id, nil
}

// Announce shows a document to all servers for as long as the lease lasts, in place of the document before. One
// goroutine calls it again and again, because it takes a new lease after other servers have ended this one.
func (l *Lease) Announce(ctx context.Context, document []byte) error {
	id, err := l.ID(ctx)
	if err != nil || id == l.shown && bytes.Equal(document, l.announce) {
		return err
	}
	if _, err := l.db.Exec(ctx, `UPDATE roost.leases SET server = $2 WHERE id = $1`, id, document); err != nil {
		return fmt.Errorf("announce this server: %w", database.Explained(err))
	}
	l.shown, l.announce = id, document
	return nil
}

// Announced returns the documents of the leases that last.
func Announced(ctx context.Context, db *database.DB) ([][]byte, error) {
	rows := db.Query(ctx, `SELECT server FROM roost.leases WHERE server IS NOT NULL AND lease_until > clock_timestamp() ORDER BY id`)
	list, err := database.Column[[]byte](rows)
	if err != nil {
		return nil, fmt.Errorf("look for running servers: %w", err)
	}
	return list, nil
}

// Lost stops the renewal of a lease that the database has ended (see Ended), or that should run out.
func (l *Lease) Lost(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = 0
	}
}

// Ended reports whether a statement failed because the lease that it named had ended.
func Ended(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "23503" && refused.TableName != "" && refused.ConstraintName == refused.TableName+"_lease_fkey"
}

// run renews the lease until Close. After a failure it tries again: the lease still lasts for two thirds of its length.
func (l *Lease) run(ctx context.Context) {
	tick := time.NewTicker(l.length / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, l.length/3)
		l.mu.Lock()
		if l.id != 0 {
			_ = l.renew(limited) // ID tries again, and fails
		}
		l.mu.Unlock()
		cancel()
	}
}

// renew extends the lease by its length, or records that it was ended. The caller holds mu.
func (l *Lease) renew(ctx context.Context) error {
	asked := time.Now()
	done, err := l.db.Exec(ctx, `UPDATE roost.leases SET lease_until = clock_timestamp() + $2::interval WHERE id = $1`, l.id, l.length)
	if err != nil {
		return fmt.Errorf("renew a lease: %w", database.Explained(err))
	}
	l.asked = asked
	if done == 0 {
		l.id = 0
	}
	return nil
}

// Close ends the lease, and removes the rows that name it.
func (l *Lease) Close(ctx context.Context) error {
	l.mu.Lock()
	stop, id := l.stop, l.id
	l.stop, l.id = nil, 0
	l.mu.Unlock()
	if stop != nil {
		stop()
		l.work.Wait()
	}
	if id == 0 {
		return nil
	}
	if _, err := l.db.Exec(ctx, `DELETE FROM roost.leases WHERE id = $1`, id); err != nil {
		return fmt.Errorf("end a lease: %w", database.Explained(err))
	}
	return nil
}

// End removes all leases that have run out, and the rows that name them.
func End(ctx context.Context, tx *database.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM roost.leases WHERE lease_until <= clock_timestamp()`)
	return err
}
