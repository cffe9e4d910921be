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
// A batch packs its contents as they come, into a temporary file. Close stores all of it in one transaction. A kill
// before its commit leaves nothing; a kill after it leaves contents that only a lease holds, until the lease ends.
//
// # Collect
//
// A transaction that adds a batch, a hold or a name takes the lock of its store shared, and one of Collect takes it
// exclusively. So Collect sees every hold and every name, and none is added while it removes. The lock is one of the
// transaction (pg_advisory_xact_lock), which works behind a pooler. Afterwards payload.Sweep removes contents that no
// store and no journal has, also those that a killed Collect left.
//
// # Holds
//
// Contents that a Store found or wrote are held under the lease of its server. When a server has not renewed its
// lease for the lease's length, 30 s by default, the database no longer protects its contents. The server notices
// that before it uses contents again, and treats those that it held as not found.
//
// # Limits
//
// Has asks the database about each content that it does not know; Prefetch asks about many at once. A store whose
// folder has the same path on several machines is one store. Collect keeps the contents that CollectOptions.Keep on
// its own machine names: it removes contents that only surveys of another machine name and nothing holds.
package postgres

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
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
	// Lease is how long the contents of a server that does not answer stay protected. Default 30 s.
	Lease time.Duration
}

// New gives access to the content stores of a database. It sends no request yet.
func New(db *database.DB, o Options) *Stores {
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	return &Stores{db: db, lease: lease.New(db, o.Lease)}
}

// Store opens the store with a name. It sends no request yet; a store that does not exist has no contents and no
// names.
func (s *Stores) Store(name string) content.Store {
	return &Store{in: s, name: name, holder: s.holders.Add(1), known: map[content.Key]bool{}, damaged: map[content.Key]bool{}}
}

// List returns the names of the stores that exist, in order.
func (s *Stores) List(ctx context.Context) ([]string, error) {
	list, err := database.Column[string](s.db.Query(ctx, `SELECT name FROM roost.content_stores ORDER BY name`))
	return list, api.Failed(err, "list the content stores")
}

// Close ends the holds of all stores.
func (s *Stores) Close(ctx context.Context) error { return s.lease.Close(ctx) }
