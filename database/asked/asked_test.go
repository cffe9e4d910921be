package asked_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/asked"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// Of many that ask at once, one does.
func TestOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			is, err := asked.Once(t.Context(), db, "import")
			if err != nil {
				t.Error(err)
			}
			if is {
				first.Add(1)
			}
		})
	}
	all.Wait()
	other, err := asked.Once(t.Context(), db, "other")
	if n := first.Load(); n != 1 || !other || err != nil {
		t.Errorf("got %d first calls, and %v, %v for another question; want 1 and true", n, other, err)
	}
}
