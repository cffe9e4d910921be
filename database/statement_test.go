package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// single is a database with one connection.
func single(t *testing.T) *database.DB {
	t.Helper()
	return open(t, pgtest.Shared(t).Database(t)+"&pool_max_conns=1")
}

// equal fails the test unless a value comes back from the server as it went there.
func equal[T any](t *testing.T, db *database.DB, kind string, v T) {
	t.Helper()
	var got T
	if err := db.QueryRow(t.Context(), `SELECT $1::`+kind, v).Scan(&got); err != nil || !cmp.Equal(got, v) {
		t.Errorf("%s: got %#v, %v, want %#v", kind, got, err, v)
	}
}

// Each type that package value knows, as the server understands it.
func TestTypesOfTheServer(t *testing.T) {
	db := single(t)
	hard := "a\"b\\c{d},e\nNULL 'ü'\t"
	equal(t, db, "text", hard)
	equal(t, db, "bytea", []byte{0, 1, 255, '\\'})
	equal(t, db, "bytea", []byte(nil))
	equal(t, db, "boolean", true)
	equal(t, db, "smallint", int16(-32768))
	equal(t, db, "integer", int32(-2147483648))
	equal(t, db, "bigint", int64(-9223372036854775808))
	equal(t, db, "bigint", uint64(9223372036854775807))
	equal(t, db, "oid", uint32(4294967295))
	equal(t, db, "uuid", "12345678-9abc-4def-8123-456789abcdef")
	equal(t, db, "timestamptz", time.Date(2026, 11, 29, 1, 2, 3, 456_789_000, time.UTC))
	equal(t, db, "timestamptz", time.Date(1969, 11, 29, 1, 2, 3, 1000, time.UTC))
	equal(t, db, "timestamptz", (*time.Time)(nil))
	equal(t, db, "interval", -(26*time.Hour + time.Microsecond))
	equal(t, db, "text[]", []string{hard, "", "NULL", "{}"})
	equal(t, db, "text[]", []string{})
	equal(t, db, "text[]", []string(nil))
	equal(t, db, "integer[]", []int32{1, -2})
	equal(t, db, "bigint[]", []int64{9223372036854775807, -1})
	equal(t, db, "boolean[]", []bool{true, false})
	equal(t, db, "bytea[]", [][]byte{{0, 255}, {}, []byte(hard)})
	equal(t, db, "bytea[]", [][]byte{})
	var thousandths int64
	err := db.QueryRow(t.Context(), `SELECT ($1::double precision * 1000)::bigint`, 1764412345.125).Scan(&thousandths)
	if err != nil || thousandths != 1764412345125 {
		t.Errorf("double precision: got %d thousandths, %v, want 1764412345125", thousandths, err)
	}
	var null bool
	if err := db.QueryRow(t.Context(), `SELECT ($1::bytea[])[2] IS NULL`, [][]byte{{1}, nil}).Scan(&null); err != nil || !null {
		t.Errorf("nil in a list of bytes: got NULL %v, %v", null, err)
	}
}

