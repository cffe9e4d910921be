package roofmt_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// corpusFolders lists every directory below ROOST_CORPUS that holds a task file.
func corpusFolders(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("ROOST_CORPUS")
	if dir == "" {
		t.Skip("ROOST_CORPUS is not set")
	}
	var list []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if roofmt.IsFolder(path) {
			list = append(list, path)
		}
		return nil
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("no task folder below %s (%v)", dir, err)
	}
	return list
}

func TestCorpusRead(t *testing.T) {
	tools, damaged := map[roofmt.Tool]int{}, 0
	for _, dir := range corpusFolders(t) {
		before := listing(t, dir)
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		tools[f.Origin.Tool]++
		if f.Damaged() {
			damaged++
			t.Logf("%s: %+v", filepath.Base(dir), f.Losses)
		}
		for _, d := range []*roofmt.Document{f.UI, f.API} {
			for raw, err := range d.All() {
				if err != nil || !esjson.Valid(raw) {
					t.Errorf("%s/%s: an element that is not JSON (%v)", dir, d.Name, err)
				}
			}
			// The standard library must agree on which files are sound.
			if data, err := os.ReadFile(filepath.Join(dir, d.Name)); err == nil {
				if sound := esjson.Valid(data) && esjson.TypeOf(data) == esjson.TypeArray; sound != (d.State == roofmt.Present) {
					t.Errorf("%s/%s: state %v, sound %v", dir, d.Name, d.State, sound)
				}
			} else if d.State != roofmt.Missing {
				t.Errorf("%s/%s: state %v of a missing file", dir, d.Name, d.State)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if after := listing(t, dir); after != before {
			t.Errorf("%s: reading changed the folder:\n%s\n%s", dir, before, after)
		}
	}
	t.Logf("tools %v, damaged %d", tools, damaged)
}

// listing describes the folder's entries with sizes and times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Mode(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

func TestCorpusRoundTrip(t *testing.T) {
	folders := corpusFolders(t)
	passed := 0
	for _, dir := range folders {
		if roundTrip(t, dir) {
			passed++
		}
	}
	fmt.Printf("corpus: %d/%d\n", passed, len(folders))
	if passed != len(folders) {
		t.Errorf("%d of %d folders did not come back", len(folders)-passed, len(folders))
	}
}

// roundTrip writes a folder elsewhere: sound files element by element, and expects the same bytes.
func roundTrip(t *testing.T, dir string) bool {
	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		t.Errorf("%s: %v", dir, err)
		return false
	}
	defer f.Close()
	out := t.TempDir()
	var list []roofmt.Replacement
	for _, d := range []*roofmt.Document{f.UI, f.API} {
		if d.State != roofmt.Present {
			continue
		}
		list = append(list, roofmt.Replacement{Name: d.Name, Write: func(w io.Writer) error {
			data, err := os.ReadFile(filepath.Join(dir, d.Name))
			if err != nil {
				return err
			}
			if !bytes.ContainsAny(data[:min(2, len(data))], " \n") && data[len(data)-1] == ']' {
				return roofmt.WriteArray(w, untouched(d)) // as Roo wrote it: from its elements
			}
			_, err = d.WriteTo(w) // pretty-printed: an unchanged file is copied
			return err
		}})
	}
	if f.Item != nil {
		list = append(list, roofmt.Replacement{Name: roofmt.ItemName, Bytes: f.Item})
	}
	if f.Metadata != nil {
		list = append(list, roofmt.Replacement{Name: roofmt.MetadataName, Bytes: f.Metadata})
	}
	if err := roofmt.Replace(context.Background(), out, list, roofmt.Options{}); err != nil {
		t.Errorf("%s: %v", dir, err)
		return false
	}
	ok := true
	for _, r := range list {
		want, err1 := os.ReadFile(filepath.Join(dir, r.Name))
		got, err2 := os.ReadFile(filepath.Join(out, r.Name))
		if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
			t.Errorf("%s/%s: %d bytes became %d (%v %v)", dir, r.Name, len(want), len(got), err1, err2)
			ok = false
		}
	}
	return ok
}

func untouched(d *roofmt.Document) iter.Seq2[roofmt.Element, error] {
	return func(yield func(roofmt.Element, error) bool) {
		for raw, err := range d.All() {
			if !yield(roofmt.Element{Raw: raw}, err) {
				return
			}
		}
	}
}
