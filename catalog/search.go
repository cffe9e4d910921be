package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// Part is where some messages of a task lie.
type Part struct {
	id    int64
	first int // none of its messages has a lower place, nor has one of a later part
}

// Parts are the parts that may hold a query, by task, in the order of their messages.
func (s *Snapshot) Parts(ctx context.Context, q Query) (map[int64][]Part, error) {
	lists, err := vocabulary(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	out := map[int64][]Part{}
	text, none := q.wanted().expression(lists)
	if none {
		return out, nil
	}
	query, args := "SELECT id, task, first FROM part", []any(nil)
	if text != "" {
		query, args = "SELECT id, task, first FROM feature LEFT JOIN part ON id = feature.rowid WHERE feature MATCH ?", []any{text}
	}
	missing := false
	err = scan(ctx, s.conn, query, func(v values) {
		missing = missing || v[0] == nil
		out[v.int(1)] = append(out[v.int(1)], Part{v.int(0), int(v.int(2))})
	}, args...)
	if err == nil && missing {
		err = fmt.Errorf("read the catalogue: %w: parts are missing", ErrDamaged)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Part) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id)) })
	}
	return out, err
}

// Hits are the messages of a task's parts that hold a query, in the order of Rank. Of
// more than most hits the first are given (0 is all): parts whose hits cannot be
// among them are not read.
func (s *Snapshot) Hits(ctx context.Context, parts []Part, q Query, most int) ([]Hit, error) {
	var out []Hit
	r := reader{q: q}
	read, err := s.conn.PrepareContext(ctx, "SELECT text FROM body WHERE part = ?")
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer read.Close() //nolint:errcheck // nothing was written
	for _, p := range parts {
		if most > 0 && enough(out, p.first, most) {
			break
		}
		var body []byte
		if err := read.QueryRowContext(ctx, p.id).Scan(&body); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = fmt.Errorf("%w: it is not there", ErrDamaged)
			}
			return nil, fmt.Errorf("read the catalogue: part %d: %w", p.id, err)
		}
		if out, err = r.hits(out, body); err != nil {
			return nil, fmt.Errorf("read the catalogue: part %d: %w", p.id, err)
		}
	}
	slices.SortFunc(out, Rank)
	if most > 0 && len(out) > most {
		out = out[:most]
	}
	return out, nil
}

// Any reports whether a message in some parts holds a query.
func (s *Snapshot) Any(ctx context.Context, parts []Part, q Query) (bool, error) {
	for _, p := range parts {
		if hits, err := s.Hits(ctx, []Part{p}, q, 1); err != nil || len(hits) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// enough reports whether no hit at or behind a place can be among the first.
func enough(hits []Hit, place, most int) bool {
	n := 0
	for _, h := range hits {
		if h.Score == bestScore && h.Place < place {
			n++
		}
	}
	return n >= most
}
