package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/projection"

	"github.com/roost-dev/roost/internal/testing/storetest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/task"
)

// newCheckedStore is a store with everything that a check looks at: two tasks of ours, one of
// an editor that was continued, one in the trash, a title in the overlay and a
// catalogue of all.
func newCheckedStore(t *testing.T) (s *store.Store, root, cache, storage string) {
	t.Helper()
	storage, _ = storetest.RooStorage(t, "theirs")
	root, cache = filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "cache")
	s = openCached(t, root, cache, storage)
	for _, id := range []string{"one", "two", "thrown"} {
		k := storetest.Create(t, s, id)
		storetest.Commit(t, k, task.UI, storetest.UIRow(2, strings.Repeat("big", 256<<10)))
		storetest.Commit(t, k, task.API, storetest.APIRow(3, "user", "hello "+id))
		storetest.Close(t, k)
	}
	o := storetest.Own(t, s, "theirs")
	storetest.Commit(t, o.Task, task.UI, storetest.UIRow(9, "ours"))
	storetest.Close(t, o.Task)
	storetest.Delete(t, s, "thrown")
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "theirs"))
	storetest.Label(t, s, ref.ID, labels.Change{Add: []string{"green"}})
	time.Sleep(200 * time.Millisecond) // the catalogue does not keep what has just changed
	search1(t, s, api.SearchQuery{Text: "hello"})
	storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{}))
	return s, root, cache, storage
}

// flip changes a byte of a file and leaves its size and time.
func flip(t *testing.T, path, from, to string) {
	t.Helper()
	info := storetest.Must[os.FileInfo](t)(os.Stat(path))
	data := storetest.Must[[]byte](t)(os.ReadFile(path))
	if len(from) != len(to) || !strings.Contains(string(data), from) {
		t.Fatalf("%s does not hold %q", path, from)
	}
	f := storetest.Must[*os.File](t)(os.OpenFile(path, os.O_WRONLY, 0))
	storetest.Must[int](t)(f.WriteAt([]byte(strings.Replace(string(data), from, to, 1)), 0))
	storetest.Check(t, f.Close())
	storetest.Check(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func problems(list []api.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, f.ID+" "+filepath.Base(f.File)+": "+f.Problem)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestCheckOfWhatIsWhole(t *testing.T) {
	s, root, cache, storage := newCheckedStore(t)
	before := []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}
	kept := search1(t, s, api.SearchQuery{Text: "hello"})
	for _, o := range []doctor.Options{{}, {Repair: true}, {Rebuild: true}, {Repair: true, Rebuild: true}} {
		r := runDoctor(t, s, o)
		if r.Tasks != 3 || r.OK != 3 || len(r.Damaged)+len(r.Repaired)+len(r.Stale)+len(r.Leftovers) > 0 {
			t.Errorf("got %+v: %+v, want r.Tasks = 3 and r.OK = 3 and len(r.Damaged)+len(r.Repaired)+len(r.Stale)+len(r.Leftovers) <= 0",
				o, r)
		}
	}
	if d := cmp.Diff(before, []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}); d != "" {
		t.Error(d)
	}
	if again := search1(t, s, api.SearchQuery{Text: "hello"}); again.Read != 0 || kept.Read != 0 {
		t.Errorf("%d tasks are not in the catalogue in %s any more", again.Read, cache)
	}
}

