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
	"pgregory.net/rapid"
)

// The catalogue finds what looking into every message finds, no more and no less,
// for any text and any part of it.
func TestFindsWhatMatches(t *testing.T) {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"Fence", "handle_click", "src/a.go", "登录错误", "ÉCOLE", "ǅungla", "K", "İstanbul", "straße", "\xff\xfe", "コード", "한국어", "a", " "}),
		rapid.StringN(1, 12, 40),
	)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "catalog")
		fixture.NoError(t, err)
		defer os.RemoveAll(dir)
		db, err := Open(context.Background(), dir)
		fixture.NoError(t, err)
		defer db.Close()
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
		q, err := Parse(query)
		if err != nil {
			return
		}
		want := map[string]bool{}
		for key, texts := range all {
			for i, text := range texts {
				if _, ok := q.Match(said(i+1, text)); ok {
					want[fmt.Sprint(key, "#", i+1)] = true
				}
			}
		}
		if diff := cmp.Diff(want, found(t, db, query)); diff != "" {
			r.Errorf("%q: -matches +catalogue\n%s", query, diff)
		}
	})
}

func TestManyPartsOfOneTask(t *testing.T) {
	db := opened(t, t.TempDir())
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

// Replaced and dropped tasks leave nothing behind, also not in the file's tables.
func TestReplaceAndDrop(t *testing.T) {
	ctx, db := context.Background(), opened(t, t.TempDir())
	put(t, db, "a", "old words")
	put(t, db, "b", "other words")
	put(t, db, "a", "new words")
	if diff := cmp.Diff(map[string]bool{"a#1": true, "b#1": true}, found(t, db, "words")); diff != "" {
		t.Error(diff)
	}
	if got := found(t, db, "old"); len(got) > 0 {
		t.Errorf("what was replaced is found: %v", got)
	}
	fixture.NoError(t, db.Drop(ctx, []string{"a", "b", "never there"}))
	for _, table := range []string{"task", "part", "body", "feature_docsize"} {
		var n int
		fixture.NoError(t, db.sql.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n))
		if n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	if got := found(t, db, "words"); len(got) > 0 {
		t.Errorf("what was dropped is found: %v", got)
	}
}

func TestRowsKeepWhatTheyWereGiven(t *testing.T) {
	ctx, db := context.Background(), opened(t, t.TempDir())
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

// A reader sees one moment: a task that is replaced meanwhile is still whole.
func TestSnapshotStands(t *testing.T) {
	ctx, db := context.Background(), opened(t, t.TempDir())
	put(t, db, "a", "first words")
	s, err := db.Snapshot(ctx)
	fixture.NoError(t, err)
	defer s.Close()
	rows, err := s.Tasks(ctx)
	fixture.NoError(t, err)
	put(t, db, "a", "second words")
	q, err := Parse("words")
	fixture.NoError(t, err)
	parts, err := s.Parts(ctx, q)
	fixture.NoError(t, err)
	hits, err := s.Hits(ctx, parts[rows["a"].ID], q, 0)
	fixture.NoError(t, err)
	if len(hits) != 1 || hits[0].Snippet != "first words" {
		t.Errorf("got %+v, want len(hits) = 1 and hits[0].Snippet = \"first words\"", hits)
	}
}

func TestAnotherVersionIsEmptied(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	db := opened(t, dir)
	put(t, db, "a", "words")
	_, err := db.sql.ExecContext(ctx, "PRAGMA user_version = 9999")
	fixture.NoError(t, err)
	fixture.NoError(t, db.Close())
	if got := found(t, opened(t, dir), "words"); len(got) > 0 {
		t.Errorf("rows of another version are used: %v", got)
	}
}

// A file that is no catalogue is kept beside a new one.
func TestDamagedFileIsSetAside(t *testing.T) {
	for name, content := range map[string]string{
		"words": strings.Repeat("this is not SQLite\n", 999), "zeros": strings.Repeat("\x00", 9000), "a header": "SQLite format 3\x00" + strings.Repeat("\xff", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fixture.NoError(t, os.WriteFile(filepath.Join(dir, Name), []byte(content), 0o600))
			db := opened(t, dir)
			put(t, db, "a", "words")
			if len(found(t, db, "words")) != 1 {
				t.Error("the new one does not work")
			}
			if kept, err := os.ReadFile(filepath.Join(dir, Name+".damaged")); err != nil || string(kept) != content {
				t.Errorf("the damaged one is not kept as it was: %v", err)
			}
		})
	}
}

// Bytes changed anywhere give damage or the same hits, and never a crash; what comes
// after setting aside works.
func TestFlippedPages(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	db := opened(t, dir)
	for i := range 20 {
		put(t, db, fmt.Sprint(i), strings.Repeat(fmt.Sprint("some words of ", i, " "), 500))
	}
	fixture.NoError(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, Name))
	fixture.NoError(t, err)
	damaged := 0
	for page := 0; page*4096 < len(whole); page++ {
		bad := append([]byte{}, whole...)
		for i := page * 4096; i < page*4096+4096; i += 7 {
			bad[i] ^= 0x5a
		}
		dir := t.TempDir()
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, Name), bad, 0o600))
		db, err := Open(ctx, dir)
		fixture.NoError(t, err)
		if err := db.look(ctx); Damaged(err) {
			damaged++
			fixture.NoError(t, db.SetAside())
			db = opened(t, dir)
			put(t, db, "a", "words")
			if len(found(t, db, "words")) != 1 {
				t.Errorf("page %d: the new one does not work", page)
			}
		} else if err != nil {
			t.Errorf("page %d: %v is not told as damage", page, err)
		}
		_ = db.Close()
	}
	if damaged == 0 {
		t.Error("no damage was seen")
	}
}

// look uses all of a catalogue.
func (db *DB) look(ctx context.Context) error {
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
		q, err := Parse(text)
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

// A catalogue that another process began anew is not set aside a second time.
func TestSetAsideOnlyWhatWasOpened(t *testing.T) {
	dir := t.TempDir()
	first, second := opened(t, dir), opened(t, dir)
	fixture.NoError(t, first.SetAside())
	fresh := opened(t, dir)
	put(t, fresh, "a", "words")
	fixture.NoError(t, second.SetAside())
	if len(found(t, opened(t, dir), "words")) != 1 {
		t.Error("the new catalogue was set aside, too")
	}
}

func TestNoPlaceForIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	fixture.NoError(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(context.Background(), filepath.Join(file, "cache")); err == nil || Damaged(err) {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	fixture.NoError(t, os.Mkdir(filepath.Join(dir, Name), 0o700))
	if _, err := Open(context.Background(), dir); err == nil {
		t.Error("a folder was opened")
	}
}

func TestCancelled(t *testing.T) {
	db := opened(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := db.Put(ctx, []Entry{entry("a", "words")}); !errors.Is(err, context.Canceled) || Damaged(err) {
		t.Errorf("error %v", err)
	}
	put(t, db, "b", "words") // the connection is fit for use
}

// Handles of their own, as processes have them: all that was put is there.
func TestWritersAndReadersTogether(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for w := range 4 {
		db := opened(t, dir)
		all.Go(func() {
			for i := range 10 {
				if err := db.Put(context.Background(), []Entry{entry(fmt.Sprint(w, "-", i), "shared words"), entry("same", "shared words")}); err != nil {
					t.Error(err)
				}
				if err := db.look(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(found(t, opened(t, dir), "shared")); n != 41 {
		t.Errorf("%d of 41 tasks", n)
	}
}
