package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func (db *DB) count(t testing.TB, query string) (n int) {
	t.Helper()
	fixture.NoError(t, db.sql.QueryRowContext(context.Background(), query).Scan(&n))
	return n
}

// A disk that is full loses what was to be written, and nothing that was there.
func TestFullDisk(t *testing.T) {
	ctx, db := context.Background(), opened(t, t.TempDir())
	db.sql.SetMaxOpenConns(1)
	put(t, db, "old", "the first words")
	pages := db.count(t, "PRAGMA page_count")
	db.count(t, fmt.Sprintf("PRAGMA max_page_count = %d", pages+2))
	var b Builder
	for i := range 300 {
		b.Add(said(i+1, strings.Repeat(fmt.Sprintf("many other words %d ", i*i), 200)))
	}
	err := db.Put(ctx, []Entry{entry("old", "the second words"), b.Entry("new", "")})
	var e *sqlite.Error
	if !errors.As(err, &e) || e.Code() != sqlite3.SQLITE_FULL || Damaged(err) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(map[string]bool{"old#1": true}, found(t, db, "first")); diff != "" {
		t.Error(diff)
	}
	if got := found(t, db, "second"); len(got) > 0 {
		t.Errorf("half of what did not fit is there: %v", got)
	}
	db.count(t, fmt.Sprintf("PRAGMA max_page_count = %d", 1<<20))
	put(t, db, "old", "the third words")
	if len(found(t, db, "third")) != 1 {
		t.Error("it does not go on when there is room")
	}
}

// An index that names parts which are not there is reported as damage.
func TestPartsThatAreMissing(t *testing.T) {
	for _, sql := range []string{
		"DROP TRIGGER part_gone; DELETE FROM part", "DELETE FROM body", "UPDATE body SET text = x'00'",
		"UPDATE vocabulary SET words = x'ff'", "DELETE FROM feature_data WHERE id > 10", "UPDATE feature_data SET block = x'7f01' WHERE id > 10",
	} {
		ctx, dir := context.Background(), t.TempDir()
		db := opened(t, dir)
		put(t, db, "a", "some words")
		_, err := db.sql.ExecContext(ctx, sql)
		fixture.NoError(t, err)
		if err := db.look(ctx); !Damaged(err) {
			t.Errorf("%s: error %v", sql, err)
		}
		fixture.NoError(t, db.SetAside())
		if _, err := os.Stat(filepath.Join(dir, Name+".damaged")); err != nil {
			t.Error(err)
		}
	}
}
