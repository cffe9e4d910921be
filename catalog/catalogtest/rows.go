package catalogtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

const (
	testBuild = 1<<63 + 7
	patience  = 5 * time.Second
)

func keepRows(t testing.TB, db Catalog, changes ...catalog.Change) {
	t.Helper()
	fixture.NoError(t, db.Keep(t.Context(), testBuild, changes, 0, patience))
}

// rowsOf returns the rows of a catalogue with their summaries, by source.
func rowsOf(t testing.TB, db Catalog) map[string][]catalog.Row {
	t.Helper()
	list, err := db.Rows(t.Context(), testBuild, catalog.Summaries)
	fixture.NoError(t, err)
	out := map[string][]catalog.Row{}
	for _, s := range list {
		out[s.Name] = s.Rows
	}
	return out
}

func drawRow(r *rapid.T, id string) catalog.Row {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "idle", "/w", "sonnet"}), rapid.StringN(0, 20, 60), rapid.Just("\xff\x00 bytes"))
	row := catalog.Row{
		ID: id, Known: true, Title: text.Draw(r, "title"),
		Tool: text.Draw(r, "tool"), Status: text.Draw(r, "status"), Workspace: text.Draw(r, "workspace"),
		Model: text.Draw(r, "model"), Parent: text.Draw(r, "parent"), Files: text.Draw(r, "files"),
		Tags: rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,5}`), 0, 3).Draw(r, "tags"),
		TS:   rapid.Int64().Draw(r, "ts"),
		Cost: rapid.Int64().Draw(r, "cost"), Tokens: rapid.Int64().Draw(r, "tokens"), Size: rapid.Int64().Draw(r, "size"),
		Digest:  rapid.Uint64().Draw(r, "digest"),
		Folders: rapid.Uint64().Draw(r, "folders"), Written: rapid.Int64().Draw(r, "written"), Item: rapid.Uint64().Draw(r, "item"),
		Indexes: rapid.Uint64().Draw(r, "indexes"), Sizes: rapid.Uint64().Draw(r, "sizes"),
		Summary: []byte(rapid.StringN(1, 40, 200).Draw(r, "summary")),
	}
	for i, on := range []*bool{&row.Empty, &row.Damaged, &row.Pinned, &row.Priced, &row.Logged, &row.Unfinished} {
		*on = rapid.Bool().Draw(r, fmt.Sprint("flag", i))
	}
	if rapid.Bool().Draw(r, "content") {
		row.Content[3] = 7
	}
	return row
}

func drawChange(r *rapid.T, name string) catalog.Change {
	ch := catalog.Change{Reset: true, Source: catalog.Source{
		Name: name, Tool: "roo", ByPath: "cline", Path: "/p", Tasks: "/p/tasks", Problem: "none\x00", Seen: 5, Compared: 6, Indexes: 1 << 63,
	}}
	for j := range rapid.IntRange(0, 4).Draw(r, "rows") {
		row := drawRow(r, fmt.Sprint(j))
		ch.Put = append(ch.Put, &row)
	}
	return ch
}

func testRowsComeBack(t *testing.T, place Backend) {
	db := place.Open(t)
	rapid.Check(t, func(r *rapid.T) {
		changes := []catalog.Change{drawChange(r, "one"), drawChange(r, "two")}
		keepRows(t, db, changes...)
		for extent, without := range map[catalog.Extent]cmp.Option{
			catalog.Bare: cmpopts.IgnoreFields(catalog.Row{}, "Title", "Summary"), catalog.Titles: cmpopts.IgnoreFields(catalog.Row{}, "Summary"), catalog.Summaries: nil,
		} {
			got, err := db.Rows(t.Context(), testBuild, extent)
			fixture.NoError(t, err)
			for i, ch := range changes {
				if diff := cmp.Diff(ch.Source, got[i].Source); diff != "" {
					r.Fatalf("source: -given +back\n%s", diff)
				}
				back := sorted(got[i].Rows)
				opts := []cmp.Option{cmpopts.EquateEmpty()}
				if without != nil {
					opts = append(opts, without)
				}
				if diff := cmp.Diff(ch.Put, back, opts...); diff != "" {
					r.Fatalf("rows read to extent %d: -given +back\n%s", extent, diff)
				}
				fixture.NoError(t, db.Summaries(t.Context(), testBuild, ch.Source.Name, back))
				if diff := cmp.Diff(ch.Put, back, cmpopts.EquateEmpty()); diff != "" {
					r.Fatalf("one by one: -given +back\n%s", diff)
				}
			}
		}
		if got, err := db.Rows(t.Context(), testBuild+1, catalog.Summaries); err != nil || len(got) != 0 {
			r.Fatalf("another build gets %d sources, %v; want none", len(got), err)
		}
	})
}

func testRowsChange(t *testing.T, place Backend) {
	db := place.Open(t)
	row := func(id, title string) *catalog.Row {
		return &catalog.Row{ID: id, Known: true, Digest: 1, Title: title, Summary: []byte(title)}
	}
	source := func(name string, seen int64) catalog.Source { return catalog.Source{Name: name, Seen: seen} }
	titles := func() string {
		var out []string
		for _, name := range []string{"a", "b"} {
			for _, r := range sorted(rowsOf(t, db)[name]) {
				out = append(out, fmt.Sprintf("%s/%s=%s,%d", name, r.ID, r.Title, r.Content[0]))
			}
		}
		return strings.Join(out, " ")
	}
	updated, missed := *row("1", "x"), *row("1", "x")
	updated.Content[0], missed.Content[0], missed.Digest = 9, 8, 2
	for _, c := range []struct {
		change catalog.Change
		forget int64
		want   string
	}{
		{catalog.Change{Source: source("a", 10), Put: []*catalog.Row{row("1", "x"), row("2", "y")}}, 0, "a/1=x,0 a/2=y,0"},
		{catalog.Change{Source: source("b", 20), Put: []*catalog.Row{row("1", "z")}}, 0, "a/1=x,0 a/2=y,0 b/1=z,0"},
		{catalog.Change{Source: source("a", 10), Update: []*catalog.Row{&updated}}, 0, "a/1=x,9 a/2=y,0 b/1=z,0"},
		{catalog.Change{Source: source("a", 10), Update: []*catalog.Row{&missed}}, 0, "a/1=x,9 a/2=y,0 b/1=z,0"}, // it changed since
		{catalog.Change{Source: source("a", 10), Gone: []string{"1", "nosuch"}}, 0, "a/2=y,0 b/1=z,0"},
		{catalog.Change{Source: source("b", 20), Put: []*catalog.Row{row("2", "w")}, Reset: true}, 0, "a/2=y,0 b/2=w,0"},
		{catalog.Change{Source: source("b", 30)}, 11, "b/2=w,0"},
	} {
		fixture.NoError(t, db.Keep(t.Context(), testBuild, []catalog.Change{c.change}, c.forget, patience))
		if got := titles(); got != c.want {
			t.Fatalf("after %+v: got %q, want %q", c.change, got, c.want)
		}
	}
	fixture.NoError(t, db.ForgetRows(t.Context()))
	if got := titles(); got != "" {
		t.Errorf("after all were forgotten: got %q", got)
	}
}

// A list that read no titles may keep what it found out about rows; their titles and summaries stay.
func testUpdatedRowsKeepTheirPages(t *testing.T, place Backend) {
	db := place.Open(t)
	var put []*catalog.Row
	for _, title := range []string{"title", ""} {
		put = append(put, &catalog.Row{ID: "task " + title, Known: true, Digest: 5, Title: title, Summary: []byte("summary")})
	}
	keepRows(t, db, catalog.Change{Source: catalog.Source{Name: "s"}, Reset: true, Put: put})
	for range 2 {
		list, err := db.Rows(t.Context(), testBuild, catalog.Bare)
		fixture.NoError(t, err)
		for _, r := range sorted(list[0].Rows) {
			r.Indexes++
			keepRows(t, db, catalog.Change{Source: list[0].Source, Update: []*catalog.Row{r}})
		}
	}
	for _, want := range put {
		want.Indexes = 2
	}
	slices.SortFunc(put, func(a, b *catalog.Row) int { return strings.Compare(a.ID, b.ID) })
	got := rowsOf(t, db)["s"]
	if diff := cmp.Diff(put, sorted(got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rows that were updated: -want +got\n%s", diff)
	}
}

// A program that read rows before another build of it kept others gets none of the other build's rows.
func testRowsOfTwoBuilds(t *testing.T, place Backend) {
	db := place.Open(t)
	for i, c := range []struct {
		build uint64
		reset bool
		id    string
	}{{1, true, "a"}, {2, true, "b"}, {1, false, "c"}, {2, true, "d"}, {2, false, "e"}} {
		row := &catalog.Row{ID: c.id, Known: true, Tokens: int64(c.build), Summary: []byte("{}")}
		change := catalog.Change{Source: catalog.Source{Name: "s"}, Reset: c.reset, Put: []*catalog.Row{row}}
		fixture.NoError(t, db.Keep(t.Context(), c.build, []catalog.Change{change}, 0, patience))
		for build := uint64(1); build <= 2; build++ {
			got, err := db.Rows(t.Context(), build, catalog.Bare)
			fixture.NoError(t, err)
			for _, source := range got {
				for _, r := range source.Rows {
					if r.Tokens != int64(build) {
						t.Errorf("after change %d: build %d got the row %s of build %d, want its own rows", i, build, r.ID, r.Tokens)
					}
				}
			}
		}
	}
	if got, err := db.Rows(t.Context(), 2, catalog.Bare); err != nil || len(got) != 1 || len(got[0].Rows) != 2 {
		t.Errorf("got %+v, %v, want the two rows of the last build", got, err)
	}
}

func testRowsUnderConcurrentWriters(t *testing.T, place Backend) {
	made := func(who, turn int) catalog.Change {
		mark := fmt.Sprintf("%d/%d", who, turn)
		ch := catalog.Change{Source: catalog.Source{Name: "s", Problem: mark}, Reset: true}
		for i := range 20 + turn%7 {
			ch.Put = append(ch.Put, &catalog.Row{ID: fmt.Sprint(i), Known: true, Model: mark, Title: mark, Summary: []byte(mark)})
		}
		return ch
	}
	keepRows(t, place.Open(t), made(9, 0))
	var all sync.WaitGroup
	for who := range 3 {
		db := place.Open(t)
		all.Go(func() {
			for turn := range 20 {
				if err := db.Keep(t.Context(), testBuild, []catalog.Change{made(who, turn)}, 0, time.Minute); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		db := place.Open(t)
		all.Go(func() {
			for range 50 {
				list, err := db.Rows(t.Context(), testBuild, catalog.Summaries)
				if err != nil || len(list) != 1 || len(list[0].Rows) < 20 {
					t.Errorf("%d sources, %v", len(list), err)
					return
				}
				for _, row := range list[0].Rows {
					if row.Model != list[0].Problem || row.Title != row.Model {
						t.Errorf("row %s of the change %s is of %s", row.ID, list[0].Problem, row.Model)
					}
				}
			}
		})
	}
	all.Wait()
}
