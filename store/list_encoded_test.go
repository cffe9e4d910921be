package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
)

// encodedStore has two storages: one task stands in both, one has a title that JSON could
// escape.
func encodedStore(t *testing.T) (*Store, []string) {
	t.Helper()
	dir := t.TempDir()
	var storages []string
	for i, name := range []string{"one", "two"} {
		storage := filepath.Join(dir, name)
		storages = append(storages, storage)
		for j, title := range []string{"in both", "<b>&  \xff of " + name} {
			id := []string{"both", "only-" + name}[j]
			folder := filepath.Join(storage, "tasks", id)
			check(t, os.MkdirAll(folder, 0o700))
			text := must[[]byte](t)(json.Marshal([]map[string]any{{"ts": ts0 + i*j, "type": "say", "say": "text", "text": title}}))
			check(t, os.WriteFile(filepath.Join(folder, roofmt.UIName), text, 0o600))
		}
	}
	s := must[*Store](t)(Open(Options{Root: filepath.Join(dir, "root"), Sources: storages}))
	return cached(t, s, filepath.Join(dir, "cache")), storages
}

func encodedList(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	for _, raw := range must[Encoded](t)(s.ListEncoded(context.Background(), Filter{})).Items {
		out.Write(raw)
		out.WriteByte('\n')
	}
	return out.String()
}

// What a person put on a task, other places of it, and what became of its storage stand in
// the JSON, though the row that is kept knows nothing of them.
func TestAnEncodedListSaysWhatTheRowsDoNot(t *testing.T) {
	ctx := context.Background()
	s, storages := encodedStore(t)
	first := encodedList(t, s)
	if page(t, s, Filter{}); first != encodedList(t, s) {
		t.Errorf("with kept rows the list is\n%sand was\n%s", encodedList(t, s), first)
	}
	if !strings.Contains(first, "<b>&") || !strings.Contains(first, `"copies":["`+filepath.Join(storages[1], "tasks", "both")) {
		t.Errorf("first list\n%s", first)
	}
	ref := must[Ref](t)(s.Find(ctx, "only-one"))
	check(t, Rooms.Label(ctx, s, ref, nil, "kept"))
	if page(t, s, Filter{}); !strings.Contains(encodedList(t, s), `"tags":["kept"]`) {
		t.Errorf("tagged\n%s", encodedList(t, s))
	}
	check(t, os.Rename(storages[1], storages[1]+" away"))
	page(t, s, Filter{})
	if got := encodedList(t, s); strings.Count(got, "its storage cannot be reached") != 2 || strings.Count(got, "\n") != 4 {
		t.Errorf("with a storage away\n%s", got)
	}
}

// A row whose bytes in the cache are damaged is read from the task again.
func TestAnEncodedListWithDamagedRows(t *testing.T) {
	s, _ := encodedStore(t)
	want := encodedList(t, s)
	path := filepath.Join(s.opt.Cache, catalog.RowsName)
	data := must[[]byte](t)(os.ReadFile(path))
	for i := len(data) - 1; i >= 0 && data[i] != '{'; i-- {
		data[i] ^= 1
	}
	check(t, os.WriteFile(path, data, 0o600))
	again := cached(t, s, s.opt.Cache)
	if got := encodedList(t, again); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAnEncodedListThatCannotBe(t *testing.T) {
	s, _ := encodedStore(t)
	if _, err := s.ListEncoded(context.Background(), Filter{Cursor: "-1"}); err == nil {
		t.Error("no error for a cursor that no list gave")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.ListEncoded(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
