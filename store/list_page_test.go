package store

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
)

// Tasks come and go between two pages. One that was there all the time is on exactly one page.
func TestPagesHaveNoGapAndNoRepeat(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		srcs := []*listed{{Source: Source{Name: "roo"}}, {Source: Source{Name: "cline"}}}
		made := 0
		task := func(all []*entry) *entry {
			made++
			row := &catalog.Row{ID: fmt.Sprint("task ", made), TS: rapid.Int64Range(0, 5).Draw(r, "ts"), Cost: rapid.Int64Range(0, 3).Draw(r, "cost"), Pinned: rapid.IntRange(0, 4).Draw(r, "pin") == 0}
			if parents := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return e.row.Parent != "" }); len(parents) > 0 && rapid.Bool().Draw(r, "child") {
				row.Parent = parents[rapid.IntRange(0, len(parents)-1).Draw(r, "parent")].row.ID
			}
			return &entry{row: row, src: rapid.SampledFrom(srcs).Draw(r, "source")}
		}
		var all []*entry
		for range rapid.IntRange(0, 20).Draw(r, "tasks") {
			all = append(all, task(all))
		}
		f := Filter{TaskFilter: api.TaskFilter{
			Sort:  rapid.SampledFrom([]string{"", "oldest", "cost", "tokens"}).Draw(r, "sort"),
			Tree:  rapid.Bool().Draw(r, "tree"),
			Limit: rapid.IntRange(1, 6).Draw(r, "limit"),
		}}
		began := slices.Clone(all)
		seen := map[*entry]int{}
		for pages := 0; ; pages++ {
			if pages > 100 {
				r.Fatal("more than 100 pages of at most 40 tasks")
			}
			after, err := f.after()
			if err != nil {
				r.Fatal(err)
			}
			rows, _, next := f.pageOf(all, after)
			if len(rows) == 0 && next != "" {
				r.Fatalf("an empty page names a next one: %s", next)
			}
			for _, ln := range rows {
				seen[ln]++
			}
			if next == "" {
				break
			}
			f.Cursor = next
			if rapid.Bool().Draw(r, "new") {
				all = append(all, task(nil))
			}
			if rapid.Bool().Draw(r, "gone") { // a task without subtasks: without its parent one stands elsewhere in a tree
				at := rapid.IntRange(0, len(all)-1).Draw(r, "which")
				if !slices.ContainsFunc(all, func(e *entry) bool { return e.row.Parent == all[at].row.ID }) {
					all = slices.Delete(slices.Clone(all), at, at+1)
				}
			}
		}
		for _, ln := range began {
			if n := seen[ln]; n > 1 || n == 0 && slices.Contains(all, ln) {
				r.Errorf("%s is on %d pages, want 1", ln.row.ID, n)
			}
		}
	})
}

// What a task cost is perhaps not known: in the order by cost it comes after those that cost nothing.
func TestUnknownCostComesLast(t *testing.T) {
	src := &listed{Source: Source{Name: "roo"}}
	var all []*entry
	for i, row := range []catalog.Row{{ID: "newest, unknown"}, {ID: "free", Priced: true}, {ID: "dear", Cost: 5, Priced: true}, {ID: "oldest, free", Priced: true}} {
		row.TS = int64(9 - i)
		all = append(all, &entry{row: &row, src: src})
	}
	rows, _, _ := Filter{TaskFilter: api.TaskFilter{Sort: "cost", Limit: 9}}.pageOf(all, nil)
	var ids []string
	for _, ln := range rows {
		ids = append(ids, ln.row.ID)
	}
	if got, want := fmt.Sprint(ids), "[dear free oldest, free newest, unknown]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Folders that name each other as parents stay in the order, and on one page.
func TestAPageOfATreeWithACircle(t *testing.T) {
	src := &listed{Source: Source{Name: "roo"}}
	var all []*entry
	for i, parent := range []string{"3", "", "", "0"} {
		all = append(all, &entry{src: src, row: &catalog.Row{Parent: parent, ID: fmt.Sprint(i), TS: int64(i)}})
	}
	var pages [][]string
	for f := (Filter{TaskFilter: api.TaskFilter{Tree: true, Limit: 1}}); ; {
		after, err := f.after()
		if err != nil {
			t.Fatal(err)
		}
		rows, _, next := f.pageOf(all, after)
		var ids []string
		for _, ln := range rows {
			ids = append(ids, ln.row.ID)
		}
		if pages = append(pages, ids); next == "" {
			break
		}
		f.Cursor = next
	}
	if got, want := fmt.Sprint(pages), "[[3 0] [2] [1]]"; got != want {
		t.Errorf("pages are %s, want %s", got, want)
	}
}

func TestCursorsThatNoListGave(t *testing.T) {
	given := Filter{TaskFilter: api.TaskFilter{Sort: "cost"}}.cursor(position{ts: 7, amount: -3, source: "a.b", id: "x\x00\"y"})
	for cursor, valid := range map[string]bool{"": true, given: true, "2": false, "newest.0.7.0.YQ": false, given + "!": false, given + ".0": false, "cost.0.x.0.YQ": false} {
		if f := (Filter{TaskFilter: api.TaskFilter{Sort: "cost", Cursor: cursor}}); f.ValidCursor() != valid {
			t.Errorf("cursor %q: valid is %v, want %v", cursor, !valid, valid)
		}
	}
	p, err := Filter{TaskFilter: api.TaskFilter{Sort: "cost", Cursor: given}}.after()
	if want := (position{ts: 7, amount: -3, source: "a.b", id: "x\x00\"y"}); err != nil || *p != want {
		t.Errorf("the position is %+v, %v; want %+v", p, err, want)
	}
}
