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

// errNoCancel is what the driver gets when it wants to cancel a statement.
var errNoCancel = errors.New("a statement is never cancelled")

// configured reads the address. If it does not say otherwise, only a server that takes writes is connected to: of
// several hosts the primary, also after another one became it.
func configured(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the address is not valid: %w", err)
	}
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		neverCancel(c)
		return nil
	}
	return config, nil
}

// neverCancel keeps the driver from cancelling the statement of a connection that it gives up. A commit that is cancelled
// while it waits for the standby becomes visible without being there.
func neverCancel(c *pgx.ConnConfig) {
	var connected atomic.Bool
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() { // the only other use that the driver has for it
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
}

// pooled reports whether a pooler is between: it gives its clients numbers of its own.
func pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return pid != conn.PgConn().PID(), err
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
	if err := fit(ctx, conn); err != nil {
		return err
	}
	between, err := pooled(ctx, conn)
	if between && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return err
}

// Exec executes a statement that is a transaction of its own. Its error says that the outcome is not known when the
// database did not wait for its standby, because somebody cancelled that.
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
