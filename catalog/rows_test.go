package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// plain leaves out where in a file rows stood.
var plain = cmp.Options{cmpopts.IgnoreUnexported(Row{}), cmpopts.EquateEmpty(), cmp.Transformer("traits", func(t *Traits) Traits {
	if t == nil { // no row out of a file has none
		return Traits{}
	}
	return *t
})}

func drawRow(r *rapid.T, id string) Row {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "idle", "/w", "sonnet"}), rapid.StringN(0, 20, 60), rapid.Just("\xff\x00 bytes"))
	tag := rapid.StringMatching(`[a-z]{1,5}`)
	row := Row{
		ID: id, Known: true, Title: text.Draw(r, "title"),
		Traits: &Traits{
			Tool: text.Draw(r, "tool"), Status: text.Draw(r, "status"), Workspace: text.Draw(r, "workspace"), Model: text.Draw(r, "model"),
			Parent: text.Draw(r, "parent"), Tags: rapid.SliceOfN(tag, 0, 3).Draw(r, "tags"), Watch: text.Draw(r, "watch"),
		},
		TS: rapid.Int64().Draw(r, "ts"), Cost: rapid.Int64().Draw(r, "cost"), Tokens: rapid.Int64().Draw(r, "tokens"), Size: rapid.Int64Min(0).Draw(r, "size"),
		Digest: rapid.Uint64().Draw(r, "digest"), Near: rapid.Uint64().Draw(r, "near"), Wrote: rapid.Int64().Draw(r, "wrote"), Item: rapid.Uint64().Draw(r, "item"), Sizes: rapid.Uint64().Draw(r, "sizes"),
		Whole: []byte(rapid.StringN(1, 40, 200).Draw(r, "whole")),
	}
	for i, on := range []*bool{&row.Empty, &row.Damaged, &row.Pinned, &row.Priced, &row.Logged, &row.Unfinished} {
		*on = rapid.Bool().Draw(r, fmt.Sprint("flag", i))
	}
	if rapid.Bool().Draw(r, "content") {
		row.Content[3] = 7
	}
	return row
}

func drawRows(r *rapid.T) *Rows {
	out := &Rows{}
	for i := range rapid.IntRange(0, 3).Draw(r, "shelves") {
		s := &Shelf{Name: fmt.Sprint("shelf", i), Tool: "roo", ByPath: "cline", Path: "/p", Tasks: "/p/tasks", Seen: 5, Indexes: 9, Dirs: []Dir{{"/p", 1}, {"/p/tasks", 1 << 63}}}
		for j := range rapid.IntRange(0, 4).Draw(r, "rows") {
			if rapid.IntRange(0, 4).Draw(r, "known") == 0 {
				s.Rows = append(s.Rows, *NewRow(fmt.Sprint(j)))
			} else {
				s.Rows = append(s.Rows, drawRow(r, fmt.Sprint(j)))
			}
		}
		out.Shelves = append(out.Shelves, s)
	}
	return out
}

// Rows come back as they were given, one by one and all at once.
func TestRowsComeBack(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		want := drawRows(r)
		check(t, want.Write(dir, 3))
		one, err := OpenRows(dir, 3)
		check(t, err)
		defer one.Close()
		all, err := OpenRows(dir, 3)
		check(t, err)
		defer all.Close()
		all.LoadAll()
		for _, s := range one.Shelves {
			for i := range s.Rows {
				check(t, one.Load(&s.Rows[i]))
			}
		}
		for _, got := range []*Rows{one, all} {
			if diff := cmp.Diff(want.Shelves, got.Shelves, plain); diff != "" {
				r.Fatalf("-given +back\n%s", diff)
			}
		}
		check(t, all.Write(dir, 3)) // what was read can be written again
		again, err := OpenRows(dir, 3)
		check(t, err)
		defer again.Close()
		again.LoadAll()
		if diff := cmp.Diff(want.Shelves, again.Shelves, plain); diff != "" {
			r.Fatalf("-given +after the second time\n%s", diff)
		}
	})
}

