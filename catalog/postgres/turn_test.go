package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A writer that does not wait for another one gives up at once; readers do not wait at all, and writers of texts do not
// wait for writers of rows.
func TestWritersTakeTurns(t *testing.T) {
	url := migrated(t)
	other, db := fixture.Must[*pgx.Conn](t)(pgx.Connect(t.Context(), url)), postgres.Open(connect(t, url))
	keep := func(wait time.Duration) error {
		ch := catalog.Change{Source: catalog.Source{Name: "s"}, Put: []*catalog.Row{{ID: "a", Known: true, Summary: []byte("{}")}}}
		return db.Keep(t.Context(), 1, []catalog.Change{ch}, 0, wait)
	}
	fixture.NoError(t, keep(time.Minute))
	tx, err := other.Begin(t.Context())
	fixture.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // it has ended
	_, err = tx.Exec(t.Context(), "UPDATE roost.catalog_turns SET turns = turns + 1 WHERE name = 'rows'")
	fixture.NoError(t, err)
	if err := keep(10 * time.Millisecond); err == nil || catalog.Damaged(err) {
		t.Errorf("kept beside another writer: got %v, want that it is busy", err)
	}
	if got, err := db.Rows(t.Context(), 1, catalog.Bare); err != nil || len(got) != 1 || len(got[0].Rows) != 1 {
		t.Errorf("beside a writer: got %+v, %v, want one row", got, err)
	}
	fixture.NoError(t, db.Put(t.Context(), []catalog.Entry{new(catalog.Builder).Entry("a", "stamp")}))
	fixture.NoError(t, tx.Rollback(t.Context()))
	fixture.NoError(t, keep(time.Minute))
}

// Two builds of a program keep rows of one source, and neither reads or removes those of the other.
func TestBuildsKeepApart(t *testing.T) {
	db := postgres.Open(connect(t, migrated(t)))
	for build := range uint64(2) {
		ch := catalog.Change{Source: catalog.Source{Name: "s"}, Reset: true}
		for i := range 2 + build {
			ch.Put = append(ch.Put, &catalog.Row{ID: string(rune('a' + i)), Known: true, Summary: []byte{byte(build)}})
		}
		fixture.NoError(t, db.Keep(t.Context(), build, []catalog.Change{ch}, 0, time.Minute))
	}
	for build := range uint64(2) {
		if got, err := db.Rows(t.Context(), build, catalog.Summaries); err != nil || len(got) != 1 || len(got[0].Rows) != 2+int(build) {
			t.Errorf("build %d: got %+v, %v, want %d rows", build, got, err, 2+build)
		}
		got, err := db.Rows(t.Context(), build, catalog.Titles)
		fixture.NoError(t, err)
		row := &got[0].Rows[0]
		fixture.NoError(t, db.Summaries(t.Context(), build, "s", []*catalog.Row{row}))
		if len(row.Summary) != 1 || row.Summary[0] != byte(build) {
			t.Errorf("build %d: got the summary %v, want its own", build, row.Summary)
		}
	}
}
