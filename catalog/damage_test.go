package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// What stands in a row of the index may be anything after damage that SQLite does not
// see: looking for something is then an error or finds what it finds, and never ends
// the process. What is found is what a part says, whatever the index claimed.
func TestDamagedIndexRows(t *testing.T) {
	db := opened(t, t.TempDir())
	var list []Entry
	for i := range 40 {
		list = append(list, entry(fmt.Sprint("task ", i), "alpha_beta and gamma "+fmt.Sprint(i), strings.Repeat("more of delta ", 50)))
	}
	fixture.NoError(t, db.Put(t.Context(), list))
	for _, change := range []string{
		"UPDATE vocabulary SET words = x''", "UPDATE vocabulary SET words = x'28b52ffd'", "UPDATE vocabulary SET words = zeroblob(1000)",
		"DELETE FROM vocabulary", "UPDATE feature_data SET block = x''", "UPDATE feature_data SET block = zeroblob(4000)",
		"UPDATE feature_data SET block = x'ffffffffffffffffff01ffffffffffffffffff01' WHERE id > 10", "DELETE FROM feature_data",
		"DELETE FROM feature_data WHERE id > 10", "UPDATE feature_data SET id = id + 1 WHERE id > 10", "DELETE FROM feature_idx",
		"UPDATE body SET text = x''", "UPDATE body SET text = x'28b52ffd'", "UPDATE body SET text = zeroblob(100)", "UPDATE body SET part = -part",
		"UPDATE part SET id = id + 1000000", "UPDATE part SET first = -first", "UPDATE part SET task = task + 1000",
	} {
		t.Run(change, func(t *testing.T) {
			for _, query := range []string{"alpha_beta", "gamma 1", "gamma", "a"} {
				looked(t, db, change, query)
			}
		})
	}
}

// looked looks for something in a transaction in which rows were changed, and takes the
// change back.
func looked(t *testing.T, db *DB, change, query string) {
	t.Helper()
	s, err := db.Snapshot(t.Context())
	fixture.NoError(t, err)
	defer s.Close()
	if _, err := s.texts.(*texts).conn.ExecContext(t.Context(), change); err != nil {
		t.Fatalf("%s: got %v, want no error", change, err)
	}
	q, err := Parse(query)
	fixture.NoError(t, err)
	parts, err := s.Parts(t.Context(), q)
	if err != nil {
		if !Damaged(err) {
			t.Errorf("%s, %s: this would not be set aside: %v", change, query, err)
		}
		return
	}
	for _, list := range parts {
		hits, err := s.Hits(t.Context(), list, q, 0)
		if err != nil {
			if !Damaged(err) {
				t.Errorf("%s, %s: this would not be set aside: %v", change, query, err)
			}
			return
		}
		for _, h := range hits {
			if !strings.Contains(h.Snippet, strings.Fields(query)[0]) {
				t.Errorf("%s, %s: found %q", change, query, h.Snippet)
			}
		}
	}
}
