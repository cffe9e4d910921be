package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// ward is a store with everything that a check looks at: two tasks of ours, one of
// an editor that was continued, one in the trash, a title in the overlay and a
// catalogue of all.
func ward(t *testing.T) (s *Store, root, cache, storage string) {
	t.Helper()
	storage, _ = rooStorage(t, "theirs")
	root, cache = filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache")
	s = searching(t, root, cache, storage)
	for _, id := range []string{"one", "two", "thrown"} {
		k := create(t, s, id)
		commit(t, k, task.UI, uiRow(2, strings.Repeat("big", blobThreshold)))
		commit(t, k, task.API, apiRow(3, "user", "hello "+id))
		closeTask(t, k)
	}
	o := own(t, s, "theirs")
	commit(t, o.Task, task.UI, uiRow(9, "ours"))
	closeTask(t, o.Task)
	del(t, s, "thrown")
	ref := must[Ref](t)(s.Find(context.Background(), "theirs"))
	must[Summary](t)(s.Label(context.Background(), ref, Labels{Add: []string{"green"}}))
	check(t, s.rest(context.Background()))
	search1(t, s, SearchQuery{Text: "hello"})
	must[Listing](t)(s.List(context.Background(), Filter{}))
	return s, root, cache, storage
}

// flip changes a byte of a file and leaves its size and time.
func flip(t *testing.T, path, from, to string) {
	t.Helper()
	info := must[os.FileInfo](t)(os.Stat(path))
	data := must[[]byte](t)(os.ReadFile(path))
	if len(from) != len(to) || !strings.Contains(string(data), from) {
		t.Fatalf("%s does not hold %q", path, from)
	}
	f := must[*os.File](t)(os.OpenFile(path, os.O_WRONLY, 0))
	must[int](t)(f.WriteAt([]byte(strings.Replace(string(data), from, to, 1)), 0))
	check(t, f.Close())
	check(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func problems(list []Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, f.ID+" "+filepath.Base(f.File)+": "+f.Problem)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestCheckOfWhatIsWhole(t *testing.T) {
	s, root, cache, storage := ward(t)
	before := []map[string]string{tree(t, root), tree(t, storage)}
	kept := search1(t, s, SearchQuery{Text: "hello"})
	for _, o := range []CheckOptions{{}, {Repair: true}, {Rebuild: true}, {Repair: true, Rebuild: true}} {
		r := doctor(t, s, o)
		if r.Tasks != 3 || r.OK != 3 || len(r.Damaged)+len(r.Repaired)+len(r.Stale)+len(r.Leftovers) > 0 {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	if d := cmp.Diff(before, []map[string]string{tree(t, root), tree(t, storage)}); d != "" {
		t.Error(d)
	}
	if again := search1(t, s, SearchQuery{Text: "hello"}); again.Read != 0 || kept.Read != 0 {
		t.Errorf("%d tasks are not in the catalogue in %s any more", again.Read, cache)
	}
}

// What is found, what a repair or a rebuild does about it, and that doing it again
// does nothing more.
func TestCheckFindsAndMends(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *Store)
		in    string // damaged, stale, leftovers, or nowhere
		want  string // a part of the finding
		how   CheckOptions
		copy  string // what the copy holds, when there is one
		stays bool
	}{
		{"a bit of a projection", func(t *testing.T, s *Store) {
			flip(t, filepath.Join(s.TasksDir(), "one", roofmt.APIName), "hello one", "hellO one")
		}, "damaged", "one api_conversation_history.json: its bytes are not those that were written", CheckOptions{Repair: true}, "hellO one", false},
		{"a bit of a projection, rebuilt", func(t *testing.T, s *Store) {
			flip(t, filepath.Join(s.TasksDir(), "one", roofmt.ItemName), "hello one", "hellO one")
		}, "damaged", "one history_item.json: its bytes", CheckOptions{Rebuild: true}, "hellO one", false},
		{"a snapshot that lies", func(t *testing.T, s *Store) { lie(t, s, "one") },
			"damaged", "one journal.idx: its snapshot says something else", CheckOptions{Repair: true}, "", false},
		{"no snapshot", func(t *testing.T, s *Store) { check(t, os.Remove(filepath.Join(s.TasksDir(), "two", "journal.idx"))) },
			"stale", "two journal.idx: it is not there", CheckOptions{Rebuild: true}, "", false},
		{"no record of what was written", func(t *testing.T, s *Store) { check(t, os.Remove(filepath.Join(s.TasksDir(), "two", watermarkName))) },
			"stale", "two projection.json: it is not there", CheckOptions{Rebuild: true}, "", false},
		{"a projection is gone", func(t *testing.T, s *Store) { check(t, os.Remove(filepath.Join(s.TasksDir(), "two", roofmt.UIName))) },
			"stale", "two ui_messages.json: it is not there", CheckOptions{Rebuild: true}, "", false},
		{"no index", func(t *testing.T, s *Store) { check(t, os.Remove(filepath.Join(s.TasksDir(), roofmt.IndexName))) },
			"stale", " _index.json: 2 tasks are not in it", CheckOptions{Rebuild: true}, "", false},
		{"an index that is none", func(t *testing.T, s *Store) { write(t, s.TasksDir(), roofmt.IndexName, "[") },
			"damaged", " _index.json: reading", CheckOptions{Repair: true}, "", false},
		{"an index of what is gone", func(t *testing.T, s *Store) {
			text := read(t, s.TasksDir(), roofmt.IndexName)
			write(t, s.TasksDir(), roofmt.IndexName, strings.Replace(text, `"entries":[`, `"entries":[{"id":"nowhere","ts":1},`, 1))
		}, "stale", "1 of its tasks have no folder", CheckOptions{Rebuild: true}, "", false},
		{"the overlay's last line", func(t *testing.T, s *Store) {
			path := filepath.Join(s.overlayDir(), "journal.jsonl")
			check(t, os.WriteFile(path, []byte(read(t, s.overlayDir(), "journal.jsonl")+`{"seq":`), 0o600))
		}, "damaged", " journal.jsonl: unfinished last line", CheckOptions{Repair: true}, "", false},
		{"a commit of the overlay", func(t *testing.T, s *Store) {
			flip(t, filepath.Join(s.overlayDir(), "journal.jsonl"), "green", "brown")
		}, "damaged", " journal.jsonl: checksum", CheckOptions{Repair: true}, "", true},
		{"a task in the trash", func(t *testing.T, s *Store) {
			flip(t, filepath.Join(s.trashDir(), "thrown", "journal.jsonl"), "hello", "jello")
		}, "damaged", "thrown journal.jsonl: ", CheckOptions{Repair: true}, "", true},
		{"a purge that was cut", func(t *testing.T, s *Store) {
			write(t, filepath.Join(s.trashDir(), ".purged-1-x"), "journal.jsonl", "x")
		},
			"leftovers", " .purged-1-x: a purge was interrupted", CheckOptions{Repair: true}, "", false},
		{"an import that was cut", func(t *testing.T, s *Store) {
			write(t, filepath.Join(s.TasksDir(), ImportStages, "0"), roofmt.UIName, "[")
		},
			"leftovers", " .import: an import was interrupted", CheckOptions{Repair: true}, "", false},
		{"no catalogue", func(t *testing.T, s *Store) { check(t, os.Remove(filepath.Join(s.opt.Cache, catalog.Name))) },
			"", " catalog.db: it is not there", CheckOptions{Rebuild: true}, "", false},
		{"a row that lies", func(t *testing.T, s *Store) { catalogLies(t, s, "one", false) },
			"damaged", "one catalog.db: its row is not what the folder gives", CheckOptions{Repair: true}, "", false},
		{"a row of the list that lies", listLies,
			"damaged", "one list.rows: the list shows something else than its folder gives", CheckOptions{Rebuild: true}, "", false},
		{"text that lies", func(t *testing.T, s *Store) { catalogLies(t, s, "two", true) },
			"damaged", "two catalog.db: its text is not what the folder gives", CheckOptions{Rebuild: true}, "", false},
		{"what the catalogue does not know yet", func(t *testing.T, s *Store) {
			closeTask(t, create(t, s, "new"))
		}, "", " catalog.db: 1 of 4 tasks are not in it", CheckOptions{Rebuild: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, root, _, storage := ward(t)
			c.spoil(t, s)
			before := []map[string]string{tree(t, root), tree(t, storage)}
			r := doctor(t, s, CheckOptions{})
			found := map[string][]Finding{"damaged": r.Damaged, "stale": r.Stale, "leftovers": r.Leftovers}
			untold := c.in == "" // a catalogue that is not filled yet is no news
			if got := problems(found[c.in]); !untold && !strings.Contains(got, c.want) || len(r.Repaired) > 0 {
				t.Fatalf("%s: %s\nall: %+v", c.in, got, r)
			}
			if c.in != "damaged" && len(r.Damaged) > 0 {
				t.Errorf("counts as damage: %s", problems(r.Damaged))
			}
			if d := cmp.Diff(before, []map[string]string{tree(t, root), tree(t, storage)}); d != "" {
				t.Fatalf("looking changed something: %s", d)
			}
			r = doctor(t, s, c.how)
			if c.stays {
				if d := cmp.Diff(before, []map[string]string{tree(t, root), tree(t, storage)}); d != "" || len(r.Repaired) > 0 || len(r.Damaged) == 0 {
					t.Errorf("what cannot be mended: %+v\n%s", r, d)
				}
				return
			}
			if !strings.Contains(problems(r.Repaired), c.want) || len(r.Damaged) > 0 {
				t.Errorf("repaired: %s\ndamaged: %s\nstale: %s", problems(r.Repaired), problems(r.Damaged), problems(r.Stale))
			}
			if c.copy != "" && !strings.Contains(string(must[[]byte](t)(os.ReadFile(r.Repaired[0].Copy))), c.copy) {
				t.Errorf("the copy does not hold what was there")
			}
			before = []map[string]string{tree(t, root), tree(t, storage)}
			again := doctor(t, s, c.how)
			if d := cmp.Diff(before, []map[string]string{tree(t, root), tree(t, storage)}); d != "" || len(again.Repaired)+len(again.Damaged) > 0 {
				t.Errorf("done twice: %s %s\n%s", problems(again.Repaired), problems(again.Damaged), d)
			}
		})
	}
}

// lie gives a task a snapshot of another title.
func lie(t *testing.T, s *Store, id string) {
	t.Helper()
	ctx := context.Background()
	log := must[journal.Owner](t)(filelog.Own(ctx, filepath.Join(s.TasksDir(), id), filelog.Options{}))
	state := must[*task.State](t)(Fold(ctx, log))
	state.Title = "a lie"
	check(t, log.SaveSnapshot(ctx, journal.Snapshot{Seq: state.Seq, Data: must[[]byte](t)(state.Snapshot())}))
	check(t, log.Close())
	if sum := must[*View](t)(s.Read(ctx, must[Ref](t)(s.Find(ctx, id)))); sum.Summary.Title != "a lie" {
		t.Fatal("a reader does not believe the snapshot: the test shows nothing")
	}
}

// listLies changes the title that the list keeps of a task.
func listLies(t *testing.T, s *Store) {
	t.Helper()
	rows := must[*catalog.Rows](t)(catalog.OpenRows(s.opt.Cache, build()))
	rows.LoadAll()
	done := false
	for _, shelf := range rows.Shelves {
		for i := range shelf.Rows {
			if row := &shelf.Rows[i]; row.ID == "one" {
				row.Title, done = "T lie", true
				row.Whole = []byte(strings.Replace(string(row.Whole), "T one", "T lie", 1))
			}
		}
	}
	check(t, rows.Write(s.opt.Cache, build()))
	rows.Close()
	for _, sum := range must[Listing](t)(s.List(context.Background(), Filter{})).Items {
		if sum.ID == "one" && (!done || sum.Title != "T lie") {
			t.Fatalf("the list does not believe it: %q", sum.Title)
		}
	}
}

// catalogLies puts a wrong row, or a right row with wrong text, under a right stamp.
func catalogLies(t *testing.T, s *Store, id string, text bool) {
	t.Helper()
	ctx := context.Background()
	ref := must[Ref](t)(s.Find(ctx, id))
	db := must[*catalog.DB](t)(catalog.Open(ctx, s.opt.Cache))
	snap := must[*catalog.Snapshot](t)(db.Snapshot(ctx))
	row := must[map[string]catalog.Task](t)(snap.Tasks(ctx))[catalogKey(ref)]
	raw := must[[]byte](t)(snap.Summary(ctx, row.ID))
	snap.Close()
	var b catalog.Builder
	v := must[*View](t)(s.read(ctx, ref, false))
	for m, err := range texts(ctx, v.State) {
		check(t, err)
		if text {
			m.Pieces[0].Text += "!"
		}
		b.Add(m)
	}
	check(t, v.Close())
	if !text {
		raw = []byte(strings.Replace(string(raw), "T "+id, "T lie", 1))
	}
	check(t, db.Put(ctx, []catalog.Entry{b.Entry(catalogKey(ref), row.Stamp, row.TS, raw)}))
	check(t, db.Close())
}

func TestCheckOfADamagedCatalogue(t *testing.T) {
	s, root, cache, _ := ward(t)
	write(t, cache, catalog.Name, strings.Repeat("no database ", 1000))
	before := tree(t, root)
	if r := doctor(t, s, CheckOptions{}); len(r.Damaged) != 1 || r.OK != 3 || read(t, cache, catalog.Name)[:11] != "no database" {
		t.Fatalf("%+v", r)
	}
	r := doctor(t, s, CheckOptions{Repair: true})
	if len(r.Repaired) != 1 || len(r.Damaged) != 0 || read(t, cache, catalog.Name+".damaged")[:11] != "no database" {
		t.Errorf("%+v", r)
	}
	if got := search1(t, s, SearchQuery{Text: "hello"}); got.Read != 0 || len(got.Items) == 0 {
		t.Errorf("after the repair %d tasks had to be read, %d hits", got.Read, len(got.Items))
	}
	if again := doctor(t, s, CheckOptions{Repair: true}); len(again.Repaired) != 0 || len(again.Leftovers) != 1 {
		t.Errorf("again: %+v", again)
	}
	if d := cmp.Diff(before, tree(t, root)); d != "" {
		t.Errorf("tasks were touched: %s", d)
	}
}

// What interrupted work left in a task's folder: what is surely nobody's goes, what
// may hold messages stays, and what may be in use is not named.
func TestCheckOfLeftovers(t *testing.T) {
	slow(t)
	long := time.Now().Add(-2 * time.Hour)
	for _, c := range []struct {
		name    string
		fresh   bool
		folder  bool
		found   string
		removed bool
	}{
		{".projection-12", false, false, "half written", true},
		{".projection-12", true, false, "", false},
		{"journal.idx.tmp77", false, false, "half written", true},
		{"blobs/tmp-abc", false, false, "half written", true},
		{"blobs/ab/" + strings.Repeat("ab", 32), false, false, "1 payloads of 3 bytes in all are named by no commit", false},
		{".ui_messages.json.bak_1700000000000_x.tmp", false, false, "what had been ui_messages.json", false},
		{".ui_messages.json.new_1700000000000_x.tmp", true, false, "", false},
		{"ui_messages.json.lock", false, true, "a lock that nobody has renewed", false},
		{"ui_messages.json.lock", true, true, "", false},
		{"my-notes.txt", false, false, "", false},
		{"journal.torn-5", false, false, "", false},
	} {
		t.Run(fmt.Sprint(c.name, c.fresh), func(t *testing.T) {
			s, dir := ill(t)
			path := filepath.Join(dir, c.name)
			if c.folder {
				check(t, os.Mkdir(path, 0o700))
			} else {
				write(t, filepath.Dir(path), filepath.Base(path), "[1]")
			}
			if !c.fresh {
				check(t, os.Chtimes(path, long, long))
			}
			r := doctor(t, s, CheckOptions{})
			if got := problems(r.Leftovers); (got != "") != (c.found != "") || !strings.Contains(got, c.found) || r.OK != 1 {
				t.Errorf("%s\n%+v", got, r)
			}
			r = doctor(t, s, CheckOptions{Repair: true})
			if gone := !exists(path, ""); gone != c.removed || (len(r.Repaired) > 0) != c.removed {
				t.Errorf("gone: %v; %+v", gone, r)
			}
			if again := doctor(t, s, CheckOptions{Repair: true}); len(again.Repaired) > 0 {
				t.Errorf("again: %+v", again.Repaired)
			}
		})
	}
}

// A living owner's files are on their way; nothing of it is judged or taken away.
func TestCheckBesideAnOwner(t *testing.T) {
	s, dir := ill(t)
	k := own(t, s, "ill").Task
	write(t, dir, ".projection-12", "x")
	long := time.Now().Add(-2 * time.Hour)
	check(t, os.Chtimes(filepath.Join(dir, ".projection-12"), long, long))
	check(t, os.Remove(filepath.Join(dir, "journal.idx")))
	r := doctor(t, s, CheckOptions{Repair: true, Rebuild: true})
	if r.OK != 1 || len(r.Damaged)+len(r.Repaired)+len(r.Leftovers) > 0 || !exists(dir, ".projection-12") {
		t.Errorf("%+v", r)
	}
	closeTask(t, k)
}

func TestCheckOfStrays(t *testing.T) {
	s, root, cache, _ := ward(t)
	here := t.TempDir()
	long := time.Now().Add(-2 * time.Hour)
	for _, path := range []string{filepath.Join(root, ".probe-1"), filepath.Join(cache, ".roost-export-1"), filepath.Join(here, ".roost-export-2")} {
		write(t, filepath.Dir(path), filepath.Base(path), "x")
		check(t, os.Chtimes(path, long, long))
	}
	write(t, here, ".roost-export-3", "somebody exports just now")
	o := CheckOptions{Repair: true, Spill: here}
	if r := doctor(t, s, CheckOptions{Spill: here}); len(r.Leftovers) != 3 {
		t.Errorf("%+v", r)
	}
	if r := doctor(t, s, o); len(r.Repaired) != 3 || !exists(here, ".roost-export-3") || exists(root, ".probe-1") {
		t.Errorf("%+v", r)
	}
	if r := doctor(t, s, o); len(r.Repaired)+len(r.Leftovers) != 0 {
		t.Errorf("again: %+v", r)
	}
}

func TestCheckOfPairs(t *testing.T) {
	call := func(id string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":%q,"name":"x","input":{}}]}`, id)
	}
	result := func(id string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"r"}]}`, id)
	}
	words := apiRow(1, "user", "words")
	for _, c := range []struct {
		want string
		list []string
	}{
		{"", []string{words, call("a"), result("a"), call("b"), result("b")}},
		{"", []string{words, call("a")}},
		{"", []string{words, call("a"), words, result("a")}},
		{"", nil},
		{"1 tool call without a result", []string{words, call("a"), words, call("b")}},
		{"1 tool result without a call", []string{words, result("a"), call("b")}},
		{"1 tool result too many for a call", []string{words, call("a"), result("a"), result("a")}},
		{"2 tool calls without a result, 1 tool result without a call", []string{words, call("a"), result("z"), call("b"), words}},
	} {
		storage, dir := rooStorage(t, "paired")
		write(t, dir, roofmt.APIName, array(c.list...))
		r := doctor(t, open(t, filepath.Join(t.TempDir(), "root"), storage), CheckOptions{})
		if got := problems(r.Damaged); c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%d messages: %q, want %q", len(c.list), got, c.want)
		}
	}
}

func TestWorkTellsHowFarItIs(t *testing.T) {
	s, _, _, _ := ward(t)
	told := map[string]int{}
	ctx := WithProgress(context.Background(), func(p Progress) { told[p.What] = max(told[p.What], p.Of) })
	must[Report](t)(s.Check(ctx, nil, CheckOptions{}))
	if told["checking"] != 3 || told["comparing the catalogue"] != 3 {
		t.Errorf("%v", told)
	}
}
