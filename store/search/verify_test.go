package search

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Rows and texts of the catalogue that differ from the folders are found by their task, and are right after a rebuild.
func TestVerifyFindsWrongRows(t *testing.T) {
	verify := func(s *store.Store) *Check {
		return Verify(t.Context(), s, storetest.Must[[]store.Ref](t)(s.Refs(t.Context())))
	}
	mismatches := func(s *store.Store) []store.Mismatch {
		c := verify(s)
		defer c.Close()
		return c.Mismatches
	}
	for _, c := range []struct {
		name    string
		text    bool
		id      string
		problem string
	}{
		{"a row", false, "one", "its row differs from its folder"},
		{"a text", true, "two", "its text differs from its folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := searching(t, filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache"))
			for _, id := range []string{"one", "two"} {
				k := storetest.Create(t, s, id)
				storetest.Commit(t, k, task.API, storetest.APIRow(3, "user", "hello "+id))
				storetest.Close(t, k)
			}
			storetest.Check(t, waitUntilCalm(t.Context(), s))
			search1(t, s, Query{Text: "hello"})
			storetest.List(t, s, store.Filter{})
			if found := mismatches(s); len(found) > 0 {
				t.Fatalf("before: got %+v, want none", found)
			}
			catalogLies(t, s, c.id, c.text)
			found := mismatches(s)
			if len(found) != 1 || found[0].ID != c.id || found[0].Problem != c.problem || found[0].Stale || found[0].Unrepairable {
				t.Fatalf("got %+v, want %q of %s", found, c.problem, c.id)
			}
			storetest.Check(t, verify(s).Rebuild(t.Context(), s))
			if found := mismatches(s); len(found) > 0 {
				t.Errorf("after the rebuild: got %+v, want none", found)
			}
		})
	}
}

// catalogLies puts a wrong row, or a right row with wrong text, under a right stamp.
func catalogLies(t *testing.T, s *store.Store, id string, text bool) {
	t.Helper()
	ctx := context.Background()
	ref := storetest.Must[store.Ref](t)(s.Find(ctx, id))
	db := storetest.Must[*catalog.DB](t)(catalog.Open(ctx, s.CacheDir()))
	snap := storetest.Must[*catalog.Snapshot](t)(db.Snapshot(ctx))
	row := storetest.Must[map[string]catalog.Task](t)(snap.Tasks(ctx))[catalogKey(ref)]
	raw := storetest.Must[[]byte](t)(snap.Summary(ctx, row.ID))
	snap.Close()
	var b catalog.Builder
	v := storetest.Must[*store.View](t)(s.ReadUnlabelled(ctx, ref))
	for m, err := range texts(ctx, v.State) {
		storetest.Check(t, err)
		if text {
			m.Pieces[0].Text += "!"
		}
		b.Add(m)
	}
	storetest.Check(t, v.Close())
	if !text {
		raw = []byte(strings.Replace(string(raw), "T "+id, "T lie", 1))
	}
	storetest.Check(t, db.Put(ctx, []catalog.Entry{b.Entry(catalogKey(ref), row.Stamp, row.TS, raw)}))
	storetest.Check(t, db.Close())
}
