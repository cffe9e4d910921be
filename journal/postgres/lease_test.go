package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// A renewal compares no lease with each other one, also by a plan that was made without a look at how many there are, which
// PostgreSQL uses from the sixth time on. With 3,000 leases that took longer than the leases last.
func TestRenewalIsLinear(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, sql := range []string{
		`INSERT INTO roost.journals (name, epoch, owner) SELECT 'j' || i, 1, '{}' FROM generate_series(1, 20000) i`,
		`ANALYZE roost.journals`,
		`SET plan_cache_mode = force_generic_plan`,
		`PREPARE renewal AS ` + postgres.Renewal,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var ids, epochs string
	err = conn.QueryRow(t.Context(), `SELECT array_agg(id)::text, array_agg(epoch)::text FROM roost.journals WHERE id <= 300`).Scan(&ids, &epochs)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `EXPLAIN ANALYZE EXECUTE renewal('`+ids+`', '`+epochs+`', '3 s')`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	plan := strings.Join(lines, "\n")
	if err != nil || strings.Contains(plan, "Removed by Join Filter") {
		t.Errorf("got %v and a plan that compares leases with each other, want each found by its key:\n%s", err, plan)
	}
	var renewed int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM roost.journals WHERE lease_until > now()`).Scan(&renewed); err != nil || renewed != 300 {
		t.Errorf("got %d leases renewed, %v, want 300", renewed, err)
	}
}

// A BusyError names the owner. When the owner releases the journal at this moment, Own takes the journal and returns no
// error.
func TestBusyNamesAnOwner(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			db := openURL(t, url, postgres.Options{})
			for range 40 {
				o, err := db.Own(t.Context(), "task", postgres.OwnOptions{By: "test"})
				var busy *journal.BusyError
				switch {
				case err == nil:
					err = o.Close()
				case errors.As(err, &busy) && busy.Holder.PID != 0:
					continue
				}
				if err != nil {
					t.Errorf("got %v, want the journal, or its owner's name", err)
				}
			}
		})
	}
	wait.Wait()
}

// A renewal that the database carries out after the owner released the journal does not set a new lease.
func TestALateRenewalHoldsNothing(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db := openURL(t, url, postgres.Options{})
	o, err := db.Own(t.Context(), "task", postgres.OwnOptions{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DB().Exec(t.Context(), postgres.Renewal, []int64{1}, []int64{int64(o.Epoch())}, time.Minute); err != nil {
		t.Fatal(err)
	}
	o, err = db.Own(t.Context(), "task", postgres.OwnOptions{By: "test"})
	if err != nil {
		t.Fatalf("got %v, want the journal, which nobody owns", err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
