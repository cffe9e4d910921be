package roofmt_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/roofmt"
)

func TestCorpusRead(t *testing.T) {
	tools, losses := map[roofmt.Tool]int{}, 0
	for _, dir := range conformance.CorpusFolders(t, roofmt.IsFolder) {
		before := listing(t, dir)
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Errorf("%s: got %v, want no error", dir, err)
			continue
		}
		tools[f.Tool]++
		if damaged(f) {
			losses++
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
	t.Logf("tools %v, damaged %d", tools, losses)
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

// TestCorpusRoundTrip writes each folder elsewhere, sound files element by
// element, and expects the same bytes.
func TestCorpusRoundTrip(t *testing.T) {
	conformance.CorpusTally(t, conformance.CorpusFolders(t, roofmt.IsFolder), roundTrip)
}

func roundTrip(t *testing.T, dir string) {
	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
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
		t.Fatal(err)
	}
	for _, r := range list {
		want, err1 := os.ReadFile(filepath.Join(dir, r.Name))
		got, err2 := os.ReadFile(filepath.Join(out, r.Name))
		if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
			t.Errorf("%s: %d bytes became %d (%v %v)", r.Name, len(want), len(got), err1, err2)
		}
	}
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
