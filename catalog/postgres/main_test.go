package postgres_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	// What decides is the same code as for the file, whose tests draw the usual number of cases; each costs more here.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// migrated is the address of a database that has its tables.
func migrated(t *testing.T) string {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	return url
}

func connect(t testing.TB, url string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	fixture.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}