// Whatever goes wrong with a statement, the next one finds the connection as it should be.
func TestErrorsLeaveTheConnection(t *testing.T) {
	db := single(t)
	ctx := t.Context()
	stop := errors.New("enough")
	var n int
	exec := func(sql string, args ...any) error { _, err := db.Exec(ctx, sql, args...); return err }
	for name, tc := range map[string]struct {
		do   func() error
		want string
	}{
		"syntax":                 {func() error { return exec(`SELEC 1`) }, "syntax error"},
		"syntax with parameters": {func() error { return exec(`SELEC $1`, 1) }, "syntax error"},
		"unknown type":           {func() error { return exec(`SELECT $1`, struct{}{}) }, "parameter $1: the type struct {} has no counterpart"},
		"an error in a row":      {func() error { return exec(`SELECT 1 / (n - $1) FROM generate_series(1, 5) n`, 3) }, "division by zero"},
		"no row":                 {func() error { return db.QueryRow(ctx, `SELECT 1 WHERE $1`, false).Scan(&n) }, "no row"},
		"a row too many":         {func() error { return db.QueryRow(ctx, `SELECT generate_series(1, $1)`, 100_000).Scan(&n) }, ""},
		"too few columns":        {func() error { return db.QueryRow(ctx, `SELECT 1, $1`, 2).Scan(&n) }, "returns 2 columns, and 1 are read"},
		"another type":           {func() error { return db.QueryRow(ctx, `SELECT $1::text`, "x").Scan(&n) }, "the types do not match"},
		"an error after the row": {func() error {
			return db.QueryRow(ctx, `SELECT 1 / (n - $1) FROM generate_series(1, 5) n`, 3).Scan(&n)
		}, "division by zero"},
		"a row that cannot be read": {func() error {
			return db.Query(ctx, `SELECT nullif(n, $1) FROM generate_series(1, 100000) n`, 3).Each([]any{&n}, func() error { return nil })
		}, "it is NULL"},
		"a reader that stops": {func() error {
			return db.Query(ctx, `SELECT generate_series(1, $1)`, 100_000).Each([]any{&n}, func() error { return stop })
		}, "enough"},
		"a collector that stops": {func() error {
			_, err := database.Collect(db.Query(ctx, `SELECT generate_series(1, $1)`, 100_000), func(database.Scanner) (int, error) { return 0, stop })
			return err
		}, "enough"},
		"a batch": {func() error {
			var b database.Batch
			b.Queue(`SELECT 1 / $1::integer`, 1)
			b.Queue(`SELECT 1 / $1::integer`, 0)
			b.Queue(`SELECT 1 / $1::integer`, 1)
			return db.SendBatch(ctx, &b)
		}, "division by zero"},
		"a batch with a reader that stops": {func() error {
			var b database.Batch
			b.QueueEach([]any{&n}, func() error { return stop }, `SELECT generate_series(1, $1)`, 1000)
			b.Queue(`SELECT $1::integer`, 1)
			return db.SendBatch(ctx, &b)
		}, "enough"},
		"a batch without statements": {func() error { return db.SendBatch(ctx, new(database.Batch)) }, ""},
		"a transaction":              {func() error { return db.Transaction(ctx, func(*database.Tx) error { return stop }) }, "enough"},
		"an error in a transaction that is ignored": {func() error {
			return db.Transaction(ctx, func(tx *database.Tx) error {
				_, _ = tx.Exec(ctx, `SELECT 1 / $1::integer`, 0)
				return nil
			})
		}, "rolled the transaction back"},
		"rows of a transaction that stay open": {func() error {
			return db.Transaction(ctx, func(tx *database.Tx) error {
				tx.Query(ctx, `SELECT generate_series(1, $1)`, 1000)
				return stop
			})
		}, "enough"},
		"a transaction whose context ends": {func() error {
			short, cancel := context.WithCancel(ctx)
			return db.Transaction(short, func(*database.Tx) error {
				cancel()
				return stop
			})
		}, "enough"},
		"a reader that panics": {func() (err error) {
			defer func() { err = recover().(error) }()
			var b database.Batch
			b.QueueEach([]any{&n}, func() error { panic(stop) }, `SELECT generate_series(1, $1)`, 1000)
			return db.SendBatch(ctx, &b)
		}, "enough"},
		"a context that ends": {func() error {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err := db.Exec(short, `SELECT pg_sleep($1)`, 1.0)
			return err
		}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				if err := tc.do(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Fatalf("got the error %v, want %q", err, tc.want)
				}
			}
			limited, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			var seven, eight int
			err := db.QueryRow(limited, `SELECT $1::integer, $1::integer + 1`, 7).Scan(&seven, &eight)
			if err != nil || seven != 7 || eight != 8 {
				t.Errorf("the next statement: got %d and %d, %v, want 7 and 8", seven, eight, err)
			}
		})
	}
}

// A transaction and a batch change all or nothing.
func TestAllOrNothing(t *testing.T) {
	db := single(t)
	ctx := t.Context()
	fixture.Must[int64](t)(db.Exec(ctx, `CREATE TABLE numbers (n integer PRIMARY KEY); CREATE TABLE others (n integer)`))
	numbers := func() []int {
		t.Helper()
		return fixture.Must[[]int](t)(database.Column[int](db.Query(ctx, `SELECT n FROM numbers ORDER BY n`)))
	}
	stop := errors.New("enough")
	for name, do := range map[string]func() error{
		"transaction": func() error {
			return db.Transaction(ctx, func(tx *database.Tx) error {
				fixture.Must[int64](t)(tx.Exec(ctx, `INSERT INTO numbers VALUES ($1)`, 1))
				return stop
			})
		},
		"batch": func() error {
			var b database.Batch
			b.Queue(`INSERT INTO numbers VALUES ($1)`, 1)
			b.Queue(`INSERT INTO numbers VALUES ($1)`, 1)
			return db.SendBatch(ctx, &b)
		},
		"batch in a transaction": func() error {
			return db.Transaction(ctx, func(tx *database.Tx) error {
				var b database.Batch
				b.Queue(`INSERT INTO numbers VALUES ($1)`, 1)
				if err := tx.SendBatch(ctx, &b); err != nil {
					t.Error(err)
				}
				return stop
			})
		},
		"several statements": func() error {
			_, err := db.Exec(ctx, `INSERT INTO numbers VALUES (1); INSERT INTO numbers VALUES (1)`)
			return err
		},
	} {
		if err := do(); err == nil || len(numbers()) != 0 {
			t.Errorf("%s: got %v and %v, want an error and no number", name, err, numbers())
		}
	}
	n, err := db.Exec(ctx, `INSERT INTO numbers SELECT generate_series(1, $1)`, 3)
	if err != nil || n != 3 {
		t.Errorf("got %d rows, %v, want 3", n, err)
	}
	tx, end, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	_, err = tx.Exec(ctx, `DELETE FROM numbers WHERE n > $1`, 1)
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "25006" {
		t.Errorf("a write in a snapshot: got %v, want that it is refused", err)
	}
	end()
	if got := numbers(); !cmp.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v, want 1 to 3", got)
	}
}

