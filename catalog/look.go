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
// Tasks that are gone may be among them.
func (s *Snapshot) Parts(ctx context.Context, q Query) (map[int64][]Part, error) {
	var segments []segment
	err := s.each(ctx, func(rows *sql.Rows) error {
		var one segment
		if err := rows.Scan(&one.id, &one.count, &one.bits, &one.owners, &one.words); err != nil {
			return err
		}
		segments = append(segments, one)
		return nil
	}, "SELECT id, count, bits, owners, words FROM segment")
	if err != nil {
		return nil, err
	}
	out := map[int64][]Part{}
	want := q.wanted()
	for _, one := range segments {
		all, err := readOwners(one.owners)
		if one.bits < 0 || one.bits > jointBits || one.count < 0 {
			err = fmt.Errorf("%w: %d words, joints of %d bits", ErrDamaged, one.count, one.bits)
		}
		if err == nil {
			err = s.narrow(ctx, one, all, want, out)
		}
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: segment %d: %w", one.id, err)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Part) int { return cmp.Compare(a.first, b.first) })
	}
	return out, nil
}

// narrow adds the parts of a segment that have what is wanted.
func (s *Snapshot) narrow(ctx context.Context, one segment, all []owner, want wanted, out map[int64][]Part) error {
	has := fullSet(len(all))
	var lists [][]int
	for _, w := range want.words {
		list, ok := numbersOf(one.words, w)
		if ok && len(list) == 0 {
			return nil
		}
		if ok {
			lists = append(lists, list)
		}
	}
	// What stands in few words is looked up first: it may leave nothing.
	slices.SortFunc(lists, func(a, b []int) int { return len(a) - len(b) })
	for _, j := range want.joints {
		lists = append(lists, []int{one.count + int(j>>(jointBits-one.bits))})
	}
	for _, list := range lists {
		some := newSet(len(all))
		if err := s.union(ctx, one.id, list, some); err != nil {
			return err
		}
		has.and(some)
		if has.empty() {
			return nil
		}
	}
	for n, o := range all {
		if has.has(n) {
			out[o.task] = append(out[o.task], Part{one.id<<numberBits | int64(n), o.first})
		}
	}
	return nil
}

// union adds the parts of some lists.
func (s *Snapshot) union(ctx context.Context, segment int64, numbers []int, to set) error {
	for len(numbers) > 0 {
		p := post{}
		var next sql.NullInt64
		err := s.conn.QueryRowContext(ctx, `SELECT first, body, (SELECT min(first) FROM post WHERE segment = ?1 AND first > ?2)
			FROM post WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1`, segment, numbers[0]).Scan(&p.first, &p.body, &next)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("%w: lists of parts are missing", ErrDamaged)
			}
			return err
		}
		here := len(numbers)
		if next.Valid {
			here, _ = slices.BinarySearch(numbers, int(next.Int64))
		}
		var bad error
		err = p.lists(numbers[:here], func(list []byte) {
			if err := to.addAll(list); err != nil {
				bad = err
			}
		})
		if err != nil || bad != nil {
			return cmp.Or(err, bad)
		}
		numbers = numbers[here:]
	}
	return nil
}

// Hits are the messages of a task's parts that hold a query, in the order of Rank. Of
// more than most hits the first are given (0 is all): parts whose hits cannot be
// among them are not read.
func (s *Snapshot) Hits(ctx context.Context, parts []Part, q Query, most int) ([]Hit, error) {
	var out []Hit
	r := reader{q: q}
	read, err := s.conn.PrepareContext(ctx, "SELECT body FROM part WHERE id = ?")
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
