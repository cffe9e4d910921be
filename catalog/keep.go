package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A part's row has the number of its segment above that of the part.
const textSchema = `
CREATE TABLE part(id INTEGER PRIMARY KEY, task INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX part_task ON part(task);
CREATE TABLE segment(id INTEGER PRIMARY KEY AUTOINCREMENT, parts INTEGER NOT NULL, live INTEGER NOT NULL, text INTEGER NOT NULL, count INTEGER NOT NULL, bits INTEGER NOT NULL, owners BLOB NOT NULL, words BLOB NOT NULL);
CREATE TABLE post(segment INTEGER NOT NULL, first INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY(segment, first)) WITHOUT ROWID;`

const dropText = "DROP TABLE IF EXISTS part; DROP TABLE IF EXISTS segment; DROP TABLE IF EXISTS post;"

const (
	smallText = 4 << 20  // a segment of less text is merged with others of its kind
	mostSmall = 16       // when there are more of them than this
	largeText = 64 << 20 // a segment is not made for more text than about this
)

// segmentWriter writes parts, and the segments that index them.
type segmentWriter struct {
	c   *sql.Conn
	id  int64
	new indexer
}

// task begins with a task. All parts of one lie in one segment.
func (w *segmentWriter) task(ctx context.Context) error {
	if w.new.text < largeText && len(w.new.owners) < mostParts/2 {
		return nil
	}
	return w.end(ctx)
}

func (w *segmentWriter) part(ctx context.Context, task int64, p part) error {
	id, err := w.next(ctx, task, p)
	if err != nil {
		return err
	}
	_, err = w.c.ExecContext(ctx, "INSERT INTO part(id, task, body) VALUES(?, ?, ?)", id, task, p.body)
	return err
}

// next takes a part into the segment that is being made and gives the number of its
// row.
func (w *segmentWriter) next(ctx context.Context, task int64, p part) (int64, error) {
	if w.id == 0 {
		// Its row is made first: the parts' rows need its number.
		done, err := w.c.ExecContext(ctx, "INSERT INTO segment(parts, live, text, count, bits, owners, words) VALUES(0, 0, 0, 0, 0, '', '')")
		if err != nil {
			return 0, err
		}
		if w.id, err = done.LastInsertId(); err != nil {
			return 0, err
		}
	}
	return w.id<<numberBits | int64(w.new.add(task, p)), nil
}

// end writes the index of the parts.
func (w *segmentWriter) end(ctx context.Context) error {
	if w.id == 0 {
		return nil
	}
	s := w.new.segment()
	_, err := w.c.ExecContext(ctx, "UPDATE segment SET parts = ?1, live = ?1, text = ?2, count = ?3, bits = ?4, owners = ?5, words = ?6 WHERE id = ?7",
		len(w.new.owners), w.new.text, s.count, s.bits, s.owners, s.words, w.id)
	if err != nil {
		return err
	}
	for _, p := range s.posts {
		if _, err := w.c.ExecContext(ctx, "INSERT INTO post(segment, first, body) VALUES(?, ?, ?)", w.id, p.first, p.body); err != nil {
			return err
		}
	}
	w.id, w.new = 0, indexer{}
	return nil
}

// tidy removes segments that have no parts any more, and merges small ones: each
// costs every search a look.
func tidy(ctx context.Context, c *sql.Conn) error {
	var dead, small []any
	rows, err := c.QueryContext(ctx, "SELECT id, text, parts, live FROM segment")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err below tells what ended them
	for rows.Next() {
		var id, text, parts, live int64
		if err := rows.Scan(&id, &text, &parts, &live); err != nil {
			return err
		}
		switch {
		case live <= 0:
			dead = append(dead, id)
		case text*live/max(parts, 1) < smallText: // by what is left of it
			small = append(small, id)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(small) > mostSmall {
		if err := merge(ctx, c, small); err != nil {
			return err
		}
		dead = append(dead, small...)
	}
	if len(dead) == 0 {
		return nil
	}
	marks := "(?" + strings.Repeat(", ?", len(dead)-1) + ")"
	for _, table := range []string{"DELETE FROM post WHERE segment IN ", "DELETE FROM segment WHERE id IN "} {
		if _, err := c.ExecContext(ctx, table+marks, dead...); err != nil {
			return err
		}
	}
	return nil
}

// merge indexes the parts of some segments anew, in one. Of a task the parts stay in
// their order.
func merge(ctx context.Context, c *sql.Conn, segments []any) error {
	w := segmentWriter{c: c}
	var found features
	var r reader
	for _, id := range segments {
		from := id.(int64) << numberBits
		owners, err := ownersOf(ctx, c, id.(int64))
		if err != nil {
			return err
		}
		for n, o := range owners {
			var body []byte
			err := c.QueryRowContext(ctx, "SELECT body FROM part WHERE id = ?", from+int64(n)).Scan(&body)
			if errors.Is(err, sql.ErrNoRows) {
				continue // its task was dropped
			}
			if err != nil {
				return err
			}
			if _, err := r.open(body); err != nil {
				return err
			}
			if n == 0 || owners[n-1].task != o.task {
				if err := w.task(ctx); err != nil {
					return err
				}
			}
			p := part{first: o.first}
			for _, text := range r.texts {
				found.text(fold(string(text)))
				p.text += len(text)
			}
			p.words, p.joints = found.words, found.joints
			to, err := w.next(ctx, o.task, p)
			if err != nil {
				return err
			}
			found.reset()
			if _, err := c.ExecContext(ctx, "UPDATE part SET id = ? WHERE id = ?", to, from+int64(n)); err != nil {
				return err
			}
		}
	}
	return w.end(ctx)
}

func ownersOf(ctx context.Context, c *sql.Conn, segment int64) ([]owner, error) {
	var raw []byte
	if err := c.QueryRowContext(ctx, "SELECT owners FROM segment WHERE id = ?", segment).Scan(&raw); err != nil {
		return nil, err
	}
	owners, err := readOwners(raw)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", segment, err)
	}
	return owners, nil
}