// A migration of a newer program can change what a statement returns that a connection keeps prepared.
func TestStatementWhoseColumnsChange(t *testing.T) {
	db := single(t)
	ctx := t.Context()
	fixture.Must[int64](t)(db.Exec(ctx, `CREATE TABLE changing (n integer); INSERT INTO changing VALUES (5)`))
	read := func() (n int, err error) {
		return n, db.QueryRow(ctx, `SELECT n FROM changing WHERE n = $1`, 5).Scan(&n)
	}
	if n, err := read(); n != 5 || err != nil {
		t.Fatalf("got %d, %v, want 5", n, err)
	}
	fixture.Must[int64](t)(db.Exec(ctx, `ALTER TABLE changing ALTER n TYPE bigint`))
	_, _ = read() // the server refuses it once
	if n, err := read(); n != 5 || err != nil {
		t.Errorf("after the change: got %d, %v, want 5", n, err)
	}
	fixture.Must[int64](t)(db.Exec(ctx, `DEALLOCATE ALL`))
	_, _ = read()
	if n, err := read(); n != 5 || err != nil {
		t.Errorf("after the server forgot it: got %d, %v, want 5", n, err)
	}
}

// A connection keeps up to a number of statements prepared, and executes others all the same.
func TestManyStatements(t *testing.T) {
	db := single(t)
	for i := range 600 {
		var n int
		if err := db.QueryRow(t.Context(), fmt.Sprintf(`SELECT %d + $1::integer`, i), 1).Scan(&n); err != nil || n != i+1 {
			t.Fatalf("statement %d: got %d, %v", i, n, err)
		}
	}
	var kept int
	err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE $1`, true).Scan(&kept)
	if err != nil || kept != 500 {
		t.Errorf("got %d prepared statements, %v, want 500", kept, err)
	}
}

// The pool replaces a connection that the server has closed while it was idle, so the next statement does not fail.
func TestCutConnections(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db, other := open(t, url+"&pool_max_conns=3"), open(t, url)
	ctx := t.Context()
	var open []func()
	for range 3 {
		_, end, err := db.Snapshot(ctx)
		fixture.NoError(t, err)
		open = append(open, end)
	}
	for _, end := range open {
		end()
	}
	cut := func() {
		t.Helper()
		fixture.Must[int64](t)(other.Exec(ctx, `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND $1`, true))
	}
	cut()
	time.Sleep(1100 * time.Millisecond) // a connection is asked after a second
	if err := db.Ping(ctx); err != nil {
		t.Errorf("got %v, want a new connection", err)
	}
}

func TestAddressOfThePool(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	for most, want := range map[string]string{"7": "", "0": "pool_max_conns=0", "x": "pool_max_conns=x"} {
		fixture.NoError(t, database.Migrate(t.Context(), url))
		db, err := database.Open(t.Context(), url+"&pool_max_conns="+most)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %s", most, err, want)
			}
			continue
		}
		fixture.NoError(t, err)
		defer db.Close()
		if got := db.MaxConns(); got != 7 {
			t.Errorf("got %d connections, want 7", got)
		}
	}
}

// A context that ends while all connections are in use ends the wait.
func TestNoFreeConnection(t *testing.T) {
	db := single(t)
	_, end, err := db.Snapshot(t.Context())
	fixture.NoError(t, err)
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var b database.Batch
	for name, do := range map[string]func() error{
		"exec":        func() error { _, err := db.Exec(ctx, `SELECT 1`); return err },
		"row":         func() error { return db.QueryRow(ctx, `SELECT 1`).Scan() },
		"rows":        func() error { return db.Query(ctx, `SELECT 1`).Each(nil, func() error { return nil }) },
		"batch":       func() error { return db.SendBatch(ctx, &b) },
		"transaction": func() error { return db.Transaction(ctx, func(*database.Tx) error { return nil }) },
		"snapshot":    func() error { _, _, err := db.Snapshot(ctx); return err },
		"ping":        func() error { return db.Ping(ctx) },
	} {
		if err := do(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want that the context ended", name, err)
		}
	}
}

func TestListen(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	db := open(t, url)
	ctx := t.Context()
	l, err := db.Listen(ctx, "news")
	fixture.NoError(t, err)
	defer l.Close(ctx)
	fixture.Must[int64](t)(db.Exec(ctx, `SELECT pg_notify($1, n::text) FROM generate_series(1, 3) n`, "news"))
	for _, want := range []string{"1", "2", "3"} {
		if got, err := l.Next(ctx); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := l.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the context ended", err)
	}
}