// What is found, what a repair or a rebuild does about it, and that doing it again
// does nothing more.
func TestCheckFindsAndMends(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *store.Store)
		in    string // damaged, stale, leftovers, or nowhere
		want  string // a part of the finding
		how   doctor.Options
		copy  string // what the copy holds, when there is one
		stays bool
	}{
		{"a bit of a projection", func(t *testing.T, s *store.Store) {
			flip(t, filepath.Join(s.TasksDir(), "one", roofmt.APIName), "hello one", "hellO one")
		}, "damaged", "one api_conversation_history.json: its bytes have changed", doctor.Options{Repair: true}, "hellO one", false},
		{"a bit of a projection, rebuilt", func(t *testing.T, s *store.Store) {
			flip(t, filepath.Join(s.TasksDir(), "one", roofmt.ItemName), "hello one", "hellO one")
		}, "damaged", "one history_item.json: its bytes", doctor.Options{Rebuild: true}, "hellO one", false},
		{"a snapshot that lies", func(t *testing.T, s *store.Store) { lie(t, s, "one") },
			"damaged", "one journal.idx: its snapshot differs", doctor.Options{Repair: true}, "", false},
		{"no snapshot", func(t *testing.T, s *store.Store) {
			storetest.Check(t, os.Remove(filepath.Join(s.TasksDir(), "two", "journal.idx")))
		},
			"stale", "two journal.idx: it is missing", doctor.Options{Rebuild: true}, "", false},
		{"no record of what was written", func(t *testing.T, s *store.Store) {
			storetest.Check(t, os.Remove(filepath.Join(s.TasksDir(), "two", projection.Name)))
		},
			"stale", "two projection.json: it is missing", doctor.Options{Rebuild: true}, "", false},
		{"a projection is gone", func(t *testing.T, s *store.Store) {
			storetest.Check(t, os.Remove(filepath.Join(s.TasksDir(), "two", roofmt.UIName)))
		},
			"stale", "two ui_messages.json: it is missing", doctor.Options{Rebuild: true}, "", false},
		{"no index", func(t *testing.T, s *store.Store) {
			storetest.Check(t, os.Remove(filepath.Join(s.TasksDir(), roofmt.IndexName)))
		},
			"stale", " _index.json: it does not match 2 task folders", doctor.Options{Rebuild: true}, "", false},
		{"an index that is none", func(t *testing.T, s *store.Store) { storetest.Write(t, s.TasksDir(), roofmt.IndexName, "[") },
			"damaged", " _index.json: reading", doctor.Options{Repair: true}, "", false},
		{"an index of what is gone", func(t *testing.T, s *store.Store) {
			text := storetest.Read(t, s.TasksDir(), roofmt.IndexName)
			storetest.Write(t, s.TasksDir(), roofmt.IndexName, strings.Replace(text, `"entries":[`, `"entries":[{"id":"nowhere","ts":1},`, 1))
		}, "stale", "it has 1 task without a folder", doctor.Options{Rebuild: true}, "", false},
		{"the overlay's last line", func(t *testing.T, s *store.Store) {
			path := filepath.Join(s.OverlayDir(), "journal.jsonl")
			storetest.Check(t, os.WriteFile(path, []byte(storetest.Read(t, s.OverlayDir(), "journal.jsonl")+`{"seq":`), 0o600))
		}, "damaged", " journal.jsonl: unfinished last line", doctor.Options{Repair: true}, "", false},
		{"a commit of the overlay", func(t *testing.T, s *store.Store) {
			flip(t, filepath.Join(s.OverlayDir(), "journal.jsonl"), "green", "brown")
		}, "damaged", " journal.jsonl: checksum", doctor.Options{Repair: true}, "", true},
		{"a task in the trash", func(t *testing.T, s *store.Store) {
			flip(t, filepath.Join(s.TrashDir(), "thrown", "journal.jsonl"), "hello", "jello")
		}, "damaged", "thrown journal.jsonl: ", doctor.Options{Repair: true}, "", true},
		{"a purge that was cut", func(t *testing.T, s *store.Store) {
			storetest.Write(t, filepath.Join(s.TrashDir(), ".purged-1-x"), "journal.jsonl", "x")
		},
			"leftovers", " .purged-1-x: a purge was interrupted", doctor.Options{Repair: true}, "", false},
		{"an import that was cut", func(t *testing.T, s *store.Store) {
			storetest.Write(t, filepath.Join(s.TasksDir(), ".import", "0"), roofmt.UIName, "[")
		},
			"leftovers", " .import: an import was interrupted", doctor.Options{Repair: true}, "", false},
		{"no catalogue", func(t *testing.T, s *store.Store) {
			storetest.Check(t, os.Remove(filepath.Join(s.CacheDir(), catalog.Name)))
		},
			"", " catalog.db: it is missing", doctor.Options{Rebuild: true}, "", false},
		{"what the catalogue does not know yet", func(t *testing.T, s *store.Store) {
			storetest.Close(t, storetest.Create(t, s, "new"))
		}, "", " catalog.db: 1 of 4 tasks are not in it", doctor.Options{Rebuild: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, root, _, storage := newCheckedStore(t)
			c.spoil(t, s)
			before := []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}
			r := runDoctor(t, s, doctor.Options{})
			found := map[string][]api.Finding{"damaged": r.Damaged, "stale": r.Stale, "leftovers": r.Leftovers}
			untold := c.in == "" // a catalogue that is not filled yet is no news
			if got := problems(found[c.in]); !untold && !strings.Contains(got, c.want) || len(r.Repaired) > 0 {
				t.Fatalf("%s: %s\nall: %+v", c.in, got, r)
			}
			if c.in != "damaged" && len(r.Damaged) > 0 {
				t.Errorf("counts as damage: %s", problems(r.Damaged))
			}
			if d := cmp.Diff(before, []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}); d != "" {
				t.Fatalf("looking changed something: %s", d)
			}
			r = runDoctor(t, s, c.how)
			if c.stays {
				if d := cmp.Diff(before, []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}); d != "" || len(r.Repaired) > 0 || len(r.Damaged) == 0 {
					t.Errorf("what cannot be mended: %+v\n%s", r, d)
				}
				return
			}
			if !strings.Contains(problems(r.Repaired), c.want) || len(r.Damaged) > 0 {
				t.Errorf("repaired: %s\ndamaged: %s\nstale: %s", problems(r.Repaired), problems(r.Damaged), problems(r.Stale))
			}
			if c.copy != "" && !strings.Contains(string(storetest.Must[[]byte](t)(os.ReadFile(r.Repaired[0].Copy))), c.copy) {
				t.Errorf("the copy does not hold what was there")
			}
			before = []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}
			again := runDoctor(t, s, c.how)
			if d := cmp.Diff(before, []map[string]string{storetest.Tree(t, root), storetest.Tree(t, storage)}); d != "" || len(again.Repaired)+len(again.Damaged) > 0 {
				t.Errorf("done twice: %s %s\n%s", problems(again.Repaired), problems(again.Damaged), d)
			}
		})
	}
}

