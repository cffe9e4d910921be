package catalog

import (
	"fmt"
	"strings"
	"testing"
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
	check(t, db.Put(t.Context(), list))
	for _, set := range []string{
		"bits = 19", "bits = 64", "bits = -1", "bits = 0", "bits = 9223372036854775807", "bits = -9223372036854775808",
		"count = -1", "count = 9223372036854775807", "count = 0",
		"owners = x''", "owners = x'ff'", "owners = zeroblob(100000)", "owners = x'ffffffffffffffffff01ffffffffffffffffff01'",
		"words = ''", "words = char(10)", "words = 'alpha'", "words = char(10)||'alpha'", "words = zeroblob(1000)",
	} {
		t.Run(set, func(t *testing.T) {
			for _, query := range []string{"alpha_beta", "gamma 1", "gamma", "a"} {
				looked(t, db, "UPDATE segment SET "+set, query)
			}
		})
	}
	for _, set := range []string{
		"body = x''", "body = x'ff'", "body = x'ffffffffffffffffff01'", "body = zeroblob(20000)",
		"body = x'0aff'", "first = first + 1", "first = first - 5", "first = 9223372036854775807 - first",
	} {
		t.Run("post "+set, func(t *testing.T) {
			for _, query := range []string{"alpha_beta", "gamma 1", "gamma"} {
				looked(t, db, "UPDATE post SET "+set, query)
			}
		})
	}
	for _, set := range []string{"body = x''", "body = x'28b52ffd'", "body = zeroblob(100)", "id = id + 1000000", "id = -id"} {
		t.Run("part "+set, func(t *testing.T) { looked(t, db, "UPDATE part SET "+set, "gamma") })
	}
}

// looked looks for something in a transaction in which rows were changed, and takes the
// change back.
func looked(t *testing.T, db *DB, change, query string) {
	t.Helper()
	s, err := db.Snapshot(t.Context())
	check(t, err)
	defer s.Close()
	if _, err := s.conn.ExecContext(t.Context(), change); err != nil {
		t.Fatalf("%s: %v", change, err)
	}
	q, err := Parse(query)
	check(t, err)
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
