package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash"
)

// Entry is a task as it is put into the catalogue.
type Entry struct {
	Key     string
	Stamp   string // of what it was derived from
	TS      int64
	Summary []byte

	parts []part
	text  int   // of parts
	ahead int64 // the row that has the parts before these, 0 = there are none
	shed  hash.Hash
}

// Entry is the task whose messages were added. The builder is empty afterwards.
func (b *Builder) Entry(key, stamp string, ts int64, summary []byte) Entry {
	e := Entry{Key: key, Stamp: stamp, TS: ts, Summary: summary, ahead: b.ahead, shed: b.shed}
	e.parts = b.take()
	for _, p := range e.parts {
		e.text += p.text
	}
	return e
}

// Text is how many bytes of text the entry holds in memory.
func (e Entry) Text() int { return e.text }

// Put replaces tasks, all or none. Many at once cost less than one by one. Of entries
// with one key the last stays.
func (db *DB) Put(ctx context.Context, list []Entry) error {
	last := map[string]int{}
	for i, e := range list {
		last[e.Key] = i
	}
	err := db.write(ctx, func(c *sql.Conn) error {
		w := indexWriter{c: c}
		for i, e := range list {
			if last[e.Key] != i {
				continue
			}
			if err := drop(ctx, c, e.Key); err != nil {
				return err
			}
			task, err := row(ctx, c, e)
			if err != nil {
				return err
			}
			for _, p := range e.parts {
				if err := w.part(ctx, task, p); err != nil {
					return err
				}
			}
		}
		return w.end(ctx)
	})
	if err != nil {
		return fmt.Errorf("keep %d tasks in the catalogue: %w", len(list), err)
	}
	return nil
}

// Drop removes tasks that are no more.
func (db *DB) Drop(ctx context.Context, keys []string) error {
	err := db.write(ctx, func(c *sql.Conn) error {
		for _, key := range keys {
			if err := drop(ctx, c, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove %d tasks from the catalogue: %w", len(keys), err)
	}
	return nil
}

func drop(ctx context.Context, c *sql.Conn, key string) error {
	for _, text := range []string{
		"DELETE FROM part WHERE task IN (SELECT id FROM task WHERE key = ?)",
		"DELETE FROM task WHERE key = ?",
	} {
		if _, err := c.ExecContext(ctx, text, key); err != nil {
			return err
		}
	}
	return nil
}

// row makes an entry's row, or finds the one that was made ahead.
func row(ctx context.Context, c *sql.Conn, e Entry) (task int64, err error) {
	if e.ahead == 0 {
		return insert(ctx, c, e)
	}
	done, err := c.ExecContext(ctx, "UPDATE task SET key = ?, stamp = ?, ts = ?, summary = ? WHERE id = ?", e.Key, e.Stamp, e.TS, e.Summary, e.ahead)
	if err != nil {
		return 0, err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return 0, errors.Join(err, errAheadGone)
	}
	return e.ahead, nil
}

func insert(ctx context.Context, c *sql.Conn, e Entry) (task int64, err error) {
	done, err := c.ExecContext(ctx, "INSERT INTO task(key, stamp, ts, summary) VALUES(?, ?, ?, ?)", e.Key, e.Stamp, e.TS, e.Summary)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}
