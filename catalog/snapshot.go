package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Task is a row without its text.
type Task struct {
	ID    int64
	Stamp string
	TS    int64 // as it was given: what lists are ordered by
}

// Snapshot is the catalogue at one moment: later writes of other processes are
// not seen. To be used by one goroutine, and closed.
type Snapshot struct {
	conn *sql.Conn
}

// Snapshot begins reading.
func (db *DB) Snapshot(ctx context.Context) (*Snapshot, error) {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, errors.Join(fmt.Errorf("read the catalogue: %w", err), c.Close())
	}
	return &Snapshot{conn: c}, nil
}

// Close ends reading.
func (s *Snapshot) Close() {
	rollback(context.Background(), s.conn)
	_ = s.conn.Close() // it is given back; that fails when it was thrown away
}

// Tasks are all rows by their keys, without those that are not whole yet.
func (s *Snapshot) Tasks(ctx context.Context) (map[string]Task, error) {
	out := map[string]Task{}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var key string
		var t Task
		if err := rows.Scan(&t.ID, &key, &t.Stamp, &t.TS); err != nil {
			return err
		}
		out[key] = t
		return nil
	}, "SELECT id, key, stamp, ts FROM task WHERE key NOT LIKE ?", aheadMark+"%")
	return out, err
}

// Summary is what was kept of a task.
func (s *Snapshot) Summary(ctx context.Context, id int64) ([]byte, error) {
	var out []byte
	if err := s.conn.QueryRowContext(ctx, "SELECT summary FROM task WHERE id = ?", id).Scan(&out); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return out, nil
}

func (s *Snapshot) each(ctx context.Context, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below reports what ended them
	for rows.Next() {
		if err := f(rows); err != nil {
			return fmt.Errorf("read the catalogue: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	return nil
}
