package catalog

import (
	"context"
	"database/sql"
	"fmt"
)

// Entry is a task as it is put into the catalogue.
type Entry struct {
	Key     string
	Stamp   string // of what it was derived from
	TS      int64
	Summary []byte

	parts []part
	text  int
}

// Entry is the task whose messages were added. The builder is empty afterwards.
func (b *Builder) Entry(key, stamp string, ts int64, summary []byte) Entry {
	return Entry{Key: key, Stamp: stamp, TS: ts, Summary: summary, text: b.size, parts: b.take()}
}

// Text is how many bytes of text the entry has.
func (e Entry) Text() int { return e.text }

// Put replaces tasks, all or none. Many at once cost less than one by one.
func (db *DB) Put(ctx context.Context, list []Entry) error {
	err := db.write(ctx, func(c *sql.Conn) error {
		for _, e := range list {
			if err := drop(ctx, c, e.Key); err != nil {
				return err
			}
			if err := e.insert(ctx, c); err != nil {
				return err
			}
		}
		return nil
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
		"DELETE FROM gram WHERE rowid IN (SELECT part.id FROM part JOIN task ON part.task = task.id WHERE task.key = ?)",
		"DELETE FROM part WHERE task IN (SELECT id FROM task WHERE key = ?)",
		"DELETE FROM task WHERE key = ?",
	} {
		if _, err := c.ExecContext(ctx, text, key); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) insert(ctx context.Context, c *sql.Conn) error {
	done, err := c.ExecContext(ctx, "INSERT INTO task(key, stamp, ts, summary) VALUES(?, ?, ?, ?)", e.Key, e.Stamp, e.TS, e.Summary)
	if err != nil {
		return err
	}
	task, err := done.LastInsertId()
	if err != nil {
		return err
	}
	for _, p := range e.parts {
		done, err := c.ExecContext(ctx, "INSERT INTO part(task, body) VALUES(?, ?)", task, p.body)
		if err != nil {
			return err
		}
		id, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, "INSERT INTO gram(rowid, grams) VALUES(?, ?)", id, p.tokens); err != nil {
			return err
		}
	}
	return nil
}
