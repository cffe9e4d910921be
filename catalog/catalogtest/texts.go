package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func testFindsWhatMatches(t *testing.T, place Backend) {
	db := place.Open(t)
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"Fence", "handle_click", "src/a.go", "登录错误", "ÉCOLE", "ǅungla", "K", "İstanbul", "straße", "\xff\xfe", "コード", "한국어", "a", " "}),
		rapid.StringN(1, 12, 40),
	)
	rapid.Check(t, func(r *rapid.T) {
		empty(t, db)
		all := map[string][]string{}
		for i := range rapid.IntRange(1, 3).Draw(r, "tasks") {
			key := fmt.Sprint("task", i)
			for range rapid.IntRange(0, 6).Draw(r, "messages") {
				all[key] = append(all[key], strings.Join(rapid.SliceOfN(word, 1, 8).Draw(r, "text"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(r, "gap")))
			}
			put(t, db, key, all[key]...)
		}
		query := word.Draw(r, "query")
		if rapid.Bool().Draw(r, "two") {
			query += " " + word.Draw(r, "second")
		}
		q, err := catalog.Parse(query)
		if err != nil {
			return
		}
		if diff := cmp.Diff(matching(q, all), found(t, db, query)); diff != "" {
			r.Errorf("%q: -matches +catalogue\n%s", query, diff)
		}
	})
}

func testManyPartsOfOneTask(t *testing.T, place Backend) {
	db := place.Open(t)
	texts := make([]string, 300)
	for i := range texts {
		texts[i] = fmt.Sprintf("message %d of the long task %s", i, strings.Repeat("words and more words ", 100))
	}
	texts[250] += " only_here"
	put(t, db, "long", texts...)
	if diff := cmp.Diff(map[string]bool{"long#251": true}, found(t, db, "ONLY_HERE task")); diff != "" {
		t.Error(diff)
	}
	if n := len(found(t, db, "message")); n != 300 {
		t.Errorf("%d of 300", n)
	}
}

func testRowsKeepWhatTheyWereGiven(t *testing.T, place Backend) {
	ctx, db := context.Background(), place.Open(t)
	put(t, db, "a", "x", "y")
	put(t, db, "empty")
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	rows, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	if len(rows) != 2 || rows["a"].Stamp != "stamp of a" {
		t.Errorf("got %+v, want len(rows) = 2 and rows[a].Stamp = \"stamp of a\"", rows)
	}
}

func testSnapshotStands(t *testing.T, place Backend) {
	ctx, db := context.Background(), place.Open(t)
	put(t, db, "a", "first words")
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	rows, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	put(t, db, "a", "second words")
	q, err := catalog.Parse("words")
	fixture.NoError(t, err)
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	hits, err := s.Hits(ctx, parts[rows["a"].ID], q, 0)
	fixture.NoError(t, err)
	if len(hits) != 1 || hits[0].Snippet != "first words" {
		t.Errorf("got %+v, want len(hits) = 1 and hits[0].Snippet = \"first words\"", hits)
	}
}

func testCancelled(t *testing.T, place Backend) {
	db := place.Open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := db.Put(ctx, []catalog.Entry{entry("a", "words")}); !errors.Is(err, context.Canceled) || catalog.Damaged(err) {
		t.Errorf("error %v", err)
	}
	put(t, db, "b", "words") // the connection is fit for use
}

// However tasks come, change and are removed, the catalogue finds the same as a look into all messages.
func testChangingCatalogueFindsWhatMatches(t *testing.T, place Backend) {
	if testing.Short() {
		t.Skip("it makes one call after another, and the race detector takes ten times as long")
	}
	text := rapid.SampledFrom([]string{
		"red fence", "the red hedge", "登录 错误", "handle_click(x)", "redfence", "src/red/fence.go", "",
		strings.Repeat("red ", 200), strings.Repeat("0123456789abcdef", 99),
	})
	db := place.Open(t)
	rapid.Check(t, func(r *rapid.T) {
		empty(t, db)
		all := map[string][]string{}
		for range rapid.IntRange(1, 25).Draw(r, "changes") {
			var list []catalog.Entry
			for range rapid.IntRange(1, 3).Draw(r, "together") {
				key := fmt.Sprint("task", rapid.IntRange(0, 30).Draw(r, "task"))
				all[key] = rapid.SliceOfN(text, 0, 4).Draw(r, "texts")
				list = append(list, entry(key, all[key]...))
			}
			fixture.NoError(t, db.Put(t.Context(), list))
			if rapid.IntRange(0, 5).Draw(r, "drop") == 0 {
				key := fmt.Sprint("task", rapid.IntRange(0, 30).Draw(r, "task"))
				delete(all, key)
				fixture.NoError(t, db.Drop(t.Context(), []string{key}))
			}
		}
		for _, query := range []string{"red", `"red fence"`, "ed", "fence.g", "登", "录 错误", "click(", "89abcdef01", "d f", "nothing"} {
			q, err := catalog.Parse(query)
			fixture.NoError(t, err)
			if diff := cmp.Diff(matching(q, all), found(t, db, query)); diff != "" {
				r.Errorf("%q: -matches +catalogue\n%s", query, diff)
			}
		}
		if n := place.Lists(t); n > mostLists {
			r.Errorf("got %d lists of words, want at most %d", n, mostLists)
		}
		if n := place.Leftover(t); n > 0 {
			r.Errorf("%d rows are of no task", n)
		}
	})
}

