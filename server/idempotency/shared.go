package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
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
	signer
	db    *database.DB
	lease *lease.Lease

	mu      sync.Mutex
	cleaned time.Time
}

// NewShared stores requests in a database. seal is that of New.
func NewShared(db *database.DB, seal func() Seal) *Shared {
	return &Shared{signer: signer{seal}, db: db, lease: lease.New(db, leaseLength)}
}

// Close leaves all requests on which this server works.
func (d *Shared) Close(ctx context.Context) error { return d.lease.Close(ctx) }

// takenRow is the row of a key that has this server's lease.
type takenRow struct {
	ctx   context.Context //nolint:containedctx // of the request, without its end
	of    *Shared
	key   []byte
	name  string
	lease int64
}

// Begin implements Requests.
func (d *Shared) Begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	one, done, err := d.begin(ctx, key, request, fingerprint)
	if err != nil && !errors.Is(err, ErrOther) && !errors.Is(err, ErrInFlight) && ctx.Err() == nil {
		err = fmt.Errorf("store the request: %w", database.Explained(err))
	}
	return one, done, err
}

func (d *Shared) begin(ctx context.Context, key, request, fingerprint string) (*Request, *Answer, error) {
	if err := d.clean(ctx); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(key))
	row := takenRow{ctx: context.WithoutCancel(ctx), of: d, key: sum[:], name: hash(key) + ".jsonl"}
	for end := time.Now().Add(flightWait); ; {
		one, done, err := d.try(ctx, row, request, fingerprint)
		if !lease.Ended(err) && !errors.Is(err, ErrInFlight) {
			return one, done, err
		}
		if time.Now().After(end) {
			return nil, nil, ErrInFlight
		}
		// The server that works on the request may have ended.
		if err := d.db.Transaction(ctx, func(tx *database.Tx) error { return lease.End(ctx, tx) }); err != nil {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(sharedPause):
		}
	}
}

// try takes the key of a row. If a server works on the request, try fails with ErrInFlight.
func (d *Shared) try(ctx context.Context, row takenRow, request, fingerprint string) (one *Request, done *Answer, err error) {
	if row.lease, err = d.lease.ID(ctx); err != nil {
		return nil, nil, err
	}
	line := intent{Version: 1, At: time.Now().UnixMilli(), Fingerprint: fingerprint, Request: request}
	if line.MAC, err = d.signed(row.name, line); err != nil {
		return nil, nil, err
	}
	first, err := json.Marshal(line)
	if err != nil {
		return nil, nil, err
	}
	committing := false
	err = d.db.Transaction(ctx, func(tx *database.Tx) (err error) {
		defer func() { committing = err == nil }()
		made, err := tx.Exec(ctx, `INSERT INTO roost.requests (key, intent, lease) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			row.key, first, row.lease)
		if err != nil || made > 0 {
			one = &Request{false, row}
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
		if was, done, err = d.judged(row.name, was, answered, func() bool { return old }, fingerprint); err != nil || done != nil {
			return err
		}
		if was != nil {
			one = &Request{true, row}
			_, err = tx.Exec(ctx, `UPDATE roost.requests SET lease = $2 WHERE key = $1`, row.key, row.lease)
			return err
		}
		one = &Request{false, row}
		_, err = tx.Exec(ctx, `
UPDATE roost.requests SET at = clock_timestamp(), intent = $2, answer = NULL, lease = $3 WHERE key = $1`, row.key, first, row.lease)
		return err
	})
	if err != nil {
		if committing || lease.Ended(err) {
			d.lease.Lost(row.lease) // the database may have the row, but this server does not work on the request
		}
		return nil, nil, err
	}
	return one, done, nil
}

// Finish implements taken. If this server could not reach the database for long, a repeat may have taken the request over:
// then the repeat's answer is stored, not this one.
func (r takenRow) Finish(done Answer) (err error) {
	if done.MAC, err = r.of.signed(r.name, done); err == nil {
		var line []byte
		if line, err = json.Marshal(done); err == nil {
			err = r.exec(`UPDATE roost.requests SET answer = $3, lease = NULL WHERE key = $1 AND (lease = $2 OR lease IS NULL) AND answer IS NULL`, line)
		}
	}
	return api.Failed(err, "store the answer")
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

// clean removes old records from time to time.
func (d *Shared) clean(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.cleaned) < cleanedEvery {
		return nil
	}
	_, err := d.db.Exec(ctx, `DELETE FROM roost.requests WHERE at < clock_timestamp() - $1::interval AND lease IS NULL`, keptFor)
	if err == nil {
		d.cleaned = time.Now()
	}
	return err
}
