package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"pgregory.net/rapid"
)

const testBuild = 1<<63 + 7

func keepRows(t testing.TB, db *DB, changes ...Change) {
	t.Helper()
	fixture.NoError(t, db.Keep(t.Context(), testBuild, changes, 0, patience))
}

// rowsOf are the rows of a catalogue, with everything, by source.
func rowsOf(t testing.TB, db *DB) map[string][]Row {
	t.Helper()
	list, err := db.Rows(t.Context(), testBuild, Summaries)
	fixture.NoError(t, err)
	out := map[string][]Row{}
	for _, s := range list {
		out[s.Name] = s.Rows
	}
	return out
}

func drawRow(r *rapid.T, id string) Row {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "idle", "/w", "sonnet"}), rapid.StringN(0, 20, 60), rapid.Just("\xff\x00 bytes"))
	row := Row{
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

func drawChange(r *rapid.T, name string) Change {
	ch := Change{Reset: true, Source: Source{
		Name: name, Tool: "roo", ByPath: "cline", Path: "/p", Tasks: "/p/tasks", Problem: "none\x00", Seen: 5, Compared: 6, Indexes: 1 << 63,
	}}
	for j := range rapid.IntRange(0, 4).Draw(r, "rows") {
		row := drawRow(r, fmt.Sprint(j))
		ch.Put = append(ch.Put, &row)
	}
	return ch
}

// Rows come back as they were given, all at once and one by one.
func TestRowsComeBack(t *testing.T) {
	db := opened(t, t.TempDir())
	rapid.Check(t, func(r *rapid.T) {
		changes := []Change{drawChange(r, "one"), drawChange(r, "two")}
		keepRows(t, db, changes...)
		for extent, without := range map[Extent]cmp.Option{
			Bare: cmpopts.IgnoreFields(Row{}, "Title", "Summary"), Titles: cmpopts.IgnoreFields(Row{}, "Summary"), Summaries: nil,
		} {
			got, err := db.Rows(t.Context(), testBuild, extent)
			fixture.NoError(t, err)
			for i, ch := range changes {
				if diff := cmp.Diff(ch.Source, got[i].Source); diff != "" {
					r.Fatalf("source: -given +back\n%s", diff)
				}
				var back []*Row
				for j := range got[i].Rows {
					back = append(back, &got[i].Rows[j])
				}
				opts := []cmp.Option{cmpopts.EquateEmpty()}
				if without != nil {
					opts = append(opts, without)
				}
				if diff := cmp.Diff(ch.Put, back, opts...); diff != "" {
					r.Fatalf("rows read to extent %d: -given +back\n%s", extent, diff)
				}
				fixture.NoError(t, db.Summaries(t.Context(), ch.Source.Name, back))
				if diff := cmp.Diff(ch.Put, back, cmpopts.EquateEmpty()); diff != "" {
					r.Fatalf("one by one: -given +back\n%s", diff)
				}
			}
		}
		if got, err := db.Rows(t.Context(), testBuild+1, Summaries); err != nil || len(got) != 0 {
			r.Fatalf("another build gets %d sources, %v; want none", len(got), err)
		}
	})
}

// Rows are replaced, updated and removed one by one; a reset removes those that are
// not given; a source that no list keeps is forgotten.
func TestRowsChange(t *testing.T) {
	db := opened(t, t.TempDir())
	row := func(id, title string) *Row {
		return &Row{ID: id, Known: true, Digest: 1, Title: title, Summary: []byte(title)}
	}
	source := func(name string, seen int64) Source { return Source{Name: name, Seen: seen} }
	titles := func() string {
		var out []string
		for _, name := range []string{"a", "b"} {
			for _, r := range rowsOf(t, db)[name] {
				out = append(out, fmt.Sprintf("%s/%s=%s,%d", name, r.ID, r.Title, r.Content[0]))
			}
		}
		return strings.Join(out, " ")
	}
	updated, missed := *row("1", "x"), *row("1", "x")
	updated.Content[0], missed.Content[0], missed.Digest = 9, 8, 2
	for _, c := range []struct {
		change Change
		forget int64
		want   string
	}{
		{Change{Source: source("a", 10), Put: []*Row{row("1", "x"), row("2", "y")}}, 0, "a/1=x,0 a/2=y,0"},
		{Change{Source: source("b", 20), Put: []*Row{row("1", "z")}}, 0, "a/1=x,0 a/2=y,0 b/1=z,0"},
		{Change{Source: source("a", 10), Update: []*Row{&updated}}, 0, "a/1=x,9 a/2=y,0 b/1=z,0"},
		{Change{Source: source("a", 10), Update: []*Row{&missed}}, 0, "a/1=x,9 a/2=y,0 b/1=z,0"}, // it changed since
		{Change{Source: source("a", 10), Gone: []string{"1", "nosuch"}}, 0, "a/2=y,0 b/1=z,0"},
		{Change{Source: source("b", 20), Put: []*Row{row("2", "w")}, Reset: true}, 0, "a/2=y,0 b/2=w,0"},
		{Change{Source: source("b", 30)}, 11, "b/2=w,0"},
	} {
		fixture.NoError(t, db.Keep(t.Context(), testBuild, []Change{c.change}, c.forget, patience))
		if got := titles(); got != c.want {
			t.Fatalf("after %+v: got %q, want %q", c.change, got, c.want)
		}
	}
	fixture.NoError(t, db.ForgetRows(t.Context()))
	if got := titles(); got != "" {
		t.Errorf("after all were forgotten: got %q", got)
	}
}

// A file that was changed or cut anywhere gives rows as they were written, or none, or
// an error that says that it is damaged: never another row.
func TestDamagedRowsAreNeverWrongOnes(t *testing.T) {
	dir := t.TempDir()
	db := opened(t, dir)
	want := map[string]Row{}
	ch := Change{Source: Source{Name: "s", Path: "/p"}}
	for i := range 40 {
		row := Row{
			ID: fmt.Sprint("task-", i), Known: true, Digest: uint64(i), Files: "ui.json", Model: "model", Tags: []string{"x"},
			Title: fmt.Sprint("title ", i), Summary: []byte(strings.Repeat("s", i*40+1)),
		}
		want[row.ID] = row
		ch.Put = append(ch.Put, &row)
	}
	keepRows(t, db, ch)
	fixture.NoError(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, Name))
	fixture.NoError(t, err)
	seen := 0
	rapid.Check(t, func(r *rapid.T) {
		bad := append([]byte{}, whole...)
		at := rapid.IntRange(0, len(bad)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "cut") {
			bad = bad[:at]
		} else {
			bad[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		}
		dir := t.TempDir()
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, Name), bad, 0o600))
		db, err := Open(t.Context(), dir)
		fixture.NoError(t, err)
		defer db.Close()
		list, err := db.Rows(t.Context(), testBuild, Summaries)
		if err != nil && !Damaged(err) {
			r.Fatalf("this would not be set aside: %v", err)
		}
		for _, s := range list {
			for _, row := range s.Rows {
				seen++
				if diff := cmp.Diff(want[row.ID], row, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Row{}, "TitleSum")); diff != "" {
					r.Fatalf("-written +read\n%s", diff)
				}
			}
		}
	})
	if seen == 0 {
		t.Error("no row was read from any damaged file")
	}
}