// A file that was cut or changed anywhere gives no rows, or rows of which each that
// loads is as it was written: never another one.
func TestDamagedRowsAreNeverWrongOnes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		want := drawRows(r)
		check(t, want.Write(dir, 3))
		path := filepath.Join(dir, RowsName)
		b, err := os.ReadFile(path)
		check(t, err)
		at := rapid.IntRange(0, len(b)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "cut") {
			b = b[:at]
		} else {
			b[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		}
		check(t, os.WriteFile(path, b, 0o600))
		got, err := OpenRows(dir, 3)
		if err != nil {
			if !errors.Is(err, ErrRows) {
				r.Errorf("%v is not told as unusable", err)
			}
			return
		}
		defer got.Close()
		got.LoadAll()
		for i, s := range got.Shelves {
			for j := range s.Rows {
				row := s.Rows[j]
				if err := got.Load(&row); err != nil || !row.Known {
					continue
				}
				if diff := cmp.Diff(want.Shelves[i].Rows[j], row, plain); diff != "" {
					r.Errorf("-written +loaded\n%s", diff)
				}
			}
		}
	})
}

// Whatever a head holds, reading it ends without a crash and without much memory.
func FuzzUnpack(f *testing.F) {
	var p packer
	p.shelves([]*Shelf{{Name: "n", Dirs: []Dir{{"/d", 1}}, Rows: []Row{{ID: "a", Known: true, Traits: &Traits{Tags: []string{"x", "y"}}, Whole: []byte("{}")}, {ID: "b"}}}})
	f.Add(string(p.head))
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, text string) {
		u := unpacker{text: text}
		if list := u.shelves(); !u.bad && len(list) > len(text) {
			t.Errorf("%d shelves out of %d bytes", len(list), len(text))
		}
	})
}

func TestRowsOfAnotherBuild(t *testing.T) {
	dir := t.TempDir()
	check(t, (&Rows{Shelves: []*Shelf{{Name: "s"}}}).Write(dir, 1))
	if _, err := OpenRows(dir, 2); !errors.Is(err, ErrRows) {
		t.Errorf("error %v", err)
	}
	if r, err := OpenRows(dir, 1); err != nil || r.Shelf("s") == nil || r.Shelf("other") != nil {
		t.Errorf("error %v", err)
	} else {
		r.Close()
	}
}

// Who has rows open reads them to the end, whatever is put in their place meanwhile,
// and can tell that this happened.
func TestRowsThatAreReplacedWhileTheyAreRead(t *testing.T) {
	dir := t.TempDir()
	rows := func(title string) *Rows {
		return &Rows{Shelves: []*Shelf{{Name: "s", Rows: []Row{{ID: "a", Known: true, Title: title, Whole: []byte(title)}}}}}
	}
	check(t, rows("old").Write(dir, 1))
	r, err := OpenRows(dir, 1)
	check(t, err)
	defer r.Close()
	if r.Changed(dir) {
		t.Error("nobody changed it")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := rows(strings.Repeat("new", 1000)).Write(dir, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	row := &r.Shelves[0].Rows[0]
	if err := r.Load(row); err != nil || row.Title != "old" || !r.Changed(dir) {
		t.Errorf("%q, %v, changed %v", row.Title, err, r.Changed(dir))
	}
	left, err := os.ReadDir(dir)
	check(t, err)
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// One number more, less or otherwise makes another digest.
func TestDigestsTellNumbersApart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(rapid.Uint64(), 1, 6).Draw(r, "numbers")
		at := rapid.IntRange(0, len(list)-1).Draw(r, "at")
		other := append([]uint64{}, list...)
		other[at] += rapid.Uint64Min(1).Draw(r, "more")
		digest := func(list []uint64) (out uint64) {
			for _, n := range list {
				out = Mix(out, n)
			}
			return out
		}
		if digest(list) == digest(other) {
			r.Errorf("%v and %v", list, other)
		}
		text := rapid.String().Draw(r, "text")
		if MixText(1, text) == MixText(1, text+"\x00") {
			r.Errorf("%q and with a zero", text)
		}
	})
}
