// Package database is the PostgreSQL database that several servers share: its connections, and the versions of its
// tables. Only the packages that use the tables know their content, such as journal/postgres.
//
// # Migrations
//
// Each file of migrations/ leads from one version of the tables to the next; the number in its name is the new
// version. Migrate runs the missing ones in one transaction, under a lock, so that only one of several programs
// migrates, and an interrupted one has changed nothing. Open never migrates: it refuses tables of another version.
//
// # Statements
//
// The wire protocol is that of pgconn, and the pool is puddle's, as in pgx. This package has its own rows,
// transactions and conversion of types, for the few types that Roost needs. A connection keeps its statements
// prepared.
//
// # What is refused
//
// Open refuses a replica, a database that acknowledges commits before they are synced, and tables of another version.
// A pooler in transaction mode works: no statement relies on a session.
//
// # Standbys
//
// With a synchronous standby (synchronous_standby_names), what was acknowledged is there when the standby takes over. An
// address with several hosts finds the primary: postgres://USER@HOST1,HOST2/NAME, also when a host is lost and answers nothing,
// which takes connectTime for each connection. A statement waits for statementTime. While the standby is away, commits wait;
// no statement is ever cancelled, because a cancelled wait would show a commit that the standby lacks. A statement that
// was given up keeps its session until the standby comes, so max_connections needs room. The clocks of both
// servers should agree: leases are counted on that of the primary.
//
// PostgreSQL 14 and newer.
package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// DB is a database of Roost. It is safe for concurrent use.
type DB struct {
	at   address
	pool *puddle.Pool[*conn]
}

// Open connects to the database at url, in the form that pgconn documents: postgres://USER@HOST/NAME, or with several
// hosts. pool_max_conns in the url bounds the connections; the default is the number of processors, and at least 4.
// Errors wrap ErrNoSchema, ErrNewerSchema, ErrReadOnly and ErrNotDurable.
func Open(ctx context.Context, url string) (*DB, error) {
	at, err := parse(url)
	if err == nil {
		err = at.probe(ctx)
	}
	db := &DB{at: at}
	if err == nil {
		db.pool, err = db.at.pool()
	}
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return db, nil
}

// probe returns an error if this program cannot use the database. It clears prepares if the address is a pooler's.
func (a *address) probe(ctx context.Context) error {
	c, err := connect(ctx, a.config, false)
	if err != nil {
		return Explained(err)
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
	if err := fit(ctx, c); err != nil {
		return err
	}
	var pid uint32 // a pooler reports process numbers of its own
	err = c.queryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	a.prepares = pid == c.PID()
	return err
}

// Close closes the connections. It waits until those in use are returned.
func (db *DB) Close() { db.pool.Close() }

// URL returns the address that Open was called with.
func (db *DB) URL() string { return db.at.url }

// MaxConns returns the largest number of connections.
func (db *DB) MaxConns() int { return int(db.at.most) }

// Ping returns an error if the database does not answer.
func (db *DB) Ping(ctx context.Context) error {
	ctx, c, release, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return c.Ping(ctx)
}

// Exec executes a statement in a transaction of its own, and returns the number of rows that it affected. Without
// args, sql may hold several statements, separated by semicolons. After an error that is no *pgconn.PgError, the
// outcome is unknown: the connection was cut, or an administrator cancelled the wait for the standby.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (affected int64, err error) {
	ctx, c, release, err := db.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	return c.exec(ctx, sql, args)
}

// Query executes a statement that returns rows. The rows hold a connection until they are closed.
func (db *DB) Query(ctx context.Context, sql string, args ...any) *Rows {
	ctx, c, release, err := db.acquire(ctx)
	if err != nil {
		return &Rows{err: err, closed: true}
	}
	rows := c.query(ctx, sql, args)
	rows.release = release
	return rows
}

// QueryRow executes a statement that returns a row.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) Row {
	return Row{db.Query(ctx, sql, args...)}
}

// SendBatch executes the statements of a batch in one transaction.
func (db *DB) SendBatch(ctx context.Context, b *Batch) error {
	ctx, c, release, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return c.batch(ctx, b)
}

// Listener receives the notifications of a channel, on its own connection. One goroutine uses it.
type Listener struct {
	conn   *pgconn.PgConn
	queued []string
}

// Listen begins to listen to a channel. A pooler in transaction mode accepts the statement, and delivers nothing.
func (db *DB) Listen(ctx context.Context, channel string) (*Listener, error) {
	l := &Listener{}
	config := db.at.config.Copy()
	neverCancel(config)
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { l.queued = append(l.queued, n.Payload) }
	var err error
	if l.conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	if err := l.conn.Exec(ctx, `LISTEN `+channel).Close(); err != nil {
		l.Close(ctx)
		return nil, err
	}
	return l, nil
}

// Next waits for the next notification and returns its payload. After an error, also that of ctx, the Listener
// delivers nothing more.
func (l *Listener) Next(ctx context.Context) (payload string, err error) {
	for len(l.queued) == 0 {
		if err := l.conn.WaitForNotification(ctx); err != nil {
			return "", err
		}
	}
	payload, l.queued = l.queued[0], l.queued[1:]
	return payload, nil
}

// Close ends the connection.
func (l *Listener) Close(ctx context.Context) {
	_ = l.conn.Close(context.WithoutCancel(ctx)) // nothing was written through it
}
