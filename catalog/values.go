package catalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// values are the columns of one row.
type values []driver.Value

func (v values) int(i int) int64 {
	n, _ := v[i].(int64)
	return n
}

func (v values) text(i int) string {
	s, _ := v[i].(string)
	return s
}

func (v values) blob(i int) []byte {
	b, _ := v[i].([]byte)
	return b
}

// scan calls f with each row of a query. It asks the driver itself: of ten thousand
// rows, database/sql would take half of a list's time to convert columns.
func scan(ctx context.Context, c *sql.Conn, query string, f func(values), args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	err := c.Raw(func(conn any) (err error) {
		queryer, ok := conn.(driver.QueryerContext)
		if !ok {
			return errors.ErrUnsupported
		}
		rows, err := queryer.QueryContext(ctx, query, named)
		if err != nil {
			return err
		}
		v := make(values, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(v); err == nil {
				f(v)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, rows.Close())
	})
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	return nil
}
