package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// copied are shelves that nobody changes later.
func copied(list []*Shelf) (out []*Shelf) {
	for _, s := range list {
		c := *s
		c.Rows, c.Dirs = slices.Clone(s.Rows), slices.Clone(s.Dirs)
		out = append(out, &c)
	}
	return out
}

// Who has rows from before and reads again has what somebody has who reads for the first
// time, whatever was written, added, cut, damaged or removed in between; and what others
// have in hand stays as it was.
func TestRowsReadAgainAreThoseReadAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and many steps")
	}
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "again")
		check(t, err)
		more := filepath.Join(dir, MoreName)
		want := drawRows(r)
		check(t, want.Write(dir, 3))
		var last *Rows
		var held [][2][]*Shelf // what others have, and what it was
		for range rapid.IntRange(2, 8).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"nothing", "add", "add", "add", "write", "no additions", "cut", "damage", "other build", "no rows"}).Draw(r, "what") {
			case "add":
				now, err := ReopenRows(dir, 3, last)
				check(t, err)
				now.LoadAll()
				have := &Rows{Shelves: copied(now.Shelves)}
				list := step(r, have)
				_, err = now.Add(dir, list)
				check(t, err)
				now.Close()
			case "write":
				check(t, drawRows(r).Write(dir, 3))
			case "no additions":
				_ = os.Remove(more)
			case "cut", "damage":
				b, err := os.ReadFile(more)
				if err != nil || len(b) == 0 {
					break
				}
				at := rapid.IntRange(0, len(b)-1).Draw(r, "at")
				b[at] ^= 1
				if rapid.Bool().Draw(r, "only cut") {
					b = b[:at]
				}
				check(t, os.WriteFile(more, b, 0o600))
			case "other build":
				check(t, drawRows(r).Write(dir, 4))
				if again, err := ReopenRows(dir, 3, last); err == nil {
					r.Fatalf("rows of another build are given: %d", len(again.Shelves))
				}
				check(t, drawRows(r).Write(dir, 3))
			case "no rows":
				check(t, os.Remove(filepath.Join(dir, RowsName)))
				if _, err := ReopenRows(dir, 3, last); err == nil {
					r.Fatal("rows are given that are not there")
				}
				check(t, drawRows(r).Write(dir, 3))
			}
			again, err := ReopenRows(dir, 3, last)
			check(t, err)
			last = again.Share()
			held = append(held, [2][]*Shelf{last.Shelves, copied(last.Shelves)})
			anew, err := OpenRows(dir, 3)
			check(t, err)
			if diff := cmp.Diff(anew.Shelves, again.Shelves, plain); diff != "" {
				r.Fatalf("-anew +again\n%s", diff)
			}
			anew.LoadAll()
			again.LoadAll()
			if diff := cmp.Diff(anew.Shelves, again.Shelves, plain); diff != "" {
				r.Fatalf("with their own bytes: -anew +again\n%s", diff)
			}
			anew.Close()
			again.Close()
		}
		for _, h := range held {
			if diff := cmp.Diff(h[1], h[0], plain); diff != "" {
				r.Fatalf("rows that others have were changed\n%s", diff)
			}
		}
	})
}

// Many rows are decoded in several pieces, and come back in their order with their own
// bytes.
func TestRowsInSeveralPieces(t *testing.T) {
	dir := t.TempDir()
	want := &Shelf{Name: "s"}
	for i := range 2*blockRows + 3 {
		row := Row{ID: fmt.Sprint("task ", i), Traits: new(Traits), Known: i%5 != 0}
		if row.Known {
			row.Workspace, row.Title, row.Whole = fmt.Sprint("/w/", i%3), fmt.Sprint("do ", i), []byte(fmt.Sprintf(`{"n":%d}`, i))
			row.Tags = []string{"a", fmt.Sprint(i % 2)}
		}
		want.Rows = append(want.Rows, row)
	}
	check(t, (&Rows{Shelves: []*Shelf{want, {Name: "other", Rows: want.Rows[1:4]}}}).Write(dir, 3))
	got := loaded(t, dir)
	if diff := cmp.Diff(want.Rows, got.Shelf("s").Rows, plain); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
	if diff := cmp.Diff(want.Rows[1:4], got.Shelf("other").Rows, plain); diff != "" {
		t.Errorf("of the second shelf: -written +read\n%s", diff)
	}
}