// lie gives a task a snapshot of another title.
func lie(t *testing.T, s *store.Store, id string) {
	t.Helper()
	ctx := context.Background()
	log := storetest.Must[journal.Owner](t)(filelog.Own(ctx, filepath.Join(s.TasksDir(), id), filelog.Options{}))
	state := storetest.Must[*task.State](t)(fold.All(ctx, log))
	state.Title = "a lie"
	storetest.Check(t, log.SaveSnapshot(ctx, journal.Snapshot{Seq: state.Seq, Data: storetest.Must[[]byte](t)(state.Snapshot())}))
	storetest.Check(t, log.Close())
	if sum := storetest.Must[*store.View](t)(s.Read(ctx, storetest.Must[store.Ref](t)(s.Find(ctx, id)))); sum.Summary.Title != "a lie" {
		t.Fatal("a reader does not believe the snapshot: the test shows nothing")
	}
}

func TestCheckOfADamagedCatalogue(t *testing.T) {
	s, root, cache, _ := newCheckedStore(t)
	storetest.Write(t, cache, catalog.Name, strings.Repeat("no database ", 1000))
	before := storetest.Tree(t, root)
	if r := runDoctor(t, s, doctor.Options{}); len(r.Damaged) != 1 || r.OK != 3 || storetest.Read(t, cache, catalog.Name)[:11] != "no database" {
		t.Fatalf("got %+v, want len(r.Damaged) = 1 and r.OK = 3 and storetest.Read(t, cache, catalog.Name)[:11] = \"no database\"",
			r)
	}
	r := runDoctor(t, s, doctor.Options{Repair: true})
	if len(r.Repaired) != 1 || len(r.Damaged) != 0 || storetest.Read(t, cache, catalog.Name+".damaged")[:11] != "no database" {
		t.Errorf(`got %+v, want len(r.Repaired) = 1 and len(r.Damaged) = 0 and storetest.Read(t, cache, catalog.Name+".damaged")[:11] = "no database"`,
			r)
	}
	if got := search1(t, s, api.SearchQuery{Text: "hello"}); got.Read != 0 || len(got.Items) == 0 {
		t.Errorf("after the repair %d tasks had to be read, %d hits", got.Read, len(got.Items))
	}
	if again := runDoctor(t, s, doctor.Options{Repair: true}); len(again.Repaired) != 0 || len(again.Leftovers) != 1 {
		t.Errorf("again: %+v", again)
	}
	if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
		t.Errorf("tasks were touched: %s", d)
	}
}

