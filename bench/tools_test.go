package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolPart runs the part once and asserts no time; the part itself fails when a
// search finds what is not there, or not what is.
func TestToolPart(t *testing.T) {
	if grep("x") == nil {
		t.Skip("no grep here")
	}
	var out bytes.Buffer
	rows, err := fileTools(context.Background(), options{dir: t.TempDir(), quick: true, out: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a rare word", "nowhere", "a pattern", "letter case", "list of 200 files"} {
		found := false
		for _, r := range rows {
			found = found || strings.Contains(r.what, want) && strings.HasSuffix(r.ratio, "x")
		}
		if !found && !strings.HasPrefix(want, "list") {
			t.Errorf("no row for %q: %+v", want, rows)
		}
	}
}

// Two runs measure the same files.
func TestSourceTreeIsTheSameEveryTime(t *testing.T) {
	read := func() map[string]string {
		root := t.TempDir()
		if err := sourceTree(root, 3, 9); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				data, _ := os.ReadFile(path)
				out[strings.TrimPrefix(path, root)] = string(data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a := read()
	if len(a) != 28 || !maps.Equal(a, read()) {
		t.Errorf("%d files, or others the second time", len(a))
	}
}
