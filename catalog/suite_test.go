package catalog_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/catalog/catalogtest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestSuite(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Backend {
		dir := t.TempDir()
		count := func(t testing.TB, queries ...string) (sum int) {
			t.Helper()
			db, err := sql.Open("sqlite", filepath.Join(dir, catalog.Name))
			fixture.NoError(t, err)
			defer db.Close()
			for _, query := range queries {
				var n int
				fixture.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n))
				sum += n
			}
			return sum
		}
		return catalogtest.Backend{
			Open: func(t testing.TB) catalogtest.Catalog {
				db, err := catalog.Open(t.Context(), dir)
				fixture.NoError(t, err)
				t.Cleanup(func() { _ = db.Close() })
				return db
			},
			Leftover: func(t testing.TB) int {
				return count(t,
					"SELECT count(*) FROM part WHERE task NOT IN (SELECT id FROM task)",
					"SELECT count(*) FROM body WHERE part NOT IN (SELECT id FROM part)",
					"SELECT count(*) FROM feature_docsize WHERE id NOT IN (SELECT id FROM part)")
			},
			Lists: func(t testing.TB) int { return count(t, "SELECT count(*) FROM vocabulary") },
		}
	})
}
