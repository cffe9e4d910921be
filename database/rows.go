package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database/value"
)

// ErrNoRows: a statement returned no row where one was expected.
var ErrNoRows = errors.New("the statement returned no row")

// Rows are the rows that a statement returns. They hold its connection until they are closed; every function but Next
// and Scan closes them at its end. The function that reads the rows returns the statement's error.
type Rows struct {
	conn    *conn
	sql     string
	result  *pgconn.ResultReader // nil: the statement did not start
	inBatch bool                 // the batch ends the statement
	release func()               // nil: the connection stays with its transaction

	closed   bool
	affected int64
	err      error
}

// exec runs a statement and returns the number of rows that it affected.
func (c *conn) exec(ctx context.Context, sql string, args []any) (int64, error) {
	if len(args) == 0 {
		tag, err := c.simple(ctx, sql)
		return tag.RowsAffected(), err
	}
	rows := c.query(ctx, sql, args)
	rows.Close()
	return rows.affected, rows.err
}

// query starts a statement. The returned rows hold its error.
func (c *conn) query(ctx context.Context, sql string, args []any) *Rows {
	rows := &Rows{conn: c, sql: sql}
	p, err := value.Encode(args)
	var statement *pgconn.StatementDescription
	if err == nil {
		statement, err = c.prepare(ctx, sql)
	}
	switch {
	case err != nil:
		rows.err, rows.closed = err, true
	case statement != nil:
		rows.result = c.ExecStatement(ctx, statement, p.Values, p.Formats, value.ResultFormats)
	default:
		rows.result = c.ExecParams(ctx, sql, p.Values, nil, p.Formats, value.ResultFormats)
	}
	return rows
}

func (c *conn) queryRow(ctx context.Context, sql string, args ...any) Row {
	return Row{c.query(ctx, sql, args)}
}

// Next goes to the next row and reports whether there is one. After the last one it closes the rows.
func (r *Rows) Next() bool {
	if !r.closed && r.result.NextRow() {
		return true
	}
	r.Close()
	return false
}

// Scan decodes the columns of a row into the variables that into points to, see package value. After an error it
// closes the rows.
func (r *Rows) Scan(into ...any) error {
	columns, values := r.result.FieldDescriptions(), r.result.Values()
	err := r.err
	if err == nil && (len(columns) != len(into) || len(values) != len(into)) {
		err = fmt.Errorf("the statement returns %d columns, and %d are read", len(columns), len(into))
	}
	for i := 0; err == nil && i < len(into); i++ {
		err = value.Scan(columns[i].DataTypeOID, values[i], into[i])
	}
	if err != nil {
		r.fail(err)
	}
	return err
}

func (r *Rows) fail(err error) {
	r.Close()
	if r.err == nil {
		r.err = err
	}
}

// Close reads the remaining rows, and returns the connection to the pool.
func (r *Rows) Close() {
	if !r.closed {
		r.closed = true
		tag, err := r.result.Close()
		r.affected = tag.RowsAffected()
		if !r.inBatch {
			err = r.conn.outcome(r.sql, err)
		}
		if r.err == nil {
			r.err = err
		}
	}
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// Each decodes each row into the variables that into points to, and calls f. An error of f ends the loop. Each closes
// the rows.
func (r *Rows) Each(into []any, f func() error) error {
	defer r.Close()
	for r.Next() {
		if err := r.Scan(into...); err != nil {
			return err
		}
		if err := f(); err != nil {
			r.fail(err)
			return err
		}
	}
	return r.err
}

// Collect returns the value that f makes of each row. It closes the rows.
func Collect[T any](r *Rows, f func(Scanner) (T, error)) ([]T, error) {
	defer r.Close()
	list := []T{}
	for r.Next() {
		e, err := f(r)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, r.err
}

// Column returns the only column of each row. It closes the rows.
func Column[T any](r *Rows) ([]T, error) {
	return Collect(r, func(row Scanner) (e T, err error) { return e, row.Scan(&e) })
}

// Scanner is a row that can be decoded: the current one of Collect, or a Row.
type Scanner interface {
	Scan(into ...any) error
}

// Querier is the database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) *Rows
	QueryRow(ctx context.Context, sql string, args ...any) Row
}

// Row is the first row that a statement returns.
type Row struct{ rows *Rows }

// Scan decodes the row into the variables that into points to. The error wraps ErrNoRows when there is no row. It
// must be called: until then the row holds its connection.
func (r Row) Scan(into ...any) error {
	defer r.rows.Close()
	if !r.rows.Next() {
		if r.rows.err != nil {
			return r.rows.err
		}
		return ErrNoRows
	}
	if err := r.rows.Scan(into...); err != nil {
		return err
	}
	r.rows.Close() // an error can come after the row
	return r.rows.err
}

// Found scans one row and reports whether there was one.
func Found(r Row, into ...any) (bool, error) {
	err := r.Scan(into...)
	if errors.Is(err, ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
