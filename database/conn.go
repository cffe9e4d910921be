package database

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// mostPrepared bounds the statements that a connection keeps prepared. The program has fewer, but those that it
// builds from varying parts could exceed the bound.
const mostPrepared = 500

// conn is a connection. One goroutine uses it at a time.
type conn struct {
	*pgconn.PgConn
	prepares bool                                    // false behind a pooler: the next statement may run on another session
	prepared map[string]*pgconn.StatementDescription // by their SQL text
	named    int                                     // number of statements that have a name

	unreplicated bool // a commit since the last call of outcome did not wait for the standby
}

// connect opens a connection. If prepares is set, it keeps its statements prepared.
func connect(ctx context.Context, config *pgconn.Config, prepares bool) (*conn, error) {
	c := &conn{prepares: prepares, prepared: map[string]*pgconn.StatementDescription{}}
	config = config.Copy()
	neverCancel(config)
	config.OnNotice = c.notice
	var err error
	c.PgConn, err = pgconn.ConnectConfig(ctx, config)
	return c, err
}

// neverCancel keeps the driver from cancelling the statement of a connection that it abandons. A commit that is
// cancelled while it waits for the standby becomes visible although the standby lacks it.
func neverCancel(c *pgconn.Config) {
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
}

// notice recognizes a commit that did not wait for the standby, by the notice's code: its words depend on the
// server's language.
func (c *conn) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.unreplicated = true
	}
}

// outcome returns the error of a statement that ended with err.
func (c *conn) outcome(sql string, err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && (refused.Code == "0A000" || refused.Code == "26000") {
		delete(c.prepared, sql) // a migration has changed its columns, or something else has removed it
	}
	if c.unreplicated {
		c.unreplicated = false
		if err == nil {
			return errors.New("the database did not wait for its standby")
		}
	}
	return err
}

// simple runs statements without parameters, which semicolons may separate, and returns the tag of the last one.
func (c *conn) simple(ctx context.Context, sql string) (tag pgconn.CommandTag, err error) {
	results := c.PgConn.Exec(ctx, sql)
	for results.NextResult() {
		if done, no := results.ResultReader().Close(); no == nil {
			tag = done
		}
	}
	return tag, c.outcome(sql, results.Close())
}

// prepare makes the server keep a statement; the statement is nil if the server keeps enough already.
func (c *conn) prepare(ctx context.Context, sql string) (*pgconn.StatementDescription, error) {
	statement := c.prepared[sql]
	if statement != nil || !c.prepares || len(c.prepared) == mostPrepared {
		return statement, nil
	}
	c.named++
	statement, err := c.Prepare(ctx, "roost_"+strconv.Itoa(c.named), sql, nil)
	if err == nil {
		c.prepared[sql] = statement
	}
	return statement, c.outcome(sql, err)
}
