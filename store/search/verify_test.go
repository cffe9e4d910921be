package search

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// Texts of the catalogue that differ from the folders are found by their task, and are right after a rebuild.
func TestVerifyFindsWrongTexts(t *testing.T) {
	mismatches := func(s *store.Store) []store.Mismatch { return Verify(t.Context(), s) }
	s := searching(t, filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache"))
	for _, id := range []string{"one", "two"} {
		k := storetest.Create(t, s, id)
		storetest.Commit(t, k, task.API, storetest.APIRow(3, "user", "hello "+id))
		storetest.Close(t, k)
	}
	storetest.Check(t, waitUntilCalm(t.Context(), s))
	search1(t, s, api.SearchQuery{Text: "hello"})
	storetest.List(t, s, store.Filter{})
	if found := mismatches(s); len(found) > 0 {
		t.Fatalf("before: got %+v, want none", found)
	}
	catalogLies(t, s, "two")
	found := mismatches(s)
	const problem = "its text differs from its folder"
	if len(found) != 1 || found[0].ID != "two" || found[0].Problem != problem || found[0].Stale || found[0].Unrepairable {
		t.Fatalf("got %+v, want %q of two", found, problem)
	}
	storetest.Check(t, Rebuild(t.Context(), s, true))
	if found := mismatches(s); len(found) > 0 {
		t.Errorf("after the rebuild: got %+v, want none", found)
	}
}

// catalogLies puts a wrong text under a right stamp.
func catalogLies(t *testing.T, s *store.Store, id string) {
	t.Helper()
	ctx := context.Background()
	ref := storetest.Must[store.Ref](t)(s.Find(ctx, id))
	db := storetest.Must[*catalog.DB](t)(catalog.Open(ctx, s.CacheDir()))
	snap := storetest.Must[*catalog.Snapshot](t)(db.Snapshot(ctx))
	row := storetest.Must[map[string]catalog.Task](t)(snap.Tasks(ctx))[catalogKey(ref)]
	snap.Close()
	var b catalog.Builder
	v := storetest.Must[*store.View](t)(s.ReadUnlabelled(ctx, ref))
	for m, err := range texts(ctx, v.State) {
		storetest.Check(t, err)
		m.Pieces[0].Text += "!"
		b.Add(m)
	}
	storetest.Check(t, v.Close())
	storetest.Check(t, db.Put(ctx, []catalog.Entry{b.Entry(catalogKey(ref), row.Stamp)}))
	storetest.Check(t, db.Close())
}