// Replaced and dropped tasks leave nothing behind, not even in the tables.
func testReplaceAndDrop(t *testing.T, place Backend) {
	db := place.Open(t)
	put(t, db, "a", "old words")
	put(t, db, "b", "other words")
	put(t, db, "a", "new words")
	if diff := cmp.Diff(map[string]bool{"a#1": true, "b#1": true}, found(t, db, "words")); diff != "" {
		t.Error(diff)
	}
	if got := found(t, db, "old"); len(got) > 0 {
		t.Errorf("what was replaced is found: %v", got)
	}
	fixture.NoError(t, db.Drop(t.Context(), []string{"a", "b", "never there"}))
	if got := found(t, db, "words"); len(got) > 0 {
		t.Errorf("what was dropped is found: %v", got)
	}
	if n := place.Leftover(t); n > 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Many writes leave earlier tasks unchanged and in their order, also tasks with many parts.
func testTasksKeepTheirOrder(t *testing.T, place Backend) {
	db := place.Open(t)
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("part %d of the long one ", i), 40)
	}
	long := entry("long", texts...)
	fixture.NoError(t, db.Put(t.Context(), []catalog.Entry{long}))
	for i := range 3 * mostLists {
		put(t, db, fmt.Sprint("short", i), fmt.Sprint("some words", i))
	}
	if n := place.Lists(t); n > mostLists {
		t.Errorf("got %d lists of words, want at most %d", n, mostLists)
	}
	s := begin(t, db)
	defer s.Close()
	sum, err := s.Digest(t.Context(), s.tasks["long"].ID)
	if err != nil || string(sum) != string(long.Digest()) {
		t.Errorf("the parts of a task came into another order (%v)", err)
	}
	if n := len(found(t, db, "long one")); n != 200 {
		t.Errorf("%d of 200", n)
	}
}

func testWritersAndReadersTogether(t *testing.T, place Backend) {
	var all sync.WaitGroup
	for w := range 4 {
		db := place.Open(t)
		all.Go(func() {
			for i := range 10 {
				if err := db.Put(context.Background(), []catalog.Entry{entry(fmt.Sprint(w, "-", i), "shared words"), entry("same", "shared words")}); err != nil {
					t.Error(err)
				}
				if err := look(context.Background(), db); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(found(t, place.Open(t), "shared")); n != 41 {
		t.Errorf("%d of 41 tasks", n)
	}
}

func testWritesUnderReaders(t *testing.T, place Backend) {
	writer := place.Open(t)
	for i := range 5 {
		put(t, writer, fmt.Sprint("base", i), "shared words", "more shared words", "shared")
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		db := place.Open(t)
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n > 0 {
						return
					}
				default:
				}
				per := map[string]int{}
				for hit := range found(t, db, "shared") {
					key, _, _ := strings.Cut(hit, "#")
					per[key]++
				}
				for key, n := range per {
					if n != 3 {
						t.Errorf("%d of the three messages of %s", n, key)
					}
				}
				if len(per) < 5 {
					t.Errorf("%d tasks of at least five", len(per))
				}
			}
		})
	}
	for i := range 64 {
		put(t, writer, fmt.Sprint([]string{"base", "new"}[i%2], i%7%5), "shared again", "words shared", "not alone: shared")
	}
	close(stop)
	readers.Wait()
}

// look reads everything in a catalogue.
func look(ctx context.Context, db Catalog) error {
	s, err := db.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	tasks, err := s.Tasks(ctx)
	if err != nil {
		return err
	}
	for _, text := range []string{"words", "of"} {
		q, err := catalog.Parse(text)
		if err != nil {
			return err
		}
		parts, err := s.Parts(ctx, q)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			if _, err := s.Hits(ctx, parts[task.ID], q, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
