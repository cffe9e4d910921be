package idempotency

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
)

const (
	leaseLength = 3 * time.Second       // how long the request of a killed server blocks a repeat; less than flightWait
	sharedPause = 50 * time.Millisecond // between two checks of a request in the database
	patience    = 10 * time.Second      // for storing an answer, also after its client disconnected
)

// Shared stores the requests of several servers in the database that they share. The clock of the database decides
// which records are old, and which leases have run out.
type Shared struct {
	Requests
	tables
}

// tables holds the records of several servers in their database.
type tables struct {
	db    *database.DB
	lease *lease.Lease
}

// NewShared stores requests in a database. seal is that of New.
func NewShared(db *database.DB, seal func() Seal) *Shared {
	t := tables{db, lease.New(db, leaseLength)}
	return &Shared{Requests{place: t, now: time.Now, seal: seal}, t}
}

// Close leaves all requests on which this server works.
func (d *Shared) Close(ctx context.Context) error { return d.tables.lease.Close(ctx) }

// takenRow is the row of a key that has this server's lease.
type takenRow struct {
	ctx   context.Context //nolint:containedctx // of the request, without its end
	of    tables
	key   []byte
	lease int64
}

func (d tables) pause() time.Duration { return sharedPause }

func (d tables) try(ctx context.Context, a asking) (key taken, again bool, done *Answer, err error) {
	row := takenRow{ctx: context.WithoutCancel(ctx), of: d, key: a.key[:]}
	if row.lease, err = d.lease.ID(ctx); err == nil {
		again, done, err = d.take(ctx, row, a)
	}
	if lease.Ended(err) || errors.Is(err, ErrInFlight) {
		// The server that works on the request may have ended.
		err = cmp.Or(d.db.Transaction(ctx, func(tx *database.Tx) error { return lease.End(ctx, tx) }), ErrInFlight)
	}
	return row, again, done, database.Explained(err)
}

// take gives the row of a key this server's lease, unless the row has an answer. again: an earlier attempt began.
func (d tables) take(ctx context.Context, row takenRow, a asking) (again bool, done *Answer, err error) {
	committing := false
	err = d.db.Transaction(ctx, func(tx *database.Tx) (err error) {
		defer func() { committing = err == nil }()
		made, err := tx.Exec(ctx, `INSERT INTO roost.requests (key, intent, lease) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			row.key, a.intent, row.lease)
		if err != nil || made > 0 {
			return err
		}
		var stored, second []byte
		var held *int64
		var old bool
		there, err := database.Found(tx.QueryRow(ctx, `
SELECT intent, answer, lease, at < clock_timestamp() - $2::interval FROM roost.requests WHERE key = $1 FOR UPDATE`,
			row.key, keptFor), &stored, &second, &held, &old)
		if err != nil {
			return err
		}
		if !there || held != nil { // another server forgot the key just now, or works on the request
			return ErrInFlight
		}
		was, answered := parse(stored, second)
		if was, done, err = a.judged(was, answered, old); err != nil || done != nil {
			return err
		}
		if again = was != nil; again {
			_, err = tx.Exec(ctx, `UPDATE roost.requests SET lease = $2 WHERE key = $1`, row.key, row.lease)
			return err
		}
		_, err = tx.Exec(ctx, `
UPDATE roost.requests SET at = clock_timestamp(), intent = $2, answer = NULL, lease = $3 WHERE key = $1`, row.key, a.intent, row.lease)
		return err
	})
	if err != nil && (committing || lease.Ended(err)) {
		d.lease.Lost(row.lease) // the database may have the row, but this server does not work on the request
	}
	return again, done, err
}

// finish stores an answer. If this server could not reach the database for long, a repeat may have taken the request over:
// then the repeat's answer is stored, not this one.
func (r takenRow) finish(line []byte) error {
	return r.exec(`
UPDATE roost.requests SET answer = $3, lease = NULL WHERE key = $1 AND (lease = $2 OR lease IS NULL) AND answer IS NULL`, line)
}

// Forget implements taken.
func (r takenRow) Forget() error {
	err := r.exec(`DELETE FROM roost.requests WHERE key = $1 AND lease = $2 AND answer IS NULL`)
	return api.Failed(err, "forget a key")
}

// Leave implements taken.
func (r takenRow) Leave() error {
	err := r.exec(`UPDATE roost.requests SET lease = NULL WHERE key = $1 AND lease = $2`)
	return api.Failed(err, "leave a key")
}

// errTaken: this server could not reach the database for the length of its lease.
var errTaken = errors.New("another server took the request over")

// exec changes the row, which must still belong to this request. If that fails, the server no longer renews the lease, so
// that a repeat waits only until the lease has run out, and not until the server ends.
func (r takenRow) exec(sql string, more ...any) error {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	done, err := r.of.db.Exec(ctx, sql, append([]any{r.key, r.lease}, more...)...)
	if err != nil {
		r.of.lease.Lost(r.lease) // the row may still name the lease, but this server no longer works on the request
	} else if done == 0 {
		err = errTaken
	}
	return database.Explained(err)
}

func (d tables) clean(ctx context.Context) error {
	_, err := d.db.Exec(ctx, `DELETE FROM roost.requests WHERE at < clock_timestamp() - $1::interval AND lease IS NULL`, keptFor)
	return database.Explained(err)
}
