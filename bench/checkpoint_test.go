package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every row is measured, and what is stored counts the edits and not the tree.
func TestCheckpointRows(t *testing.T) {
	rows, err := checkpoints(context.Background(), options{dir: t.TempDir(), quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"checkpoint of a one-file edit, 200 files", "first look", "look before", "look after", "stored for 5 edits"} {
		if i >= len(rows) || !strings.Contains(rows[i].what, want) || rows[i].got == "" {
			t.Errorf("row %d is not %q: %+v", i, want, rows)
		}
	}
	if len(rows) == 5 && (rows[4].ratio == "-" || strings.HasPrefix(rows[4].got, "0.0 ")) {
		t.Errorf("edits store nothing: %+v", rows[4])
	}
}

// An edit changes one line and keeps about the size of the file, so that the bytes of a
// row are those of real edits.
func TestMeasuredEdits(t *testing.T) {
	dir := t.TempDir()
	if err := sourceTree(dir, 10, 20); err != nil {
		t.Fatal(err)
	}
	l := &keeping{root: dir}
	path := filepath.Join(dir, l.path(3))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.write(3, "by a test"); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(after), "// by a test 3\n") || l.bytes != int64(len(after)) {
		t.Errorf("%d bytes counted of %d, %v: %.60q", l.bytes, len(after), err, after)
	}
	if a, b := strings.Count(string(before), "\n"), strings.Count(string(after), "\n"); a != b {
		t.Errorf("%d lines became %d", a, b)
	}
}

// The large workspace is measured as the small one is, and nothing of it stays.
func TestLargeWorkspace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "large")
	r, err := largeWorkspace(t.Context(), dir, 3, 10_000, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if !strings.Contains(r.what, "stored for 4 edits") || r.ratio == "-" || r.got == "" || strings.HasPrefix(r.got, "0.0 KB") {
		t.Errorf(`got %+v, want strings.Contains(r.what, "stored for 4 edits") and r.ratio != "-" and r.got != "" and not strings.HasPrefix(r.got, "0.0 KB")`,
			r)
	}
}