// Readers and writers at the same time: a reader sees each change whole or not at all.
func TestRowsUnderConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	made := func(who, turn int) Change {
		mark := fmt.Sprintf("%d/%d", who, turn)
		ch := Change{Source: Source{Name: "s", Problem: mark}, Reset: true}
		for i := range 20 + turn%7 {
			ch.Put = append(ch.Put, &Row{ID: fmt.Sprint(i), Known: true, Model: mark, Title: mark, Summary: []byte(mark)})
		}
		return ch
	}
	keepRows(t, opened(t, dir), made(9, 0))
	var all sync.WaitGroup
	for who := range 3 {
		db := opened(t, dir)
		all.Go(func() {
			for turn := range 20 {
				if err := db.Keep(t.Context(), testBuild, []Change{made(who, turn)}, 0, time.Minute); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		db := opened(t, dir)
		all.Go(func() {
			for range 50 {
				list, err := db.Rows(t.Context(), testBuild, Summaries)
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

// A writer that waits for no other one gives up at once; readers do not wait at all.
func TestKeepDoesNotWaitForAnotherWriter(t *testing.T) {
	dir := t.TempDir()
	db, other := opened(t, dir), opened(t, dir)
	ch := Change{Source: Source{Name: "s"}, Put: []*Row{{ID: "a", Known: true, Summary: []byte("{}")}}}
	keepRows(t, db, ch)
	c, err := other.sql.Conn(t.Context())
	fixture.NoError(t, err)
	defer c.Close()
	_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	fixture.NoError(t, err)
	begun := time.Now()
	if err := db.Keep(t.Context(), testBuild, []Change{ch}, 0, 10*time.Millisecond); err == nil || Damaged(err) {
		t.Errorf("kept beside another writer: %v", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it waited %v", took)
	}
	if got := rowsOf(t, db)["s"]; len(got) != 1 {
		t.Errorf("got %d rows beside a writer, want 1", len(got))
	}
	rollback(t.Context(), c)
}
