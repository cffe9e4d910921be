package catalog_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/catalog"
)

// Looking makes no catalogue, sets none aside, and says what is wrong with it.
func TestVerify(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "cache")
	if db, err := catalog.Verify(ctx, dir); db != nil || err != nil {
		t.Errorf("no folder: %v, %v", db, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("looking made a folder")
	}
	db, err := catalog.Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	var b, other catalog.Builder
	b.Add(catalog.UI([]byte(`{"ts":1,"type":"say","say":"text","text":"words to be found"}`), 1))
	other.Add(catalog.UI([]byte(`{"ts":1,"type":"say","say":"text","text":"words to be fOund"}`), 1))
	entry := b.Entry("key", "stamp")
	if err := db.Put(ctx, []catalog.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if db, err = catalog.Verify(ctx, dir); db == nil || err != nil {
		t.Fatalf("a sound one: %v", err)
	}
	snap, err := db.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := snap.Tasks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	have, err := snap.Digest(ctx, rows["key"].ID)
	if err != nil || !bytes.Equal(have, entry.Digest()) {
		t.Errorf("the digest is not that of what was put (%v)", err)
	}
	if bytes.Equal(have, other.Entry("", "").Digest()) {
		t.Error("other text has the same digest")
	}
	snap.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, catalog.Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"no database": func([]byte) []byte { return bytes.Repeat([]byte("junk "), 1000) },
		"cut":         func(b []byte) []byte { return b[:len(b)/2] },
		"a page of it": func(b []byte) []byte {
			copy(b[4096:8192], bytes.Repeat([]byte{0xa5}, 4096))
			return b
		},
	} {
		bad := spoil(bytes.Clone(whole))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := catalog.Verify(ctx, dir)
		if err == nil || db == nil || !catalog.Damaged(err) {
			t.Errorf("%s: got %v, want an error and db != nil and catalog.Damaged(err)", name, err)
		}
		if db != nil {
			_ = db.Close() // it was only looked at
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("%s: looking changed it (%v)", name, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if db, err := catalog.Verify(ctx, dir); db != nil || err == nil {
		t.Errorf("a folder of that name: %v", err)
	}
}
