package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

// Kept rows of the list that differ from the folders are found by their task, and are right after a rebuild.
func TestVerifyFindsWrongRows(t *testing.T) {
	s := searching(t, filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache"))
	for _, id := range []string{"one", "two"} {
		k := create(t, s, id)
		commit(t, k, task.API, apiRow(3, "user", "hello "+id))
		closeTask(t, k)
	}
	waitForCalm()
	listing(t, s, Filter{})
	if found := s.VerifyRows(t.Context()); len(found) > 0 {
		t.Fatalf("before: got %+v, want none", found)
	}
	listLies(t, s)
	found := s.VerifyRows(t.Context())
	if len(found) != 1 || found[0].ID != "one" || found[0].Problem != "the list differs from its folder" ||
		found[0].Stale || found[0].Unrepairable {
		t.Fatalf("got %+v, want the wrong row of one", found)
	}
	fixture.NoError(t, s.RebuildRows(t.Context()))
	if found := s.VerifyRows(t.Context()); len(found) > 0 {
		t.Errorf("after the rebuild: got %+v, want none", found)
	}
}

// listLies changes the title that the list keeps of a task.
func listLies(t *testing.T, s *Store) {
	t.Helper()
	known, done := s.readRows(context.Background(), catalog.Summaries), false
	for _, src := range known.Sources() {
		ch := catalog.Change{Source: src.Source}
		for i := range src.Rows {
			if row := &src.Rows[i]; row.ID == "one" {
				row.Title, done = "T lie", true
				row.Summary = []byte(strings.Replace(string(row.Summary), "T one", "T lie", 1))
				ch.Put = append(ch.Put, row)
			}
		}
		fixture.NoError(t, known.DB().Keep(context.Background(), build(), []catalog.Change{ch}, 0, time.Second))
	}
	known.Close()
	for _, sum := range fixture.Must[Listing](t)(s.List(context.Background(), Filter{})).Items {
		if sum.ID == "one" && (!done || sum.Title != "T lie") {
			t.Fatalf("the list does not believe it: %q", sum.Title)
		}
	}
}

// The two lists that are compared are of the same sources, also after these were replaced.
func TestVerifyRowsOfReplacedSources(t *testing.T) {
	s := cached(t, open(t, t.TempDir()), t.TempDir())
	s.SetSources([]string{storageWith(t, 2)}, false)
	if got := listing(t, s, Filter{}); len(got.Items) != 2 {
		t.Fatalf("got %d tasks, want 2", len(got.Items))
	}
	if found := s.VerifyRows(t.Context()); len(found) > 0 {
		t.Errorf("got %+v, want none", found)
	}
}
