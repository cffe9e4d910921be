package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
)

// Task is a task whose text the catalogue keeps.
type Task struct {
	ID    int64
	Stamp string
}

// Part is a part of a task's text: some of its messages.
type Part struct {
	ID    int64
	First int // no message of this part, or of a later one, has a lower place
}

// Texts are the texts in a backend at one moment.
type Texts interface {
	// Tasks are all tasks, by their keys.
	Tasks(ctx context.Context) (map[string]Task, error)
	Vocabulary(ctx context.Context) (Vocabulary, error)
	// Parts calls f with each part that fulfils l, in any order.
	Parts(ctx context.Context, l Lookup, f func(task int64, p Part)) error
	// Bodies yields the bodies of some parts, in their order. A missing one is an error that wraps ErrDamaged.
	Bodies(ctx context.Context, parts []Part) iter.Seq2[[]byte, error]
	// Whole yields all bodies of a task, in their order.
	Whole(ctx context.Context, task int64) iter.Seq2[[]byte, error]
	Close()
}

// Snapshot is the catalogue at one moment: it does not show later writes of other processes. It is for one goroutine,
// which must close it.
type Snapshot struct {
	texts Texts
}

// NewSnapshot returns a snapshot of the texts of a backend. Close closes the texts.
func NewSnapshot(t Texts) *Snapshot { return &Snapshot{t} }

// Close ends reading.
func (s *Snapshot) Close() { s.texts.Close() }

// Tasks returns all tasks whose text is kept, by their keys.
func (s *Snapshot) Tasks(ctx context.Context) (map[string]Task, error) { return s.texts.Tasks(ctx) }

// Parts returns the parts that may have a hit of a query, by task, in the order of their messages.
func (s *Snapshot) Parts(ctx context.Context, q Query) (map[int64][]Part, error) {
	words, err := s.texts.Vocabulary(ctx)
	if err != nil {
		return nil, err
	}
	out := map[int64][]Part{}
	lookup, ok := words.lookup(q.wanted())
	if !ok {
		return out, nil
	}
	err = s.texts.Parts(ctx, lookup, func(task int64, p Part) { out[task] = append(out[task], p) })
	for _, list := range out {
		slices.SortFunc(list, func(a, b Part) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.ID, b.ID)) })
	}
	return out, err
}

// Hits returns the messages of a task's parts that hold a query, in the order of Rank. It returns the first most
// hits, or all when most is 0, and does not read parts whose hits cannot be among them.
func (s *Snapshot) Hits(ctx context.Context, parts []Part, q Query, most int) ([]Hit, error) {
	out, err := s.read(ctx, parts, q, func(found []Hit, next Part) bool { return most > 0 && enough(found, next.First, most) })
	slices.SortFunc(out, Rank)
	if most > 0 && len(out) > most {
		out = out[:most]
	}
	return out, err
}

// Any reports whether a message in some parts is a hit of a query.
func (s *Snapshot) Any(ctx context.Context, parts []Part, q Query) (bool, error) {
	out, err := s.read(ctx, parts, q, func(found []Hit, _ Part) bool { return len(found) > 0 })
	return len(out) > 0, err
}

// read returns the hits in parts, in their order. Before each further part it calls stop, and ends if stop returns true.
// With an error it returns no hits.
func (s *Snapshot) read(ctx context.Context, parts []Part, q Query,
	stop func(found []Hit, next Part) bool) (out []Hit, err error) {
	r, i := reader{q: q}, 0
	for body, err := range s.texts.Bodies(ctx, parts) {
		if err == nil {
			out, err = r.hits(out, body)
		}
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: part %d: %w", parts[i].ID, err)
		}
		if i++; i < len(parts) && stop(out, parts[i]) {
			break
		}
	}
	return out, nil
}

// enough reports whether no hit at this place or behind it can be among the first most hits, or a twin of one of
// them.
func enough(hits []Hit, place, most int) bool {
	n := 0
	for _, h := range hits {
		if h.Score == BestScore && h.Place+twinsApart < place {
			n++
		}
	}
	return n >= most
}

// Digest returns a digest of the text that the catalogue keeps of a task.
func (s *Snapshot) Digest(ctx context.Context, id int64) ([]byte, error) {
	h := sha256.New()
	for body, err := range s.texts.Whole(ctx, id) {
		if err != nil {
			return nil, err
		}
		h.Write(body)
	}
	return h.Sum(nil), nil
}
