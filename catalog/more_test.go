package catalog

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// step changes rows as a list finds them changed, and says what is new of them.
func step(r *rapid.T, rows *Rows) (list []Addition) {
	for _, s := range rows.Shelves {
		if rapid.Bool().Draw(r, "left alone") {
			continue
		}
		a := Addition{Shelf: &Shelf{Name: s.Name, Tool: s.Tool, ByPath: s.ByPath, Path: s.Path, Tasks: s.Tasks, Seen: s.Seen, Dirs: s.Dirs, Indexes: s.Indexes, Problem: s.Problem}}
		if a.Moved = rapid.Bool().Draw(r, "moved"); a.Moved {
			a.Shelf.Indexes, a.Shelf.Problem = rapid.Uint64().Draw(r, "indexes"), "p"
			a.Shelf.Dirs = []Dir{{"/p", rapid.Uint64().Draw(r, "dir")}}
		}
		now := *a.Shelf
		for i := range s.Rows {
			if rapid.IntRange(0, 3).Draw(r, "gone") == 0 {
				a.Gone = append(a.Gone, i)
			} else {
				now.Rows = append(now.Rows, s.Rows[i])
			}
		}
		for range rapid.IntRange(0, 2).Draw(r, "new") {
			at := rapid.IntRange(0, len(now.Rows)).Draw(r, "at")
			now.Rows = slices.Insert(now.Rows, at, drawRow(r, "new"+rapid.StringMatching(`[a-z]{8}`).Draw(r, "id")))
		}
		for i, row := range now.Rows {
			fresh := !slices.ContainsFunc(s.Rows, func(old Row) bool { return old.ID == row.ID })
			switch {
			case fresh:
			case rapid.Bool().Draw(r, "as it was"):
				continue
			case rapid.IntRange(0, 3).Draw(r, "unknown") == 0:
				now.Rows[i] = Row{ID: row.ID}
			default:
				now.Rows[i] = drawRow(r, row.ID)
			}
			a.At, a.New, a.Shelf.Rows = append(a.At, i), append(a.New, fresh), append(a.Shelf.Rows, now.Rows[i])
		}
		*s = now
		list = append(list, a)
	}
	return list
}

// loaded are the rows of a folder with all that belongs to them.
func loaded(t testing.TB, dir string) *Rows {
	t.Helper()
	r, err := OpenRows(dir, 3)
	check(t, err)
	r.LoadAll()
	r.Close()
	return r
}

// Rows with what was added to them are the rows that a whole write would have kept,
// in the same order.
func TestAdditionsComeBack(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		want := drawRows(r)
		check(t, want.Write(dir, 3))
		for range rapid.IntRange(1, 4).Draw(r, "steps") {
			now, err := OpenRows(dir, 3)
			check(t, err)
			added, err := now.Add(dir, step(r, want))
			now.Close()
			if err != nil || !added {
				r.Fatalf("added %v, %v", added, err)
			}
			if diff := cmp.Diff(want.Shelves, loaded(t, dir).Shelves, plain); diff != "" {
				r.Fatalf("-wanted +got\n%s", diff)
			}
		}
		check(t, loaded(t, dir).Write(dir, 3)) // and all of it is folded
		if diff := cmp.Diff(want.Shelves, loaded(t, dir).Shelves, plain); diff != "" || moreSize(dir) != 0 {
			r.Fatalf("%d bytes are left; -wanted +got\n%s", moreSize(dir), diff)
		}
	})
}

// A row with words of an index in it goes with the indexes as they were when it was read.
// It does not come under the digest of those that somebody else has seen since: nobody
// would compare it with what they say.
func TestAdditionOfARowWithOlderWordsOfAnIndex(t *testing.T) {
	dir := t.TempDir()
	row := func(item uint64) Row {
		return Row{ID: "a", Traits: noTraits, Known: true, Whole: []byte("{}"), Item: item}
	}
	shelf := func(indexes uint64, rows ...Row) *Shelf {
		return &Shelf{Name: "s", Tool: "roo", Tasks: "/t", Indexes: indexes, Rows: rows}
	}
	check(t, (&Rows{Shelves: []*Shelf{shelf(1, row(1))}}).Write(dir, 3))
	early, late := loaded(t, dir), loaded(t, dir)
	for _, a := range []struct {
		by *Rows
		Addition
	}{
		{late, Addition{Shelf: shelf(2, row(2)), At: []int{0}, New: []bool{false}, Moved: true}},
		{early, Addition{Shelf: shelf(1, row(1)), At: []int{0}, New: []bool{false}}},
	} {
		if added, err := a.by.Add(dir, []Addition{a.Addition}); !added || err != nil {
			t.Fatalf("added %v, %v", added, err)
		}
	}
	if got := loaded(t, dir).Shelf("s"); got.Rows[0].Item != got.Indexes {
		t.Errorf("a row of index %d stands under index %d", got.Rows[0].Item, got.Indexes)
	}
}

