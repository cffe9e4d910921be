package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

const (
	idleUnasked = time.Second      // the pool pings a connection that was idle for longer
	oldest      = time.Hour        // an older connection is replaced: its session has grown
	closeTime   = 15 * time.Second // how long closing a connection may take

	// A server that hangs, or whose machine is lost, answers nothing. Another host may have taken over.
	pingTime      = 5 * time.Second
	connectTime   = 10 * time.Second // to one host, unless the address sets connect_timeout
	statementTime = 30 * time.Second // of a statement outside of Transaction and Snapshot
)

// address is the target of a pool's connections, and their greatest number.
type address struct {
	url      string
	config   *pgconn.Config
	most     int32 // connections
	prepares bool
}

// parse reads an address. Unless the address sets target_session_attrs, connections lead only to a server that takes
// writes: of several hosts the primary, also after a fail-over.
func parse(url string) (a address, err error) {
	a = address{url: url, most: max(4, int32(runtime.NumCPU())), prepares: true} //nolint:gosec // no machine has so many
	if a.config, err = pgconn.ParseConfig(url); err != nil {
		return a, fmt.Errorf("the address is not valid: %w", err)
	}
	const name = "pool_max_conns"
	if text, there := a.config.RuntimeParams[name]; there {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return a, fmt.Errorf("the address is not valid: %s=%s is not a number of connections", name, text)
		}
		a.most = int32(n)
		delete(a.config.RuntimeParams, name)
	}
	a.config.ConnectTimeout = cmp.Or(a.config.ConnectTimeout, connectTime)
	if a.config.ValidateConnect == nil {
		a.config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return a, nil
}

func (a *address) pool() (*puddle.Pool[*conn], error) {
	return puddle.NewPool(&puddle.Config[*conn]{
		MaxSize:     a.most,
		Constructor: func(ctx context.Context) (*conn, error) { return connect(ctx, a.config, a.prepares) },
		Destructor: func(c *conn) {
			ctx, cancel := context.WithTimeout(context.Background(), closeTime)
			defer cancel()
			_ = c.Close(ctx) // it is not used any more
			select {         // the server counts it until then
			case <-c.CleanupDone():
			case <-ctx.Done():
			}
		},
	})
}

// acquire takes a connection that works out of the pool, or waits for one. limited is ctx for one statement.
func (db *DB) acquire(ctx context.Context) (limited context.Context, c *conn, release func(), err error) {
	limited, cancel := context.WithTimeout(ctx, statementTime)
	for range db.at.most + 1 { // every idle one may be cut; after them comes a new one
		r, err := db.pool.Acquire(limited)
		if err != nil {
			cancel()
			return nil, nil, nil, fmt.Errorf("get a connection to the database: %w", err)
		}
		asked, answered := context.WithTimeout(limited, pingTime)
		dead := r.IdleDuration() > idleUnasked && r.Value().Ping(asked) != nil
		if answered(); !dead {
			return limited, r.Value(), func() { giveBack(r); cancel() }, nil
		}
		r.Destroy()
	}
	cancel()
	return nil, nil, nil, errors.New("get a connection to the database: each one was cut off")
}

// giveBack returns a connection to the pool; it drops one whose statement or transaction has not ended.
func giveBack(r *puddle.Resource[*conn]) {
	c := r.Value()
	if c.IsClosed() || c.IsBusy() || c.TxStatus() != 'I' || time.Since(r.CreationTime()) > oldest {
		r.Destroy()
	} else {
		r.Release()
	}
}
