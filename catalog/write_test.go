package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"pgregory.net/rapid"
)

func (db *DB) count(t testing.TB, query string) (n int) {
	t.Helper()
	fixture.NoError(t, db.sql.QueryRowContext(context.Background(), query).Scan(&n))
	return n
}

// However tasks come, change and go, the catalogue
// finds what looking into all messages finds.
func TestChangingCatalogueFindsWhatMatches(t *testing.T) {
	text := rapid.SampledFrom([]string{"red fence", "the red hedge", "登录 错误", "handle_click(x)", "redfence", "src/red/fence.go", "", strings.Repeat("red ", 200), strings.Repeat("0123456789abcdef", 99)})
	rapid.Check(t, func(r *rapid.T) {
		ctx := context.Background()
		dir, err := os.MkdirTemp("", "catalog")
		fixture.NoError(t, err)
		defer os.RemoveAll(dir)
		db, err := Open(ctx, dir)
		fixture.NoError(t, err)
		defer db.Close()
		all := map[string][]string{}
		for range rapid.IntRange(1, 25).Draw(r, "changes") {
			var list []Entry
			for range rapid.IntRange(1, 3).Draw(r, "together") {
				key := fmt.Sprint("task", rapid.IntRange(0, 30).Draw(r, "task"))
				all[key] = rapid.SliceOfN(text, 0, 4).Draw(r, "texts")
				list = append(list, entry(key, all[key]...))
			}
			fixture.NoError(t, db.Put(ctx, list))
			if rapid.IntRange(0, 5).Draw(r, "drop") == 0 {
				key := fmt.Sprint("task", rapid.IntRange(0, 30).Draw(r, "task"))
				delete(all, key)
				fixture.NoError(t, db.Drop(ctx, []string{key}))
			}
		}
		for _, query := range []string{"red", `"red fence"`, "ed", "fence.g", "登", "录 错误", "click(", "89abcdef01", "d f", "nothing"} {
			q, err := Parse(query)
			fixture.NoError(t, err)
			want := map[string]bool{}
			for key, texts := range all {
				for i, text := range texts {
					if _, ok := q.Match(said(i+1, text)); ok && text != "" {
						want[fmt.Sprint(key, "#", i+1)] = true
					}
				}
			}
			if diff := cmp.Diff(want, found(t, db, query)); diff != "" {
				r.Errorf("%q: -matches +catalogue\n%s", query, diff)
			}
		}
		if n := db.count(t, "SELECT count(*) FROM vocabulary"); n > mostLists {
			r.Errorf("got %d lists of words, want at most %d", n, mostLists)
		}
		for _, table := range []string{"body WHERE part", "feature_docsize WHERE id"} {
			if n := db.count(t, "SELECT count(*) FROM "+table+" NOT IN (SELECT id FROM part)"); n > 0 {
				r.Errorf("%d rows of %s are of no part", n, table)
			}
		}
	})
}

// Many writes leave what was there, in its order, also of tasks of many parts.
func TestTasksKeepTheirOrder(t *testing.T) {
	db := opened(t, t.TempDir())
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("part %d of the long one ", i), 40)
	}
	put(t, db, "long", texts...)
	before := db.digest(t, "long")
	for i := range 3 * mostLists {
		put(t, db, fmt.Sprint("short", i), fmt.Sprint("some words", i))
	}
	if n := db.count(t, "SELECT count(*) FROM vocabulary"); n > mostLists {
		t.Errorf("got %d lists of words, want at most %d", n, mostLists)
	}
	if after := db.digest(t, "long"); after != before {
		t.Error("the parts of a task came into another order")
	}
	if n := len(found(t, db, "long one")); n != 200 {
		t.Errorf("%d of 200", n)
	}
}

func (db *DB) digest(t testing.TB, key string) string {
	t.Helper()
	s, err := db.Snapshot(context.Background())
	fixture.NoError(t, err)
	defer s.Close()
	tasks, err := s.Tasks(context.Background())
	fixture.NoError(t, err)
	sum, err := s.Digest(context.Background(), tasks[key].ID)
	fixture.NoError(t, err)
	return fmt.Sprintf("%x", sum)
}

// A disk that is full loses what was to be written, and nothing that was there.
func TestFullDisk(t *testing.T) {
	ctx, db := context.Background(), opened(t, t.TempDir())
	db.sql.SetMaxOpenConns(1)
	put(t, db, "old", "the first words")
	pages := db.count(t, "PRAGMA page_count")
	db.count(t, fmt.Sprintf("PRAGMA max_page_count = %d", pages+2))
	var b Builder
	for i := range 300 {
		b.Add(said(i+1, strings.Repeat(fmt.Sprintf("many other words %d ", i*i), 200)))
	}
	err := db.Put(ctx, []Entry{entry("old", "the second words"), b.Entry("new", "")})
	var e *sqlite.Error
	if !errors.As(err, &e) || e.Code() != sqlite3.SQLITE_FULL || Damaged(err) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(map[string]bool{"old#1": true}, found(t, db, "first")); diff != "" {
		t.Error(diff)
	}
	if got := found(t, db, "second"); len(got) > 0 {
		t.Errorf("half of what did not fit is there: %v", got)
	}
	db.count(t, fmt.Sprintf("PRAGMA max_page_count = %d", 1<<20))
	put(t, db, "old", "the third words")
	if len(found(t, db, "third")) != 1 {
		t.Error("it does not go on when there is room")
	}
}

// An index that names parts which are not there is reported as damage.
func TestPartsThatAreMissing(t *testing.T) {
	for _, sql := range []string{
		"DROP TRIGGER part_gone; DELETE FROM part", "DELETE FROM body", "UPDATE body SET text = x'00'",
		"UPDATE vocabulary SET words = x'ff'", "DELETE FROM feature_data WHERE id > 10", "UPDATE feature_data SET block = x'7f01' WHERE id > 10",
	} {
		ctx, dir := context.Background(), t.TempDir()
		db := opened(t, dir)
		put(t, db, "a", "some words")
		_, err := db.sql.ExecContext(ctx, sql)
		fixture.NoError(t, err)
		if err := db.look(ctx); !Damaged(err) {
			t.Errorf("%s: error %v", sql, err)
		}
		fixture.NoError(t, db.SetAside())
		if _, err := os.Stat(filepath.Join(dir, Name+".damaged")); err != nil {
			t.Error(err)
		}
	}
}

// While one handle writes, others see each task whole, in the old or the
// new state, and all that were there before.
func TestWritesUnderReaders(t *testing.T) {
	dir := t.TempDir()
	writer := opened(t, dir)
	for i := range 5 {
		put(t, writer, fmt.Sprint("base", i), "shared words", "more shared words", "shared")
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		db := opened(t, dir)
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
	for i := range 4 * mostLists {
		put(t, writer, fmt.Sprint([]string{"base", "new"}[i%2], i%7%5), "shared again", "words shared", "not alone: shared")
	}
	close(stop)
	readers.Wait()
}
