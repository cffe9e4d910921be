package search

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// Servers that share a catalogue and have few connections search and list many unknown tasks at the same time; each finds
// all, none waits for another without an end, and what one read the others need not read.
func TestServersSearchAtOnce(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	for i := range 2 * mostWhileOpen {
		rows := storetest.Array(storetest.UIRow(i, fmt.Sprint("task of the garden ", i)))
		storetest.Write(t, filepath.Join(storage, "tasks", fmt.Sprint("task", i)), roofmt.UIName, rows)
	}
	aged(t, storage)
	db, _ := inDatabase(t)
	servers := make([]*store.Store, 2)
	for i := range servers {
		opt := store.Options{Root: t.TempDir(), Sources: []string{storage}, Catalog: postgres.Open(db)}
		servers[i] = storetest.OpenWith(t, opt)
		servers[i].TrustTimesAfter(calmHere)
	}
	want := places(search1(t, searching(t, t.TempDir(), "", storage), api.SearchQuery{Text: "garden"}))
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			got, err := Run(t.Context(), servers[i%2], api.SearchQuery{Text: "garden"})
			if diff := cmp.Diff(want, places(got)); diff != "" || err != nil {
				t.Errorf("%v: -read +catalogue\n%.1000s", err, diff)
			}
			list, err := servers[i%2].List(t.Context(), store.Filter{})
			if len(list.Items) != 2*mostWhileOpen || err != nil {
				t.Errorf("got a list of %d tasks, %v, want %d", len(list.Items), err, 2*mostWhileOpen)
			}
		})
	}
	all.Wait()
	for _, s := range servers {
		if got := search1(t, s, api.SearchQuery{Text: "garden"}); got.Read != 0 || len(got.Notes) != 0 {
			t.Errorf("got %d tasks read again, %v, want none", got.Read, got.Notes)
		}
	}
}