// Additions that were cut or changed anywhere give the rows as they were after one of
// the steps, and nothing more is added to them.
func TestDamagedAdditions(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		want := drawRows(r)
		check(t, want.Write(dir, 3))
		states := []*Rows{loaded(t, dir)}
		for range rapid.IntRange(1, 3).Draw(r, "steps") {
			now := loaded(t, dir)
			added, err := now.Add(dir, step(r, want))
			if !added {
				r.Fatal(err)
			}
			states = append(states, loaded(t, dir))
		}
		path := filepath.Join(dir, MoreName)
		b, err := os.ReadFile(path)
		check(t, err)
		if len(b) == 0 {
			return
		}
		at := rapid.IntRange(0, len(b)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "cut") {
			b = b[:at]
		} else {
			b[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		}
		check(t, os.WriteFile(path, b, 0o600))
		got := loaded(t, dir)
		if !slices.ContainsFunc(states, func(s *Rows) bool { return cmp.Equal(s.Shelves, got.Shelves, plain) }) {
			r.Fatalf("these rows were never kept: %+v", got.Shelves)
		}
		if added, _ := got.Add(dir, nil); added && got.broken {
			r.Error("more was added behind what is broken")
		}
	})
}

func one(title string) *Rows {
	return &Rows{Shelves: []*Shelf{{Name: "s", Dirs: []Dir{{"/d", 1}}, Rows: []Row{titled("a", title), titled("b", title)}}}}
}

func titled(id, title string) Row {
	return Row{ID: id, Known: true, Title: title, Whole: []byte("{}")}
}

func titlesOf(r *Rows) (out []string) {
	for _, row := range r.Shelves[0].Rows {
		out = append(out, row.ID+" "+row.Title)
	}
	return out
}

// Two that found something at the same time: what each of them replaced is kept. Where
// one of them put in a task, of which the other did not know, the other's is left out,
// and the next one writes all.
func TestAdditionsAtTheSameTime(t *testing.T) {
	replace := func(at int, title string) []Addition {
		return []Addition{{Shelf: &Shelf{Name: "s", Rows: []Row{titled(string(rune('a'+at)), title)}}, At: []int{at}, New: []bool{false}}}
	}
	insert := func(at int, id string) []Addition {
		return []Addition{{Shelf: &Shelf{Name: "s", Dirs: []Dir{{"/d", 2}}, Rows: []Row{titled(id, "new")}}, At: []int{at}, New: []bool{true}, Moved: true}}
	}
	for _, c := range []struct {
		name          string
		first, second []Addition
		want          []string
		again         bool
	}{
		{"both replace", replace(0, "x"), replace(1, "y"), []string{"a x", "b y"}, true},
		{"the same one", replace(0, "x"), replace(0, "y"), []string{"a y", "b old"}, true},
		{"both put in", insert(1, "aa"), insert(1, "ab"), []string{"a old", "aa new", "b old"}, false},
		{"one replaces what moved", insert(1, "aa"), replace(1, "y"), []string{"a old", "aa new", "b old"}, false},
		{"one puts in", replace(1, "x"), insert(0, "0"), []string{"a old", "b x"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			check(t, one("old").Write(dir, 3))
			a, b := loaded(t, dir), loaded(t, dir)
			for _, w := range []struct {
				rows *Rows
				list []Addition
			}{{a, c.first}, {b, c.second}} {
				if added, err := w.rows.Add(dir, w.list); !added || err != nil {
					t.Fatal(added, err)
				}
			}
			got := loaded(t, dir)
			if diff := cmp.Diff(c.want, titlesOf(got)); diff != "" {
				t.Error(diff)
			}
			if added, err := got.Add(dir, replace(0, "z")); added != c.again || err != nil {
				t.Errorf("the next one added: %v, %v", added, err)
			}
			if !a.Changed(dir) {
				t.Error("the first one does not know that there is more")
			}
		})
	}
}

