// Package database is the PostgreSQL database that several servers share: its connections, and the versions of its
// tables. What the tables hold is known to the packages that use them, such as journal/postgres.
//
// # Migrations
//
// Each file of migrations/ leads from one version of the tables to the next; the number in its name is the version that it
// makes. Migrate runs those that are missing in one transaction, under a lock, so that of several programs one migrates,
// and one that is interrupted has changed nothing. Open never migrates: it refuses tables of another version.
//
// # What is refused
//
// Open refuses a replica, a database that acknowledges commits before they are synced, and tables of another version.
// A pooler in transaction mode works: no statement relies on a session.
//
// # Standbys
//
// With a synchronous standby (synchronous_standby_names), what was acknowledged is there when the standby takes over. An
// address with several hosts finds the primary: postgres://USER@HOST1,HOST2/NAME. While the standby is away, commits wait;
// no statement is ever cancelled, because a cancelled wait would show a commit that the standby lacks. A statement that
// was given up keeps its session until the standby comes, so max_connections needs room. The clocks of both
// servers should agree: leases are counted on that of the primary.
//
// PostgreSQL 14 and newer.
package database

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a database of Roost. It is safe for concurrent use.
type DB struct {
	*pgxpool.Pool
	unreplicated atomic.Int64 // commits that were acknowledged without the standby
}

// Open connects to the database at url, which pgx describes: postgres://USER@HOST/NAME, with several hosts if there are
// several. Errors wrap ErrNoSchema, ErrNewerSchema, ErrReadOnly and ErrNotDurable.
func Open(ctx context.Context, url string) (*DB, error) {
	config, err := configured(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := probe(ctx, config); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db := &DB{}
	config.ConnConfig.OnNotice = db.notice
	if db.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return db, nil
}

// Found scans one row and reports whether there was one.
func Found(r pgx.Row, into ...any) (bool, error) {
	err := r.Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
