package postgres_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/content/contenttest"
	"github.com/roost-dev/roost/content/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

const (
	childURL  = "CONTENT_TEST_CHILD_URL"
	childName = "CONTENT_TEST_CHILD_NAME"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		child(url, os.Getenv(childName))
		return
	}
	if err := flag.Set("rapid.checks", "15"); err != nil { // each step asks the database
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// child serves a store under a short lease.
func child(url, name string) {
	ctx := context.Background()
	db, err := database.Open(ctx, url)
	if err != nil {
		panic(err)
	}
	contenttest.Serve(postgres.New(db, postgres.Options{Lease: 300 * time.Millisecond}).Store(name))
}

// server is one server's access to the stores of a database.
func server(t testing.TB, url string, o postgres.Options) *postgres.Stores {
	t.Helper()
	db := fixture.Must[*database.DB](t)(database.Open(context.Background(), url))
	s := postgres.New(db, o)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	return s
}

// migrated is the address of a new database that has its tables, and a connection to it.
func migrated(t testing.TB) (string, *database.DB) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	return url, db
}

func TestSuite(t *testing.T) {
	url, db := migrated(t)
	one, two := server(t, url, postgres.Options{}), server(t, url, postgres.Options{})
	run := func(sql string) func(t testing.TB, h content.Hash) {
		return func(t testing.TB, h content.Hash) {
			t.Helper()
			k := fixture.Must[content.Key](t)(h.Key())
			done, err := db.Exec(context.Background(), sql, k[:])
			if err != nil || done == 0 {
				t.Fatalf("%s: %d rows, %v", sql, done, err)
			}
		}
	}
	stores := 0
	contenttest.Run(t, func(t *testing.T) contenttest.Backend {
		stores++
		name := fmt.Sprint("store", stores)
		opened := 0
		return contenttest.Backend{
			Open: func(testing.TB) content.Store {
				opened++
				return cmp.Or(map[bool]*postgres.Stores{true: one}[opened%2 == 0], two).Store(name)
			},
			Start: func(t testing.TB, fail string) *contenttest.Child {
				t.Setenv(childURL, url)
				return contenttest.StartChild(t, childName+"="+name, fail)
			},
			Damage: run(`UPDATE roost.chunks SET data = set_byte(data, length(data) / 2, get_byte(data, length(data) / 2) # 1) WHERE hash = $1`),
			Lose:   run(`DELETE FROM roost.kept WHERE hash = $1`),
			Commits: []string{
				"content.postgres.written", "content.postgres.committed", "content.postgres.name.written", "content.postgres.name.committed",
			},
			Collects: []string{"content.postgres.collect.written", "content.postgres.collect.removed"},
		}
	})
}