// What is added to rows that were replaced meanwhile is no part of the new ones, nor
// does it keep others from adding; rows that get too much are written anew.
func TestAdditionsToOtherRows(t *testing.T) {
	dir := t.TempDir()
	check(t, one("old").Write(dir, 3))
	old := loaded(t, dir)
	check(t, one("new").Write(dir, 3))
	change := []Addition{{Shelf: &Shelf{Name: "s", Rows: []Row{titled("a", "x")}}, At: []int{0}, New: []bool{false}}}
	if added, _ := old.Add(dir, change); added {
		t.Error("added to rows that are gone")
	}
	check(t, os.WriteFile(filepath.Join(dir, MoreName), old.piece(change), 0o600)) // as if it were written a moment later
	got := loaded(t, dir)
	if added, _ := got.Add(dir, change); !added || titlesOf(got)[0] != "a new" || titlesOf(loaded(t, dir))[0] != "a x" {
		t.Errorf("%q, then %q", titlesOf(got), titlesOf(loaded(t, dir)))
	}
	change[0].Shelf.Rows[0].Whole = []byte(strings.Repeat("x", 1<<20))
	if added, err := loaded(t, dir).Add(dir, change); added || err != nil {
		t.Errorf("a megabyte was added: %v", err)
	}
	none := &Rows{}
	if added, err := none.Add(dir, change); added || err != nil {
		t.Errorf("added to nothing: %v", err)
	}
}

// Whatever an addition holds, reading it ends without a crash.
func FuzzApply(f *testing.F) {
	rows := one("old")
	p := rows.piece([]Addition{{Shelf: &Shelf{Name: "s", Rows: []Row{titled("a", "x"), titled("c", "y")}}, At: []int{0, 1}, New: []bool{false, true}, Gone: []int{1}, Moved: true}})
	f.Add(string(p[moreHead:]))
	f.Fuzz(func(t *testing.T, text string) {
		rows := one("old")
		rows.apply(text)
		rows.settle()
		if rows.LoadAll(); len(rows.Shelves) != 1 {
			t.Error("another shelf")
		}
	})
}

// TestAddUntilKilled is no test: the process that TestKilledAdders kills.
func TestAddUntilKilled(t *testing.T) {
	dir := os.Getenv("CATALOG_TEST_ADD")
	if dir == "" {
		t.Skip("only as a child")
	}
	for i := 0; ; i++ {
		r, err := OpenRows(dir, 3)
		check(t, err)
		title := strings.Repeat(fmt.Sprint(i, " "), 2000)
		list := []Addition{{Shelf: &Shelf{Name: "s", Rows: []Row{titled("a", title), titled("b", title)}}, At: []int{0, 1}, New: []bool{false, false}}}
		added, err := r.Add(dir, list)
		if check(t, err); !added {
			check(t, one(title).Write(dir, 3))
		}
		r.Close()
		fmt.Println("\nadded", i)
	}
}

// One that is killed while it adds or writes leaves both rows of one moment.
func TestKilledAdders(t *testing.T) {
	dir := t.TempDir()
	check(t, one("old").Write(dir, 3))
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAddUntilKilled$", "-test.v")
		cmd.Env = append(os.Environ(), "CATALOG_TEST_ADD="+dir)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		lines, seen := bufio.NewScanner(out), 0
		for seen < 20+7*round && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "added ") {
				seen++
			}
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		got := loaded(t, dir)
		if rows := got.Shelves[0].Rows; len(rows) != 2 || rows[0].Title != rows[1].Title || rows[0].Title == "old" {
			t.Errorf("round %d: %.40q", round, titlesOf(got))
		}
	}
}

// When all was looked at is known of these rows and these storages only.
func TestLooked(t *testing.T) {
	dir := t.TempDir()
	check(t, one("old").Write(dir, 3))
	r, at := loaded(t, dir), time.Unix(1700000000, 5)
	if !r.Looked(dir, 7).IsZero() {
		t.Error("nobody looked")
	}
	check(t, r.NoteLook(dir, 7, at))
	if got := loaded(t, dir).Looked(dir, 7); !got.Equal(at) {
		t.Error(got)
	}
	if !r.Looked(dir, 8).IsZero() || !(*Rows)(nil).Looked(dir, 7).IsZero() {
		t.Error("other storages")
	}
	b, err := os.ReadFile(filepath.Join(dir, LookedName))
	check(t, err)
	b[35] ^= 1
	check(t, os.WriteFile(filepath.Join(dir, LookedName), b, 0o600))
	if !r.Looked(dir, 7).IsZero() {
		t.Error("a damaged note is believed")
	}
	check(t, r.NoteLook(dir, 7, at))
	check(t, one("new").Write(dir, 3))
	if !loaded(t, dir).Looked(dir, 7).IsZero() {
		t.Error("rows that somebody wrote since are believed")
	}
}
