package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file of rows that was cut at any byte gives each row as it was written, or not.
func TestRowsCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	want := &Rows{Shelves: []*Shelf{
		{Name: "own", Path: "/p", Dirs: []Dir{{"/p", 1}}, Rows: []Row{
			{ID: "a", Known: true, Title: "first", Traits: &Traits{Tags: []string{"x", "y"}}, Content: [16]byte{1}, Whole: []byte(`{"a":1}`)}, {ID: "b"},
			{ID: "c", Known: true, Title: "", Traits: &Traits{Tool: "roo"}, Whole: []byte(`{}`)},
		}},
		{Name: "other", Rows: []Row{{ID: "d", Known: true, Title: "last", Whole: []byte(`{"d":[]}`)}}},
	}}
	check(t, want.Write(dir, 7))
	path := filepath.Join(dir, RowsName)
	whole, err := os.ReadFile(path)
	check(t, err)
	opened, loaded := 0, 0
	for n := range len(whole) {
		check(t, os.WriteFile(path, whole[:n], 0o600))
		got, err := OpenRows(dir, 7)
		if err != nil {
			continue
		}
		opened++
		all, err := OpenRows(dir, 7)
		check(t, err)
		all.LoadAll()
		for i, s := range got.Shelves {
			for j := range s.Rows {
				row, had := s.Rows[j], all.Shelves[i].Rows[j]
				if !row.Known {
					continue
				}
				err := got.Load(&row)
				if (err == nil) != (had.Whole != nil) {
					t.Fatalf("of %d bytes: row %s alone: %v; with all: %q", n, row.ID, err, had.Whole)
				}
				if err != nil {
					continue
				}
				loaded++
				if diff := cmp.Diff(want.Shelves[i].Rows[j], row, plain); diff != "" {
					t.Fatalf("of %d bytes: -written +loaded\n%s", n, diff)
				}
			}
		}
		all.Close()
		got.Close()
	}
	if opened == 0 || loaded == 0 {
		t.Errorf("%d files opened, %d rows came out of them: the columns stand before the rows' own bytes", opened, loaded)
	}
}

// Whoever opens rows while several write them gets one writing, whole, and never parts of two.
func TestRowsUnderConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	made := func(who, turn int) *Rows {
		mark := fmt.Sprintf("%d/%d", who, turn)
		s := &Shelf{Name: "s"}
		for i := range 20 + turn%7 {
			s.Rows = append(s.Rows, Row{ID: fmt.Sprint(i), Known: true, Traits: &Traits{Model: mark}, Title: mark, Whole: []byte(strings.Repeat(mark+";", 1+i))})
		}
		return &Rows{Shelves: []*Shelf{s}}
	}
	check(t, made(9, 0).Write(dir, 1))
	var all sync.WaitGroup
	for who := range 3 {
		all.Go(func() {
			for turn := range 40 {
				if err := made(who, turn).Write(dir, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 100 {
				r, err := OpenRows(dir, 1)
				if err != nil {
					t.Error(err)
					return
				}
				list := r.Shelves[0].Rows
				for i := range list {
					if err := r.Load(&list[i]); err != nil || list[i].Title != list[0].Model || string(list[i].Whole) != strings.Repeat(list[0].Model+";", 1+i) {
						t.Errorf("row %d of the writing %s: %q, %v", i, list[0].Model, list[i].Title, err)
					}
				}
				r.Close()
			}
		})
	}
	all.Wait()
}

// A catalogue that was cut is as good as none: it opens, or is set aside and begun anew,
// finds nothing that was not said, and takes what is put into it.
func TestCatalogueCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	db := opened(t, dir)
	for i := range 6 {
		put(t, db, fmt.Sprint(i), strings.Repeat(fmt.Sprint("words of ", i, " "), 300))
	}
	check(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, Name))
	check(t, err)
	sizes := []int{0, 1, 15, 16, 17, 99, 100, 101, 512, len(whole) - 1}
	for n := 4096; n < len(whole); n += 4096 {
		sizes = append(sizes, n, n+100)
	}
	for _, n := range sizes {
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, Name), whole[:min(n, len(whole))], 0o600))
		db, err := Open(t.Context(), dir)
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
			continue
		}
		if err := db.look(t.Context()); err != nil {
			if !Damaged(err) {
				t.Errorf("%d bytes: this would not be set aside: %v", n, err)
			}
			check(t, db.SetAside())
			db = opened(t, dir)
		}
		if err := db.Put(t.Context(), []Entry{entry("new", "unheard")}); err != nil {
			if !Damaged(err) {
				t.Errorf("%d bytes: this would not be set aside: %v", n, err)
			}
			check(t, db.SetAside())
			db = opened(t, dir)
			put(t, db, "new", "unheard")
		}
		if got := found(t, db, "unheard"); len(got) != 1 {
			t.Errorf("%d bytes: found %v", n, got)
		}
		check(t, db.Close())
	}
}

// Catalogues of earlier and later versions, also unfinished ones, are emptied and used;
// Verify leaves them as they are.
func TestEveryOtherVersion(t *testing.T) {
	for _, text := range []string{
		"PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 2", "PRAGMA user_version = -5", "PRAGMA user_version = 2147483647",
		"PRAGMA user_version = 2; CREATE TABLE gram(n); INSERT INTO gram VALUES(1)",
		"PRAGMA user_version = 1; DROP TABLE part", "PRAGMA user_version = 1; DROP TABLE segment; DROP TABLE post; CREATE TABLE post(other)",
	} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			db := opened(t, dir)
			put(t, db, "a", "words")
			_, err := db.sql.ExecContext(t.Context(), text)
			check(t, err)
			check(t, db.Close())
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
				check(t, seen.Close())
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
			check(t, err)
			check(t, db.Close())
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
