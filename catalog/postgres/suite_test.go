package postgres_test

import (
	"testing"

	"github.com/roost-dev/roost/catalog/catalogtest"
	"github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestSuite(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Backend {
		url := migrated(t)
		look := connect(t, url)
		count := func(t testing.TB, query string) (n int) {
			t.Helper()
			fixture.NoError(t, look.QueryRow(t.Context(), query).Scan(&n))
			return n
		}
		return catalogtest.Backend{
			Open: func(t testing.TB) catalogtest.Catalog { return postgres.Open(connect(t, url)) },
			Leftover: func(t testing.TB) int {
				return count(t, "SELECT count(*) FROM roost.catalog_parts WHERE task NOT IN (SELECT id FROM roost.catalog_tasks)")
			},
			Lists: func(t testing.TB) int { return count(t, "SELECT count(*) FROM roost.catalog_words") },
		}
	})
}
