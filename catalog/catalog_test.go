package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

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
