package accounts_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// opened are accounts of an empty database, and of a second server that shares it.
func opened(t *testing.T) (a, other *accounts.Accounts, db *database.DB) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	open := func() (*accounts.Accounts, *database.DB) {
		db, err := database.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		a := accounts.New(db)
		t.Cleanup(func() { a.Close(); db.Close() })
		return a, db
	}
	a, db = open()
	other, _ = open()
	return a, other, db
}
