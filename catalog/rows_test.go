package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"pgregory.net/rapid"
)

const testBuild = 1<<63 + 7

func keepRows(t testing.TB, db *DB, changes ...Change) {
	t.Helper()
	fixture.NoError(t, db.Keep(t.Context(), testBuild, changes, 0, patience))
}

// rowsOf are the rows of a catalogue, with everything, by source.
func rowsOf(t testing.TB, db *DB) map[string][]Row {
	t.Helper()
	list, err := db.Rows(t.Context(), testBuild, Summaries)
	fixture.NoError(t, err)
	out := map[string][]Row{}
	for _, s := range list {
		out[s.Name] = s.Rows
	}
	return out
}

// A file that was changed or cut anywhere gives rows as they were written, or none, or
// an error that says that it is damaged: never another row.
func TestDamagedRowsAreNeverWrongOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and much data: the race detector finds nothing here and takes long")
	}
	dir := t.TempDir()
	db := opened(t, dir)
	want := map[string]Row{}
	ch := Change{Source: Source{Name: "s", Path: "/p"}}
	for i := range 40 {
		row := Row{
			ID: fmt.Sprint("task-", i), Known: true, Digest: uint64(i), Files: "ui.json", Model: "model", Tags: []string{"x"},
			Title: fmt.Sprint("title ", i), Summary: []byte(strings.Repeat("s", i*40+1)),
		}
		want[row.ID] = row
		ch.Put = append(ch.Put, &row)
	}
	keepRows(t, db, ch)
	fixture.NoError(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, Name))
	fixture.NoError(t, err)
	seen := 0
	rapid.Check(t, func(r *rapid.T) {
		bad := append([]byte{}, whole...)
		at := rapid.IntRange(0, len(bad)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "cut") {
			bad = bad[:at]
		} else {
			bad[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		}
		dir := t.TempDir()
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, Name), bad, 0o600))
		db, err := Open(t.Context(), dir)
		fixture.NoError(t, err)
		defer db.Close()
		list, err := db.Rows(t.Context(), testBuild, Summaries)
		if err != nil && !Damaged(err) {
			r.Fatalf("this would not be set aside: %v", err)
		}
		for _, s := range list {
			for _, row := range s.Rows {
				seen++
				if diff := cmp.Diff(want[row.ID], row, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Row{}, "TitleSum")); diff != "" {
					r.Fatalf("-written +read\n%s", diff)
				}
			}
		}
	})
	if seen == 0 {
		t.Error("no row was read from any damaged file")
	}
}

// A writer that waits for no other one gives up at once; readers do not wait at all.
func TestKeepDoesNotWaitForAnotherWriter(t *testing.T) {
	dir := t.TempDir()
	db, other := opened(t, dir), opened(t, dir)
	ch := Change{Source: Source{Name: "s"}, Put: []*Row{{ID: "a", Known: true, Summary: []byte("{}")}}}
	keepRows(t, db, ch)
	c, err := other.sql.Conn(t.Context())
	fixture.NoError(t, err)
	defer c.Close()
	_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	fixture.NoError(t, err)
	begun := time.Now()
	if err := db.Keep(t.Context(), testBuild, []Change{ch}, 0, 10*time.Millisecond); err == nil || Damaged(err) {
		t.Errorf("kept beside another writer: %v", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it waited %v", took)
	}
	if got := rowsOf(t, db)["s"]; len(got) != 1 {
		t.Errorf("got %d rows beside a writer, want 1", len(got))
	}
	rollback(t.Context(), c)
}
