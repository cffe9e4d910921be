package search

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/internal/testing/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// inDatabase is a database with a catalogue for several servers.
func inDatabase(t *testing.T) (*database.DB, *postgres.DB) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	storetest.Check(t, database.Migrate(t.Context(), url))
	db := storetest.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	return db, postgres.Open(db)
}
