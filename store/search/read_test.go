package search

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/intake"
)

// However long messages are, each of both histories is given once, in its place: they are
// read some at a time, by number and by bytes.
func TestEveryMessageIsGivenOnce(t *testing.T) {
	storage := t.TempDir()
	var ui, api []string
	for i := range 250 {
		text := fmt.Sprint("row ", i)
		if i%60 == 59 {
			text += strings.Repeat(" straw", 500_000) // 3 MB
		}
		if i == 130 {
			text += strings.Repeat(" hay", 1_500_000) // more than is read at a time
		}
		ui = append(ui, storetest.UIRow(i, text))
		api = append(api, storetest.APIRow(i, "user", fmt.Sprint("message ", i)))
	}
	storetest.Write(t, storage+"/tasks/long", roofmt.UIName, storetest.Array(ui...))
	storetest.Write(t, storage+"/tasks/long", roofmt.APIName, storetest.Array(api...))
	s := storetest.Open(t, t.TempDir(), storage)
	v := storetest.Must[*store.View](t)(s.Read(context.Background(), storetest.Must[store.Ref](t)(s.Find(context.Background(), "long"))))
	defer v.Close()
	seen := map[string]int{}
	place := 0
	for m, err := range texts(context.Background(), v.State) {
		storetest.Check(t, err)
		if m.Place != place {
			t.Fatalf("message %d of %s is at %d, after %d", m.Number, m.History, m.Place, place-1)
		}
		place++
		seen[m.History]++
		word := map[string]string{"ui": "row ", "api": "message "}[m.History]
		if want := fmt.Sprint(word, m.Number-1); len(m.Pieces) != 1 || !strings.HasPrefix(m.Pieces[0].Text+" ", want+" ") {
			t.Fatalf("message %d of %s says %.40q", m.Number, m.History, m.Pieces[0].Text)
		}
	}
	if seen["ui"] != 250 || seen["api"] != 250 {
		t.Errorf("given %v", seen)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := 0
	for _, err := range texts(ctx, v.State) {
		if cancel(); err != nil {
			break
		}
		given++
	}
	if given > 100 {
		t.Errorf("%d messages after it was cancelled", given)
	}
}

// A task of which nothing is kept but that it has too much text is read by each search, and
// not indexed anew; when it changes, it is looked at again.
func TestTooLargeIsRemembered(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "large")
	s := storetest.OpenWith(t, store.Options{Root: t.TempDir(), Cache: t.TempDir(), Sources: []string{storage}})
	time.Sleep(2 * intake.ClockTick)
	search := func() Result {
		t.Helper()
		return storetest.Must[Result](t)(Run(context.Background(), s, api.SearchQuery{Text: "do"}))
	}
	first := search()
	if len(first.Items) == 0 || first.Read != 1 || search().Read != 0 {
		t.Fatalf("got %+v, want len(first.Items) != 0 and first.Read = 1 and search().Read = 0", first)
	}
	db, err := s.OpenCatalog(context.Background())
	storetest.Check(t, err)
	tasks := storetest.Must[*store.Candidates](t)(s.Candidates(context.Background(), store.Filter{}))
	tasks.Close()
	e := new(catalog.Builder).Entry(catalogKey(tasks.Tasks[0].Ref), tooLarge+tasks.Tasks[0].Stamp)
	storetest.Check(t, db.Put(context.Background(), []catalog.Entry{e}))
	storetest.Check(t, db.Close())
	for range 2 {
		if got := search(); got.Read != 1 || len(got.Items) != len(first.Items) || len(got.Notes) != 0 {
			t.Errorf("read %d, %d of %d hits, %v", got.Read, len(got.Items), len(first.Items), got.Notes)
		}
	}
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "and do more")))
	time.Sleep(2 * intake.ClockTick)
	search()
	if got := search(); got.Read != 0 {
		t.Errorf("after a change it is read %d times more", got.Read)
	}
}
