package database

import (
	"context"
	"errors"
)

// Tx is a transaction. One goroutine uses it at a time, and closes its rows before the next statement.
type Tx struct{ conn *conn }

// Transaction runs f in a transaction, commits when f returns nil, and otherwise rolls back. If it returns another
// error than f's, the outcome can be unknown, as with Exec.
func (db *DB) Transaction(ctx context.Context, f func(*Tx) error) error {
	_, c, release, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer release() // closes a connection whose transaction has not ended
	return c.transaction(ctx, f)
}

// Snapshot begins a transaction that reads one state of the database. The caller must call end.
func (db *DB) Snapshot(ctx context.Context) (tx *Tx, end func(), err error) {
	_, c, release, err := db.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.simple(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		release()
		return nil, nil, err
	}
	return &Tx{c}, func() {
		_, _ = c.simple(context.WithoutCancel(ctx), "ROLLBACK") // without it, the connection is closed
		release()
	}, nil
}

func (c *conn) transaction(ctx context.Context, f func(*Tx) error) error {
	if _, err := c.simple(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := f(&Tx{c}); err != nil {
		_, _ = c.simple(ctx, "ROLLBACK") // without it, the connection is closed
		return err
	}
	tag, err := c.simple(ctx, "COMMIT")
	if err == nil && tag.String() == "ROLLBACK" {
		err = errors.New("the database rolled the transaction back, because a statement in it had failed")
	}
	return err
}

// Exec executes a statement, and returns the number of rows that it affected.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (affected int64, err error) {
	return tx.conn.exec(ctx, sql, args)
}

// Query executes a statement that returns rows.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) *Rows {
	return tx.conn.query(ctx, sql, args)
}

// QueryRow executes a statement that returns a row.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) Row {
	return tx.conn.queryRow(ctx, sql, args...)
}

// SendBatch executes the statements of a batch.
func (tx *Tx) SendBatch(ctx context.Context, b *Batch) error { return tx.conn.batch(ctx, b) }
