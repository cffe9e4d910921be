package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/roost-dev/roost/api"
)

// Put replaces all the tasks, or none. One call with many costs less than many calls. Of several entries with one
// key, the last one counts.
func (db *DB) Put(ctx context.Context, list []Entry) error {
	last := map[string]int{}
	for i, e := range list {
		last[e.Key] = i
	}
	err := db.write(ctx, patience, func(c *sql.Conn) error {
		w := indexWriter{c: c, words: WordSet{}}
		for i, e := range list {
			if last[e.Key] != i {
				continue
			}
			if err := drop(ctx, c, e.Key); err != nil {
				return err
			}
			task, err := insert(ctx, c, "INSERT INTO task(key, stamp) VALUES(?, ?)", e.Key, e.Stamp)
			if err != nil {
				return err
			}
			for _, p := range e.Parts {
				if err := w.part(ctx, task, p); err != nil {
					return err
				}
			}
		}
		return w.end(ctx)
	})
	return api.Failed(err, "keep %d tasks in the catalogue", len(list))
}

// Drop removes tasks.
func (db *DB) Drop(ctx context.Context, keys []string) error {
	err := db.write(ctx, patience, func(c *sql.Conn) error {
		for _, key := range keys {
			if err := drop(ctx, c, key); err != nil {
				return err
			}
		}
		return nil
	})
	return api.Failed(err, "remove %d tasks from the catalogue", len(keys))
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

// insert adds a row, and returns its id.
func insert(ctx context.Context, c *sql.Conn, query string, values ...any) (id int64, err error) {
	done, err := c.ExecContext(ctx, query, values...)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}

// indexWriter writes parts and their entries in the index.
type indexWriter struct {
	c     *sql.Conn
	words WordSet // of the parts
}

func (w *indexWriter) part(ctx context.Context, task int64, p Kept) error {
	id, err := insert(ctx, w.c, "INSERT INTO part(task, first) VALUES(?, ?)", task, p.First)
	if err != nil {
		return err
	}
	if _, err := w.c.ExecContext(ctx, "INSERT INTO body(part, text) VALUES(?, ?)", id, p.Body); err != nil {
		return err
	}
	w.words.Add(p)
	doc := bytes.Clone(p.Words)
	for _, j := range p.Joints {
		doc = append(append(doc, jointToken(j)...), '\n')
	}
	_, err = w.c.ExecContext(ctx, "INSERT INTO feature(rowid, words) VALUES(?, ?)", id, string(doc))
	return err
}

// jointToken spells a joint as a word of the index. It begins with the byte 0xff, as no word of UTF-8 text does; for
// other text, a search may read a part that has no hit.
func jointToken(j uint32) string {
	const digits = "abcdefghijklmnopqrstuvwxyz234567"
	return string([]byte{0xff, digits[j&31], digits[j>>5&31], digits[j>>10&31], digits[j>>15&31]})
}

// end adds the words of the parts to the vocabulary.
func (w *indexWriter) end(ctx context.Context) error {
	known, err := (&texts{w.c}).Vocabulary(ctx)
	if err != nil {
		return err
	}
	add, instead := known.Extend(w.words)
	for _, id := range instead {
		if _, err := w.c.ExecContext(ctx, "DELETE FROM vocabulary WHERE id = ?", id); err != nil {
			return err
		}
	}
	if len(add.Words) > 0 {
		_, err = w.c.ExecContext(ctx, "INSERT INTO vocabulary(words) VALUES(?)", add.Pack())
	}
	return err
}

// texts are the texts of the file as one transaction reads them.
type texts struct {
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
	return NewSnapshot(&texts{c}), nil
}

// Close implements Texts.
func (t *texts) Close() {
	rollback(context.Background(), t.conn)
	_ = t.conn.Close() // it fails when rollback discarded the connection
}

// Tasks implements Texts.
func (t *texts) Tasks(ctx context.Context) (map[string]Task, error) {
	out := map[string]Task{}
	err := scan(ctx, t.conn, "SELECT id, key, stamp FROM task", func(v values) {
		out[v.text(1)] = Task{ID: v.int(0), Stamp: v.text(2)}
	})
	return out, err
}

// Vocabulary implements Texts.
func (t *texts) Vocabulary(ctx context.Context) (out Vocabulary, err error) {
	var bad error
	err = scan(ctx, t.conn, "SELECT id, words FROM vocabulary", func(v values) {
		list, err := OpenWordList(v.int(0), v.blob(1))
		bad = errors.Join(bad, err)
		out = append(out, list)
	})
	return out, errors.Join(err, bad)
}

// Parts implements Texts.
func (t *texts) Parts(ctx context.Context, l Lookup, f func(task int64, p Part)) error {
	query, args := "SELECT id, task, first FROM part", []any(nil)
	if text := expression(l); text != "" {
		query, args = "SELECT id, task, first FROM feature LEFT JOIN part ON id = feature.rowid WHERE feature MATCH ?", []any{text}
	}
	missing := false
	err := scan(ctx, t.conn, query, func(v values) {
		missing = missing || v[0] == nil
		f(v.int(1), Part{v.int(0), int(v.int(2))})
	}, args...)
	if err == nil && missing {
		err = fmt.Errorf("read the catalogue: %w: parts are missing", ErrDamaged)
	}
	return err
}

// expression returns the query for the full-text table; "" when any part may match.
func expression(l Lookup) string {
	all := api.Each(l.Words, func(words []string) string { return `("` + strings.Join(words, `" OR "`) + `")` })
	all = append(all, api.Each(l.Joints, func(j uint32) string { return `"` + jointToken(j) + `"` })...)
	return strings.Join(all, " AND ")
}

// Bodies implements Texts.
func (t *texts) Bodies(ctx context.Context, parts []Part) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if len(parts) == 0 {
			return
		}
		read, err := t.conn.PrepareContext(ctx, "SELECT text FROM body WHERE part = ?")
		if err != nil {
			yield(nil, err)
			return
		}
		defer read.Close() //nolint:errcheck // nothing was written
		for _, p := range parts {
			var body []byte
			err := read.QueryRowContext(ctx, p.ID).Scan(&body)
			if errors.Is(err, sql.ErrNoRows) {
				err = fmt.Errorf("%w: its body is missing", ErrDamaged)
			}
			if !yield(body, err) {
				return
			}
		}
	}
}

// Whole implements Texts.
func (t *texts) Whole(ctx context.Context, task int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var parts []Part
		err := scan(ctx, t.conn, "SELECT id FROM part WHERE task = ? ORDER BY id", func(v values) { parts = append(parts, Part{ID: v.int(0)}) }, task)
		if err != nil {
			yield(nil, err)
			return
		}
		t.Bodies(ctx, parts)(yield)
	}
}