// A catalogue that the disk does not let SQLite open may be whole: it is no damage, and a repair leaves it alone.
func TestCheckOfACatalogueThatCannotBeOpened(t *testing.T) {
	s, _, cache, _ := newCheckedStore(t)
	storetest.Check(t, os.Mkdir(filepath.Join(cache, catalog.Name+"-wal"), 0o700)) // SQLite writes this file, and cannot, as on a disk that is read-only
	before := storetest.Read(t, cache, catalog.Name)
	for _, o := range []doctor.Options{{}, {Repair: true}} {
		if r := runDoctor(t, s, o); len(r.Damaged)+len(r.Repaired) > 0 || r.OK != 3 || storetest.Read(t, cache, catalog.Name) != before {
			t.Errorf("%+v: got %+v, want 3 whole tasks, and no damage", o, r)
		}
	}
}

// What interrupted work left in a task's folder: what is surely nobody's goes, what
// may hold messages stays, and what may be in use is not named.
func TestCheckOfLeftovers(t *testing.T) {
	storetest.SkipInShort(t)
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
		{"blobs/ab/" + strings.Repeat("ab", 32), false, false, "no commit names 1 payloads of 3 bytes in all", false},
		{".ui_messages.json.bak_1700000000000_x.tmp", false, false, "what had been ui_messages.json", false},
		{".ui_messages.json.new_1700000000000_x.tmp", true, false, "", false},
		{"ui_messages.json.lock", false, true, "a lock that no process has renewed", false},
		{"ui_messages.json.lock", true, true, "", false},
		{"my-notes.txt", false, false, "", false},
		{"journal.torn-5", false, false, "", false},
	} {
		t.Run(fmt.Sprint(c.name, c.fresh), func(t *testing.T) {
			s, dir := ill(t)
			path := filepath.Join(dir, c.name)
			if c.folder {
				storetest.Check(t, os.Mkdir(path, 0o700))
			} else {
				storetest.Write(t, filepath.Dir(path), filepath.Base(path), "[1]")
			}
			if !c.fresh {
				storetest.Check(t, os.Chtimes(path, long, long))
			}
			r := runDoctor(t, s, doctor.Options{})
			if got := problems(r.Leftovers); (got != "") != (c.found != "") || !strings.Contains(got, c.found) || r.OK != 1 {
				t.Errorf("got %s\n%+v, want (got != \"\") = (c.found != \"\") and strings.Contains(got, c.found) and r.OK = 1",
					got, r)
			}
			r = runDoctor(t, s, doctor.Options{Repair: true})
			if gone := !storetest.Exists(path, ""); gone != c.removed || (len(r.Repaired) > 0) != c.removed {
				t.Errorf("gone: %v; %+v", gone, r)
			}
			if again := runDoctor(t, s, doctor.Options{Repair: true}); len(again.Repaired) > 0 {
				t.Errorf("again: %+v", again.Repaired)
			}
		})
	}
}

// A living owner's files are on their way; nothing of it is judged or taken away.
func TestCheckBesideAnOwner(t *testing.T) {
	s, dir := ill(t)
	k := storetest.Own(t, s, "ill").Task
	storetest.Write(t, dir, ".projection-12", "x")
	long := time.Now().Add(-2 * time.Hour)
	storetest.Check(t, os.Chtimes(filepath.Join(dir, ".projection-12"), long, long))
	storetest.Check(t, os.Remove(filepath.Join(dir, "journal.idx")))
	r := runDoctor(t, s, doctor.Options{Repair: true, Rebuild: true})
	if r.OK != 1 || len(r.Damaged)+len(r.Repaired)+len(r.Leftovers) > 0 || !storetest.Exists(dir, ".projection-12") {
		t.Errorf("got %+v, want r.OK = 1 and len(r.Damaged)+len(r.Repaired)+len(r.Leftovers) <= 0 and storetest.Exists(dir, \".projection-12\")",
			r)
	}
	storetest.Close(t, k)
}

