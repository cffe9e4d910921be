package lease_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// A lease is renewed while its server lives, and is another one after it was ended; End leaves those that last.
func TestLease(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	ctx := t.Context()
	until := func(id int64) (at time.Time) {
		t.Helper()
		if _, err := database.Found(db.QueryRow(ctx, `SELECT lease_until FROM roost.leases WHERE id = $1`, id), &at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	end := func() {
		t.Helper()
		fixture.NoError(t, db.Transaction(ctx, func(tx *database.Tx) error { return lease.End(ctx, tx) }))
	}
	l, other := lease.New(db, 300*time.Millisecond), lease.New(db, time.Hour)
	first, kept := fixture.Must[int64](t)(l.ID(ctx)), fixture.Must[int64](t)(other.ID(ctx))
	began := until(first)
	fixture.Eventually(t, "renewal", func() bool { return until(first).After(began.Add(600 * time.Millisecond)) })
	_, err := db.Exec(ctx, `UPDATE roost.leases SET lease_until = '-infinity' WHERE id = $1`, kept)
	fixture.NoError(t, err)
	if got := fixture.Must[int64](t)(other.ID(ctx)); got != kept {
		t.Errorf("a lease that ran out and was not ended: got %d, want %d", got, kept)
	}
	end()
	_, err = db.Exec(ctx, `INSERT INTO roost.held (lease, holder, store, hash) VALUES ($1, 1, 1, 'x')`, kept)
	if !lease.Ended(err) {
		t.Errorf("a row that names an ended lease: got %v, want that the lease was ended", err)
	}
	other.Lost(kept)
	if got := fixture.Must[int64](t)(other.ID(ctx)); got == kept || until(got).Before(time.Now()) {
		t.Errorf("after it was ended: got %d, want another one", got)
	}
	_, err = db.Exec(ctx, `DELETE FROM roost.leases WHERE id = $1`, first)
	fixture.NoError(t, err)
	fixture.Eventually(t, "another lease", func() bool { return fixture.Must[int64](t)(l.ID(ctx)) != first })
	for _, l := range []*lease.Lease{l, other} {
		fixture.NoError(t, l.Close(context.WithoutCancel(ctx)))
		fixture.NoError(t, l.Close(context.WithoutCancel(ctx)))
	}
	var n int
	fixture.NoError(t, db.QueryRow(ctx, `SELECT count(*) FROM roost.leases`).Scan(&n))
	if n != 0 {
		t.Errorf("got %d leases, want none", n)
	}
}

// What a server announces is there while it lives, is replaced whole, and comes back after its lease was ended.
func TestAnnounce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	t.Cleanup(db.Close)
	ctx := t.Context()
	want := func(when string, want ...string) {
		t.Helper()
		got := []string{}
		for _, doc := range fixture.Must[[][]byte](t)(lease.Announced(ctx, db)) {
			got = append(got, string(doc))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	a, b, silent := lease.New(db, time.Hour), lease.New(db, time.Hour), lease.New(db, time.Hour)
	_, err := silent.ID(ctx)
	fixture.NoError(t, err)
	fixture.NoError(t, a.Announce(ctx, []byte("a")))
	fixture.NoError(t, b.Announce(ctx, []byte("b")))
	want("two servers", "a", "b")
	fixture.NoError(t, a.Announce(ctx, []byte("a changed")))
	want("a change", "a changed", "b")
	_, err = db.Exec(ctx, `UPDATE roost.leases SET lease_until = '-infinity' WHERE id = $1`, fixture.Must[int64](t)(b.ID(ctx)))
	fixture.NoError(t, err)
	want("one that ran out", "a changed")
	id := fixture.Must[int64](t)(a.ID(ctx))
	_, err = db.Exec(ctx, `DELETE FROM roost.leases WHERE id = $1`, id)
	fixture.NoError(t, err)
	a.Lost(id)
	fixture.NoError(t, a.Announce(ctx, []byte("a changed")))
	want("another lease", "a changed")
	for _, l := range []*lease.Lease{a, b, silent} {
		fixture.NoError(t, l.Close(context.WithoutCancel(ctx)))
	}
	want("no server")
}
