package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A task may have more text than should be in memory. What is closed of it is put into
// the file ahead of the rest, below a row that no snapshot shows. The task's Entry makes
// it the task's row. What a killed process put ahead is removed by a later one.

const (
	// heavyText is how much text of one task is held. With what the index keeps of it,
	// memory is about four times that.
	heavyText = 5 << 20

	aheadMark = "\x01ahead " // keys of tasks begin with a source's name
	aheadStay = time.Hour    // that a row without additions is left alone
)

// errAheadGone: another process took the beginning of a task for a leftover.
var errAheadGone = errors.New("what was put ahead is gone")

// Heavy reports whether the builder holds so much that it should be put ahead.
func (b *Builder) Heavy() bool { return b.held > heavyText/max(b.small, 1) }

// Ahead puts the closed parts of a builder into the catalogue, and lets go of them.
// now is the time of day; it separates unfinished leftovers from work in progress.
// Whoever does not put the builder's Entry calls Abandon.
func (db *DB) Ahead(ctx context.Context, b *Builder, now time.Time) error {
	task := b.ahead
	err := db.write(ctx, func(c *sql.Conn) error {
		if task == 0 {
			if err := dropStale(ctx, c, now); err != nil {
				return err
			}
			var err error
			// The key is the row's number, to be one of its own.
			if task, err = insert(ctx, c, Entry{Key: aheadMark, TS: now.UnixMilli(), Summary: []byte{}}); err != nil {
				return err
			}
			if _, err := c.ExecContext(ctx, "UPDATE task SET key = ? WHERE id = ?", aheadKey(task), task); err != nil {
				return err
			}
		} else if done, err := c.ExecContext(ctx, "UPDATE task SET ts = ? WHERE key = ?", now.UnixMilli(), aheadKey(task)); err != nil {
			return err
		} else if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, errAheadGone)
		}
		w := indexWriter{c: c}
		for _, p := range b.parts {
			if err := w.part(ctx, task, p); err != nil {
				return err
			}
		}
		return w.end(ctx)
	})
	if err != nil {
		return fmt.Errorf("keep the beginning of a long task in the catalogue: %w", err)
	}
	b.ahead, b.parts, b.held = task, nil, 0
	return nil
}

// Abandon removes what was put ahead of a builder's task.
func (db *DB) Abandon(ctx context.Context, b *Builder) error {
	if b.ahead == 0 {
		return nil
	}
	key := aheadKey(b.ahead)
	b.ahead = 0
	return db.Drop(ctx, []string{key})
}

func aheadKey(task int64) string { return aheadMark + strconv.FormatInt(task, 10) }

// dropStale removes what was put ahead and not finished. Times of a clock that was set back
// count as old.
func dropStale(ctx context.Context, c *sql.Conn, now time.Time) error {
	rows, err := c.QueryContext(ctx, "SELECT key, ts FROM task WHERE key LIKE ?", aheadMark+"%")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err below reports what ended them
	var old []string
	for rows.Next() {
		var key string
		var ts int64
		if err := rows.Scan(&key, &ts); err != nil {
			return err
		}
		if now.Sub(time.UnixMilli(ts)).Abs() > aheadStay {
			old = append(old, key)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, key := range old {
		if err := drop(ctx, c, key); err != nil {
			return err
		}
	}
	return nil
}
