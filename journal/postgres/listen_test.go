package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal/postgres"
)

// A listener to which nothing comes connects again, and reports no problem. Without a database it reports one problem, until
// it has listened again.
func TestListenReportsOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	c := pgtest.Start(t)
	url := c.Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	var said atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		postgres.Listen(ctx, db, 100*time.Millisecond, func(err error) {
			t.Log(err)
			said.Add(1)
		})
	}()
	defer func() { stop(); <-ended }()
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}
	reconnects := func() {
		t.Helper()
		seen := map[int]bool{}
		until("three connections that listen", func() bool {
			var pid int
			if err := db.QueryRow(t.Context(), `SELECT max(pid) FROM pg_stat_activity WHERE query = 'LISTEN roost_commits'`).Scan(&pid); err == nil {
				seen[pid] = true
			}
			return len(seen) == 3
		})
	}
	reconnects()
	if got := said.Load(); got != 0 {
		t.Errorf("while the database works: got %d problems, want none", got)
	}
	for _, want := range []int32{1, 2} {
		before := said.Load()
		c.Kill()
		until("a problem", func() bool { return said.Load() > before })
		time.Sleep(1500 * time.Millisecond) // for three more attempts
		if got := said.Load() - before; got != 1 {
			t.Errorf("without a database, time %d: got %d problems, want 1", want, got)
		}
		c.Run(t)
		reconnects()
	}
}
