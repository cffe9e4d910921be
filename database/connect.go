package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// configured reads the address. Unless the address sets target_session_attrs, it connects only to a server that takes
// writes: of several hosts the primary, also after a fail-over.
func configured(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the address is not valid: %w", err)
	}
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.BeforeConnect = neverCancel
	return config, nil
}

// neverCancel keeps the driver from cancelling the statement of a connection that it gives up. A commit that is cancelled
// while it waits for the standby becomes visible without being there.
func neverCancel(_ context.Context, c *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() { // the only other use that the driver has for it
			return nil, errors.New("a statement is never cancelled")
		}
		return dial(ctx, network, address)
	}
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

// probe refuses a database that this program cannot use. Behind a pooler it lets the pool keep no statements prepared:
// the next one may run on another session.
func probe(ctx context.Context, config *pgxpool.Config) error {
	first := config.ConnConfig.Copy()
	first.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, first)
	if err != nil {
		return Explained(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
	var pid uint32                               // a pooler gives its clients numbers of its own
	err = errors.Join(fit(ctx, conn), conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid))
	if pid != conn.PgConn().PID() && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return err
}

// Exec executes a statement that is a transaction of its own. When an administrator
// cancelled the wait for the standby, it returns an error: the outcome is not known.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	before := db.unreplicated.Load()
	tag, err := db.Pool.Exec(ctx, sql, args...)
	if err == nil && db.unreplicated.Load() != before { // this one, or another one at the same time
		err = errors.New("the database did not wait for its standby")
	}
	return tag, err
}

// notice counts the commits that did not wait for the standby. The words of a notice depend on the language of the server.
func (db *DB) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		db.unreplicated.Add(1)
	}
}
