package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A catalogue that was cut is as good as none: it opens, or is set aside and begun anew,
// finds nothing that was not said, and takes what is put into it.
func TestCatalogueCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	db := opened(t, dir)
	for i := range 6 {
		put(t, db, fmt.Sprint(i), strings.Repeat(fmt.Sprint("words of ", i, " "), 300))
	}
	fixture.NoError(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, Name))
	fixture.NoError(t, err)
	sizes := []int{0, 1, 15, 16, 17, 99, 100, 101, 512, len(whole) - 1}
	for n := 4096; n < len(whole); n += 4096 {
		sizes = append(sizes, n, n+100)
	}
	for _, n := range sizes {
		dir := t.TempDir()
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, Name), whole[:min(n, len(whole))], 0o600))
		db, err := Open(t.Context(), dir)
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
			continue
		}
		if err := db.look(t.Context()); err != nil {
			if !Damaged(err) {
				t.Errorf("%d bytes: this would not be set aside: %v", n, err)
			}
			fixture.NoError(t, db.SetAside())
			db = opened(t, dir)
		}
		if err := db.Put(t.Context(), []Entry{entry("new", "unheard")}); err != nil {
			if !Damaged(err) {
				t.Errorf("%d bytes: this would not be set aside: %v", n, err)
			}
			fixture.NoError(t, db.SetAside())
			db = opened(t, dir)
			put(t, db, "new", "unheard")
		}
		if got := found(t, db, "unheard"); len(got) != 1 {
			t.Errorf("%d bytes: found %v", n, got)
		}
		fixture.NoError(t, db.Close())
	}
}

// Catalogues of earlier and later versions, also unfinished ones, are emptied and used;
// Verify leaves them as they are.
func TestEveryOtherVersion(t *testing.T) {
	for _, text := range []string{
		"PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 2", "PRAGMA user_version = -5", "PRAGMA user_version = 2147483647",
		"PRAGMA user_version = 2; CREATE TABLE gram(n); INSERT INTO gram VALUES(1)",
		"PRAGMA user_version = 1; DROP TABLE part", "PRAGMA user_version = 1; DROP TABLE feature; DROP TABLE vocabulary; CREATE TABLE post(other)",
	} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			db := opened(t, dir)
			put(t, db, "a", "words")
			_, err := db.sql.ExecContext(t.Context(), text)
			fixture.NoError(t, err)
			fixture.NoError(t, db.Close())
			if seen, err := Verify(t.Context(), dir); seen != nil || err != nil {
				t.Errorf("verified: %v, %v", seen, err)
			}
			db = opened(t, dir)
			if got := found(t, db, "words"); len(got) > 0 {
				t.Errorf("used: %v", got)
			}
			put(t, db, "b", "words")
			if got := found(t, db, "words"); len(got) != 1 {
				t.Errorf("found %v", got)
			}
			if seen, err := Verify(t.Context(), dir); err != nil || seen == nil {
				t.Errorf("verified afterwards: %v, %v", seen, err)
			} else {
				fixture.NoError(t, seen.Close())
			}
		})
	}
}

// Those who come first to an empty folder, or to one of another version, all get one
// catalogue, and none loses what another one put.
func TestManyOpenAtOnce(t *testing.T) {
	for _, old := range []bool{false, true} {
		dir := t.TempDir()
		if old {
			db := opened(t, dir)
			put(t, db, "gone", "words")
			_, err := db.sql.ExecContext(t.Context(), "PRAGMA user_version = 1")
			fixture.NoError(t, err)
			fixture.NoError(t, db.Close())
		}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				db, err := Open(context.Background(), dir)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close() //nolint:errcheck // only read below
				if err := db.Put(context.Background(), []Entry{entry(fmt.Sprint("task", i), "words")}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := found(t, opened(t, dir), "words"); len(got) != 6 {
			t.Errorf("old %v: found %v", old, got)
		}
	}
}
