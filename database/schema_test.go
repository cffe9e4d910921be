package database_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), sql)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// open migrates a database and opens it.
func open(t *testing.T, url string) *database.DB {
	t.Helper()
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// count is how many tables a database has.
func count(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'roost'`).Scan(&n)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A database that cannot be used is refused with what is wrong, before anything is written.
func TestRefused(t *testing.T) {
	c := pgtest.Shared(t)
	for name, tc := range map[string]struct {
		sql  string // run on a migrated database; "" leaves it empty
		more string // parameters of the address
		want error
	}{
		"no tables":                   {"", "", database.ErrNoSchema},
		"tables of a newer program":   {`UPDATE roost.schema_version SET version = 1000`, "", database.ErrNewerSchema},
		"it takes no writes":          {`SELECT 1`, "&default_transaction_read_only=on", database.ErrReadOnly},
		"it acknowledges before sync": {`SELECT 1`, "&synchronous_commit=off", database.ErrNotDurable},
		"it syncs only here":          {`SELECT 1`, "&synchronous_commit=local", database.ErrNotDurable},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.Database(t)
			if tc.sql != "" {
				if err := database.Migrate(t.Context(), url); err != nil {
					t.Fatal(err)
				}
				execute(t, url, tc.sql)
			}
			db, err := database.Open(t.Context(), url+tc.more)
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestMigrateRefuses(t *testing.T) {
	c := pgtest.Shared(t)
	newer := c.Database(t)
	if err := database.Migrate(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	execute(t, newer, `UPDATE roost.schema_version SET version = 1000`)
	if err := database.Migrate(t.Context(), newer); !errors.Is(err, database.ErrNewerSchema) {
		t.Errorf("got %v, want ErrNewerSchema", err)
	}
	if err := database.Migrate(t.Context(), c.Database(t)+"&default_transaction_read_only=on"); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
}

// Many servers that start at once migrate once.
func TestMigrateAtOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	errs := make(chan error)
	for range 8 {
		go func() { errs <- database.Migrate(t.Context(), url) }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	open(t, url)
}

// A migration that is killed at any moment leaves nothing or everything.
func TestMigrateIsKilled(t *testing.T) {
	c := pgtest.Shared(t)
	half := 0
	for i := range 12 {
		url := c.Database(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*3)*time.Millisecond)
		err := database.Migrate(ctx, url)
		cancel()
		if err != nil {
			half++
		}
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		// A statement that the broken connection left behind may still end.
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var busy int
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&busy); err != nil {
				t.Fatal(err)
			}
			if busy == 0 || time.Now().After(end) {
				break
			}
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		tables := count(t, url)
		open(t, url)
		if all := count(t, url); tables != 0 && tables != all {
			t.Errorf("after %d ms: got %d tables, want none or all %d", 1+i*3, tables, all)
		}
	}
	if half == 0 {
		t.Error("no migration was interrupted")
	}
}

// The lines of commits are compressed with lz4, where the server has it.
func TestLinesAreCompressedFast(t *testing.T) {
	db := open(t, pgtest.Shared(t).Database(t))
	var able bool
	if err := db.QueryRow(t.Context(), `SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'`).Scan(&able); err != nil {
		t.Fatal(err)
	}
	if !able {
		t.Skip("this PostgreSQL was built without lz4")
	}
	_, err := db.Exec(t.Context(), `INSERT INTO roost.commits (journal, seq, line) SELECT i, 1, convert_to(repeat('a line ', 1000), 'UTF8') FROM generate_series(1, 200) i`)
	if err != nil {
		t.Fatal(err)
	}
	var n, parts int
	if err := db.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT tableoid) FROM roost.commits WHERE pg_column_compression(line) = 'lz4'`).Scan(&n, &parts); err != nil {
		t.Fatal(err)
	}
	if n != 200 || parts != 16 {
		t.Errorf("got %d lines of %d partitions that are compressed with lz4, want 200 of 16", n, parts)
	}
}
