package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database/value"
)

// Batch holds statements that run in one round trip and, outside a transaction, in one transaction of their own.
type Batch struct {
	statements []statement
}

type statement struct {
	sql  string
	args []any
	into []any
	each func() error // nil: do not read the rows
}

// Queue adds a statement.
func (b *Batch) Queue(sql string, args ...any) {
	b.statements = append(b.statements, statement{sql: sql, args: args})
}

// QueueEach adds a statement. Each of its rows is decoded into the variables that into points to; then f is called,
// see Rows.Each.
func (b *Batch) QueueEach(into []any, f func() error, sql string, args ...any) {
	b.statements = append(b.statements, statement{sql, args, into, f})
}

// batch runs statements in one round trip, and in one transaction.
func (c *conn) batch(ctx context.Context, b *Batch) error {
	var batch pgconn.Batch
	for _, s := range b.statements {
		p, err := value.Encode(s.args)
		if err != nil {
			return err
		}
		statement, err := c.prepare(ctx, s.sql)
		if err != nil {
			return err
		}
		if statement != nil {
			batch.ExecStatement(statement, p.Values, p.Formats, value.ResultFormats)
		} else {
			batch.ExecParams(s.sql, p.Values, nil, p.Formats, value.ResultFormats)
		}
	}
	results := c.ExecBatch(ctx, &batch)
	var failed error
	at := 0
	for ; results.NextResult() && at < len(b.statements); at++ {
		rows := &Rows{conn: c, result: results.ResultReader(), inBatch: true}
		if s := b.statements[at]; s.each != nil && failed == nil {
			failed = rows.Each(s.into, s.each)
		}
		rows.Close()
	}
	sql := ""
	if at < len(b.statements) {
		sql = b.statements[at].sql
	}
	if err := c.outcome(sql, results.Close()); err != nil {
		return err
	}
	if failed == nil && at < len(b.statements) {
		failed = fmt.Errorf("%d of %d statements were answered", at, len(b.statements))
	}
	return failed
}
