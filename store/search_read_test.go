package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
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
		ui = append(ui, uiRow(i, text))
		api = append(api, apiRow(i, "user", fmt.Sprint("message ", i)))
	}
	write(t, storage+"/tasks/long", roofmt.UIName, array(ui...))
	write(t, storage+"/tasks/long", roofmt.APIName, array(api...))
	s := open(t, t.TempDir(), storage)
	v := must[*View](t)(s.Read(context.Background(), must[Ref](t)(s.Find(context.Background(), "long"))))
	defer v.Close()
	seen := map[string]int{}
	place := 0
	for m, err := range texts(context.Background(), v.State) {
		check(t, err)
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
	storage, dir := rooStorage(t, "large")
	s := open(t, t.TempDir(), storage)
	s.opt.Cache = t.TempDir()
	ref := must[Ref](t)(s.Find(context.Background(), "large"))
	waitForCalm()
	search := func() SearchResult {
		t.Helper()
		return must[SearchResult](t)(s.Search(context.Background(), SearchQuery{Text: "do"}))
	}
	first := search()
	if len(first.Items) == 0 || first.Read != 1 || search().Read != 0 {
		t.Fatalf("%+v", first)
	}
	db, err := s.openCatalog(context.Background(), true)
	check(t, err)
	stamp, _ := s.stampOf(ref)
	e := new(catalog.Builder).Entry(catalogKey(ref), tooLarge+stamp, 1, []byte("{}"))
	check(t, db.Put(context.Background(), []catalog.Entry{e}))
	check(t, db.Close())
	for range 2 {
		if got := search(); got.Read != 1 || len(got.Items) != len(first.Items) || len(got.Notes) != 0 {
			t.Errorf("read %d, %d of %d hits, %v", got.Read, len(got.Items), len(first.Items), got.Notes)
		}
	}
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "and do more")))
	waitForCalm()
	search()
	if got := search(); got.Read != 0 {
		t.Errorf("after a change it is read %d times more", got.Read)
	}
}
