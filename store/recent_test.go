package store_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-dev/roost/store"
)

// Tasks are told by when their journals were written to, the latest first, own and adopted
// ones; folders without a journal are none.
func TestRecent(t *testing.T) {
	root := t.TempDir()
	s, err := store.Open(store.Options{Root: root, Sources: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	recent := func(since int64, limit int) (ids []string) {
		t.Helper()
		refs, err := s.Recent(context.Background(), since, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range refs {
			ids = append(ids, r.Source+":"+r.ID)
			if _, err := os.Stat(filepath.Join(r.Log, "journal.jsonl")); err != nil {
				t.Error(err)
			}
		}
		return ids
	}
	if got := recent(0, 9); len(got) != 0 {
		t.Errorf("without any: %q", got)
	}
	for i, dir := range []string{"tasks/a", "tasks/b", "adopted/roo-code/c", "tasks/d"} {
		dir = filepath.Join(root, filepath.FromSlash(dir))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "journal.jsonl")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(int64(1000 * (i + 1)))
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "tasks", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		since int64
		limit int
		want  []string
	}{
		{0, 9, []string{"roost:d", "roo-code:c", "roost:b", "roost:a"}},
		{2000, 9, []string{"roost:d", "roo-code:c", "roost:b"}},
		{0, 2, []string{"roost:d", "roo-code:c"}},
		{5000, 9, nil},
	} {
		if got := recent(tt.since, tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("since %d, %d at most: %q, want %q", tt.since, tt.limit, got, tt.want)
		}
	}
}
