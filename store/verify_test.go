package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/task"
)

// Rows and texts of derived data that differ from the folders are found by their task, and are right after a rebuild.
func TestVerifyFindsWrongDerivedRows(t *testing.T) {
	catalogMismatches := func(s *Store) []Mismatch {
		c := s.VerifyCatalog(t.Context(), must[[]Ref](t)(s.Refs(t.Context())))
		defer c.Close()
		return c.Mismatches
	}
	rebuildCatalog := func(s *Store) error {
		return s.RebuildCatalog(t.Context(), s.VerifyCatalog(t.Context(), must[[]Ref](t)(s.Refs(t.Context()))))
	}
	for _, c := range []struct {
		name    string
		spoil   func(s *Store)
		verify  func(s *Store) []Mismatch
		rebuild func(s *Store) error
		id      string
		problem string
	}{
		{
			"a row of the catalogue", func(s *Store) { catalogLies(t, s, "one", false) }, catalogMismatches, rebuildCatalog,
			"one", "its row differs from its folder",
		},
		{
			"a text of the catalogue", func(s *Store) { catalogLies(t, s, "two", true) }, catalogMismatches, rebuildCatalog,
			"two", "its text differs from its folder",
		},
		{
			"a row of the list", func(s *Store) { listLies(t, s) }, func(s *Store) []Mismatch { return s.VerifyRows(t.Context()) },
			func(s *Store) error { return s.RebuildRows(t.Context()) }, "one", "the list differs from its folder",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := searching(t, filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache"))
			for _, id := range []string{"one", "two"} {
				k := create(t, s, id)
				commit(t, k, task.API, apiRow(3, "user", "hello "+id))
				closeTask(t, k)
			}
			check(t, s.waitUntilCalm(t.Context()))
			search1(t, s, SearchQuery{Text: "hello"})
			listing(t, s, Filter{})
			if found := c.verify(s); len(found) > 0 {
				t.Fatalf("before: got %+v, want none", found)
			}
			c.spoil(s)
			found := c.verify(s)
			if len(found) != 1 || found[0].ID != c.id || found[0].Problem != c.problem || found[0].Stale || found[0].Unrepairable {
				t.Fatalf("got %+v, want %q of %s", found, c.problem, c.id)
			}
			check(t, c.rebuild(s))
			if found := c.verify(s); len(found) > 0 {
				t.Errorf("after the rebuild: got %+v, want none", found)
			}
		})
	}
}

// listLies changes the title that the list keeps of a task.
func listLies(t *testing.T, s *Store) {
	t.Helper()
	known, done := s.openListCache(context.Background(), catalog.ReadSummaries), false
	for _, src := range known.known() {
		ch := catalog.Change{Source: src.Source}
		for i := range src.Rows {
			if row := &src.Rows[i]; row.ID == "one" {
				row.Title, done = "T lie", true
				row.Summary = []byte(strings.Replace(string(row.Summary), "T one", "T lie", 1))
				ch.Put = append(ch.Put, row)
			}
		}
		check(t, known.db.Keep(context.Background(), known.build, []catalog.Change{ch}, 0, time.Second))
	}
	known.close()
	for _, sum := range must[Listing](t)(s.List(context.Background(), Filter{})).Items {
		if sum.ID == "one" && (!done || sum.Title != "T lie") {
			t.Fatalf("the list does not believe it: %q", sum.Title)
		}
	}
}

// catalogLies puts a wrong row, or a right row with wrong text, under a right stamp.
func catalogLies(t *testing.T, s *Store, id string, text bool) {
	t.Helper()
	ctx := context.Background()
	ref := must[Ref](t)(s.Find(ctx, id))
	db := must[*catalog.DB](t)(catalog.Open(ctx, s.opt.Cache))
	snap := must[*catalog.Snapshot](t)(db.Snapshot(ctx))
	row := must[map[string]catalog.Task](t)(snap.Tasks(ctx))[catalogKey(ref)]
	raw := must[[]byte](t)(snap.Summary(ctx, row.ID))
	snap.Close()
	var b catalog.Builder
	v := must[*View](t)(s.read(ctx, ref, false))
	for m, err := range texts(ctx, v.State) {
		check(t, err)
		if text {
			m.Pieces[0].Text += "!"
		}
		b.Add(m)
	}
	check(t, v.Close())
	if !text {
		raw = []byte(strings.Replace(string(raw), "T "+id, "T lie", 1))
	}
	check(t, db.Put(ctx, []catalog.Entry{b.Entry(catalogKey(ref), row.Stamp, row.TS, raw)}))
	check(t, db.Close())
}
