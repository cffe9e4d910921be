// Package postgres keeps content stores in a PostgreSQL database that several servers share (see package database).
//
// # Tables
//
//	content_stores   a store: its name, and the bytes that its contents take
//	kept             which contents a store has, and which of them are manifests; their bytes: package database/payload
//	manifests        what a manifest names, so that the database can follow it
//	owners           whose manifest is which
//	held             what a running server relies on, with its lease (package database/lease)
//
// A content that several stores or journals have is there once.
//
// # Batches
//
// A batch packs its contents as they come: up to 4 MiB in memory, more in a temporary file. Close stores all of it in one
// transaction. A kill before its commit leaves nothing, and one after it leaves what is held by a lease that ends.
//
// # Collect
//
// A transaction that makes anything relied upon (a batch, a hold, a name) takes the lock of its store shared, and one of
// Collect takes it alone. So Collect sees every hold and every name, and none comes while it removes. The lock is one of
// the transaction (pg_advisory_xact_lock), which works behind a pooler. Contents that no store and no journal has after it
// are removed by payload.Sweep, also those that a killed Collect left.
//
// # Holds
//
// What a Store found or wrote is held under the lease of its server. After a server has not renewed for the
// length of the lease, 30 s by default, the database protects nothing for it any more. The server notices before it uses
// contents again, and counts what it held as not found.
//
// # Limits
//
// Has asks the database about each content that it does not know; Prefetch asks about many at once. A store whose folder
// has the same path on several machines is one store. Collect keeps what CollectOptions.Keep of the machine that collects
// names: what only the surveys of another machine name, and nothing holds, goes.
package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
)

// Stores are the content stores of a database. It is safe for concurrent use.
type Stores struct {
	db      *database.DB
	lease   *lease.Lease
	holders atomic.Int64
}

// Options are settings of Stores. The zero value is usable.
type Options struct {
	// Lease is how long a server that does not answer still relies on what it held. Default 30 s.
	Lease time.Duration
}

// New gives access to the content stores of a database. It asks the database nothing yet.
func New(db *database.DB, o Options) *Stores {
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	return &Stores{db: db, lease: lease.New(db, o.Lease)}
}

// Store opens the store of a name. It asks the database nothing yet; a store that does not exist has no contents and no
// names.
func (s *Stores) Store(name string) content.Store {
	return &Store{in: s, name: name, holder: s.holders.Add(1), known: map[content.Key]bool{}, damaged: map[content.Key]bool{}}
}

// List returns the names of the stores that exist, in order.
func (s *Stores) List(ctx context.Context) ([]string, error) {
	list, err := database.Column[string](s.db.Query(ctx, `SELECT name FROM roost.content_stores ORDER BY name`))
	if err != nil {
		return nil, fmt.Errorf("list the content stores: %w", err)
	}
	return list, nil
}

// Close ends what all stores hold.
func (s *Stores) Close(ctx context.Context) error { return s.lease.Close(ctx) }