// The owner of a task writes the entry of Roo's index later than the files of the task.
func TestCheckOfTheIndexBesideAnOwner(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := storetest.Open(t, root)
	storetest.Close(t, storetest.Create(t, s, "done"))
	k := storetest.Create(t, s, "works")
	storetest.Write(t, filepath.Join(root, "tasks", "works"), roofmt.ItemName, `{"id":"works","number":2,"ts":2,"task":"words"}`)
	if r := runDoctor(t, s, doctor.Options{}); len(r.Stale) != 0 {
		t.Errorf("while a process owns the task: got %s, want nothing stale", problems(r.Stale))
	}
	storetest.Close(t, k)
	storetest.Write(t, filepath.Join(root, "tasks", "done"), roofmt.ItemName, `{"id":"done","number":9,"ts":2,"task":"other words"}`)
	if r := runDoctor(t, s, doctor.Options{}); !strings.Contains(problems(r.Stale), "it does not match 1 task folder") {
		t.Errorf("without an owner: got %s, want one task that the index lacks", problems(r.Stale))
	}
}

func TestCheckOfStrays(t *testing.T) {
	s, root, cache, _ := newCheckedStore(t)
	here := t.TempDir()
	long := time.Now().Add(-2 * time.Hour)
	for _, path := range []string{filepath.Join(root, ".probe-1"), filepath.Join(cache, ".roost-export-1"), filepath.Join(here, ".roost-export-2")} {
		storetest.Write(t, filepath.Dir(path), filepath.Base(path), "x")
		storetest.Check(t, os.Chtimes(path, long, long))
	}
	storetest.Write(t, here, ".roost-export-3", "somebody exports just now")
	o := doctor.Options{Repair: true, SpillDir: here}
	if r := runDoctor(t, s, doctor.Options{SpillDir: here}); len(r.Leftovers) != 3 {
		t.Errorf("got %+v, want len(r.Leftovers) = 3", r)
	}
	if r := runDoctor(t, s, o); len(r.Repaired) != 3 || !storetest.Exists(here, ".roost-export-3") || storetest.Exists(root, ".probe-1") {
		t.Errorf(`got %+v, want len(r.Repaired) = 3 and storetest.Exists(here, ".roost-export-3") and not storetest.Exists(root, ".probe-1")`,
			r)
	}
	if r := runDoctor(t, s, o); len(r.Repaired)+len(r.Leftovers) != 0 {
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
	words := storetest.APIRow(1, "user", "words")
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
		storage, dir := storetest.RooStorage(t, "paired")
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(c.list...))
		r := runDoctor(t, storetest.Open(t, filepath.Join(t.TempDir(), "root"), storage), doctor.Options{})
		if got := problems(r.Damaged); c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%d messages: %q, want %q", len(c.list), got, c.want)
		}
	}
}

// A user who removes a question keeps the answer: it is no damage that the answer lacks its call then.
func TestCheckOfAResultWhoseCallWasRemoved(t *testing.T) {
	s := storetest.Open(t, filepath.Join(t.TempDir(), "root"))
	k := storetest.Create(t, s, "t")
	storetest.Commit(t, k, task.API, storetest.APIRow(1, "user", "do it"))
	storetest.Commit(t, k, task.API, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}`)
	asked := k.State().API()[1].ID
	storetest.Commit(t, k, task.API, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"the blue one"}]}`)
	storetest.Check(t, k.Commit(context.Background(), task.Rewound{Why: "remove", To: asked, Hide: []task.Run64{{asked, asked}}}))
	storetest.Close(t, k)
	if r := runDoctor(t, s, doctor.Options{}); len(r.Damaged) != 0 {
		t.Errorf("got %s, want no damage", problems(r.Damaged))
	}
}

func TestWorkTellsHowFarItIs(t *testing.T) {
	s, _, _, _ := newCheckedStore(t)
	told := map[string]int{}
	ctx := progress.With(context.Background(), func(p progress.State) { told[p.What] = max(told[p.What], p.Of) })
	storetest.Must[api.Checkup](t)(doctor.Check(ctx, s, nil, doctor.Options{}))
	if told["checking"] != 3 || told["comparing the catalogue"] != 3 {
		t.Errorf(`got %v, want told["checking"] = 3 and told["comparing the catalogue"] = 3`, told)
	}
}

// openCached is a store with a cache.
func openCached(t testing.TB, root, cache string, sources ...string) *store.Store {
	t.Helper()
	return storetest.OpenWith(t, store.Options{Root: root, Cache: cache, Sources: sources})
}

func search1(t testing.TB, s *store.Store, q api.SearchQuery) search.Result {
	t.Helper()
	return storetest.Must[search.Result](t)(search.Run(context.Background(), s, q))
}
