package database

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// A database of each older version, with a journal and a payload in it, is brought to the newest: its tables are those of
// a new database, and what they held is there.
func TestMigrateFromEachVersion(t *testing.T) {
	c := pgtest.Shared(t)
	connect := func(url string) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	fresh := c.Database(t)
	if err := Migrate(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	want := structure(t, connect(fresh))
	if len(want) < 50 {
		t.Fatalf("got %d columns and indexes in a new database, want more than 50", len(want))
	}
	for from := 1; from < len(migrations); from++ {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			url := c.Database(t)
			conn := connect(url)
			if err := migrate(t.Context(), plain(t, url), from); err != nil {
				t.Fatal(err)
			}
			line, payload := bytes.Repeat([]byte("a line "), 1000), bytes.Repeat([]byte{0, 1, 255}, 1000)
			for _, q := range []struct {
				sql  string
				args []any
			}{
				{`INSERT INTO roost.journals (name, epoch, head) VALUES ('task', 1, 1)`, nil},
				{`INSERT INTO roost.commits SELECT id, 1, $1 FROM roost.journals`, []any{line}},
				{`INSERT INTO roost.contents (hash, size) VALUES ('\x01', $1)`, []any{len(payload)}},
				{`INSERT INTO roost.chunks (hash, n, data) VALUES ('\x01', 0, $1)`, []any{payload}},
				{`INSERT INTO roost.blobs (journal, hash) SELECT id, '\x01' FROM roost.journals`, nil},
			} {
				if _, err := conn.Exec(t.Context(), q.sql, q.args...); err != nil {
					t.Fatalf("%s: %v", q.sql, err)
				}
			}

			if err := Migrate(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			if got := structure(t, conn); !slices.Equal(got, want) {
				t.Errorf("the tables differ from those of a new database:\ngot  %q\nwant %q", minus(got, want), minus(want, got))
			}
			var head, stored int64
			var gotLine, gotPayload []byte
			err := conn.QueryRow(t.Context(), `SELECT j.head, c.line, k.data, n.stored FROM roost.journals j
				JOIN roost.commits c ON c.journal = j.id AND c.seq = 1 JOIN roost.blobs b ON b.journal = j.id
				JOIN roost.chunks k USING (hash) JOIN roost.contents n USING (hash) WHERE j.name = 'task'`).Scan(&head, &gotLine, &gotPayload, &stored)
			if err != nil {
				t.Fatal(err)
			}
			if head != 1 || !bytes.Equal(gotLine, line) || !bytes.Equal(gotPayload, payload) {
				t.Errorf("got head %d, a line of %d bytes and a payload of %d, want what was put in", head, len(gotLine), len(gotPayload))
			}
			if want := int64(len(payload)); from < 4 && stored != want { // the column came with version 4
				t.Errorf("got %d bytes stored of the payload, want its size %d", stored, want)
			}
			db, err := Open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
		})
	}
}

// structure is a line for each column, constraint and index of Roost's tables.
func structure(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
SELECT format('%s.%s %s not null %s default %s storage %s compression %s options %s', r.relname, a.attname, format_type(a.atttypid, a.atttypmod),
	a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attstorage, a.attcompression, r.reloptions)
FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
WHERE r.relnamespace = 'roost'::regnamespace AND r.relkind IN ('r', 'p')
UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'roost'::regnamespace
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'roost'
ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// plain is a connection of this package.
func plain(t *testing.T, url string) *conn {
	t.Helper()
	at, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := connect(t.Context(), at.config, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}
