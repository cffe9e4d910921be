package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// The storage that lists are measured on is whole, and a change of it is what the
// measurement takes it for: a newer row in the same file.
func TestMadeStorage(t *testing.T) {
	base := t.TempDir()
	dirs := []string{filepath.Join(base, "tasks", "a"), filepath.Join(base, "tasks", "b")}
	total, err := storageOf(dirs, 20<<10)
	if err != nil || total < 30<<10 {
		t.Fatalf("%d bytes, %v", total, err)
	}
	if _, err := readAndSplit(dirs); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dirs[0], roofmt.UIName))
	if err != nil {
		t.Fatal(err)
	}
	if err := grow(dirs[0]); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dirs[0], roofmt.UIName))
	if err != nil || !os.SameFile(before, after) || after.Size() == before.Size() {
		t.Errorf("the file was not changed in place: %v", err)
	}
	f, err := roofmt.Read(context.Background(), dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Losses) > 0 || len(f.Item) == 0 || f.UI.Len() < 3 {
		t.Errorf("%v, %d rows", f.Losses, f.UI.Len())
	}
	if before, err = os.Stat(filepath.Join(dirs[1], roofmt.UIName)); err != nil {
		t.Fatal(err)
	}
	if err := replaced(dirs[1]); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(filepath.Join(dirs[1], roofmt.UIName)); err != nil || os.SameFile(now, before) || now.Size() == before.Size() {
		t.Errorf("another file is not in its place: %v", err)
	}
	for list, ok := range map[string]bool{`{"items":[{"id":"a"},{"id":"b"}]}`: true, `{"items":[{"id":"b"}]}`: false, `{"items":[]}`: false, `x`: false} {
		if err := newest([]byte(list), dirs[0]); (err == nil) != ok {
			t.Errorf("%s: got %v, want (err == nil) = ok", list, err)
		}
	}
}

// TestListPart runs the part once and asserts no time.
func TestListPart(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	var out bytes.Buffer
	if err := run(context.Background(), options{dir: t.TempDir(), parts: "8", quick: true, out: &out}); err != nil {
		t.Fatalf("got %v\n%s, want no error", err, out.String())
	}
	for _, want := range []string{"first list of 40 tasks", "from memory", "again", "half a minute", "has changed", "in place", "has come"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table says nothing of %q:\n%s", want, out.String())
		}
	}
}
