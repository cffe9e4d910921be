package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// hits are the hits of one task, the first ones of many.
func (db *DB) hits(t testing.TB, key string, q Query, most int) []Hit {
	t.Helper()
	ctx := context.Background()
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	tasks, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	hits, err := s.Hits(ctx, parts[tasks[key].ID], q, most)
	fixture.NoError(t, err)
	return hits
}

// naive are the hits of a task by looking into every message, in the order of Rank.
func naive(q Query, list []Message) (out []Hit) {
	for _, m := range list {
		if hit, ok := q.Match(m); ok {
			out = append(out, hit)
		}
	}
	slices.SortFunc(out, Rank)
	return out
}

// kept is a task with these messages.
func kept(t testing.TB, db *DB, key string, list []Message) {
	t.Helper()
	var b Builder
	for _, m := range list {
		b.Add(m)
	}
	fixture.NoError(t, db.Put(context.Background(), []Entry{b.Entry(key, "stamp")}))
}

// When the page is full with the best there can be, parts behind it are not read.
func TestEnoughIsEnough(t *testing.T) {
	ctx := context.Background()
	db := opened(t, t.TempDir())
	texts := make([]string, 400)
	for i := range texts {
		texts[i] = "the needle " + strings.Repeat(fmt.Sprintf("hay %d ", i), 100)
	}
	put(t, db, "long", texts...)
	_, err := db.sql.ExecContext(ctx, "UPDATE body SET text = x'00' WHERE part NOT IN (SELECT id FROM part ORDER BY id LIMIT 1)")
	fixture.NoError(t, err)
	q, err := Parse("needle")
	fixture.NoError(t, err)
	if got := db.hits(t, "long", q, 5); len(got) != 5 || got[4].Number != 5 {
		t.Errorf("got %+v, want len(got) = 5 and got[4].Number = 5", got)
	}
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	for _, list := range parts {
		if _, err := s.Hits(ctx, list, q, 0); !Damaged(err) {
			t.Errorf("all hits, of parts that cannot be read: error %v", err)
		}
		if ok, err := s.Any(ctx, list, q); !ok || err != nil {
			t.Errorf("any hit: %v, %v", ok, err)
		}
	}
}
