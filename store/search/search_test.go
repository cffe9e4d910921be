package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// searching is a store with a catalogue of its own.
func searching(t testing.TB, root, cache string, sources ...string) *store.Store {
	t.Helper()
	s := storetest.OpenWith(t, store.Options{Root: root, Cache: cache, Sources: sources})
	s.TrustTimesAfter(calmHere)
	return s
}

// calmHere is some ticks of the clock that files get their times from.
const calmHere = 12 * time.Millisecond

// aged makes everything below a folder an hour old, and waits until a later change
// would be seen: what changed just now is not kept in the catalogue.
func aged(t testing.TB, dir string) {
	t.Helper()
	hour := time.Now().Add(-time.Hour)
	storetest.Check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, hour, hour)
	}))
	time.Sleep(2 * calmHere)
}

func search1(t testing.TB, s *store.Store, q api.SearchQuery) Result {
	t.Helper()
	return storetest.Must[Result](t)(Run(context.Background(), s, q))
}

// places are the hits of a search as ID HISTORY#NUMBER.
func places(r Result) []string {
	out := []string{}
	for _, h := range r.Items {
		out = append(out, fmt.Sprintf("%s %s#%d", h.Task.ID, h.History, h.Number))
	}
	return out
}

// garden is a storage with some tasks, the newest last.
func garden(t testing.TB) string {
	t.Helper()
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	for i, text := range []string{"dig a pond", "plant a hedge", "paint the fence"} {
		dir := filepath.Join(storage, "tasks", fmt.Sprint("task", i))
		call := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"read_file","input":{"path":"plans/%d.md"}}],"ts":%d}`,
			i, storetest.TS0+i*10+2)
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(i*10+1, text), storetest.UIRow(i*10+5, "done with the garden")))
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(i*10+1, "user", text), call))
		storetest.Write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":"task%d","ts":%d,"task":%q,"workspace":"/w%d"}`,
			i, storetest.TS0+i*10+5, text, i%2))
	}
	return storage
}

// Whether the catalogue is not there, knows everything, was deleted or damaged, or
// there is no place for it: the hits are the same, and no folder is touched.
func TestSearchIsTheSameWithAnyCatalogue(t *testing.T) {
	storage, root, cache := garden(t), t.TempDir(), t.TempDir()
	s := searching(t, root, cache, storage)
	storetest.Close(t, storetest.Create(t, s, "mine"))
	aged(t, root)
	aged(t, storage)
	before := []map[string]string{storetest.Tree(t, storage), storetest.Tree(t, root)}
	queries := []string{"garden", "PAINT", "plans/1", "hello mine", "e", "nothing-of-it"}
	look := func(s *store.Store) (out []Result) {
		for _, text := range queries {
			r := search1(t, s, api.SearchQuery{Text: text})
			r.Read, r.Notes = 0, nil
			out = append(out, r)
		}
		return out
	}
	opts := cmp.AllowUnexported(api.SourceState{})
	want := look(searching(t, root, "", storage))
	if got := places(want[0]); len(got) != 3 || got[0] != "task2 ui#2" {
		t.Fatalf("got %v, want len(got) = 3 and got[0] = \"task2 ui#2\"", got)
	}
	path := filepath.Join(cache, catalog.Name)
	for _, state := range []struct {
		name string
		make func()
	}{
		{"none", func() {}},
		{"whole", func() {
			if r := search1(t, s, api.SearchQuery{Text: "garden"}); r.Read != 0 || r.Tasks != 4 {
				t.Errorf("%d of %d tasks were read again", r.Read, r.Tasks)
			}
		}},
		{"deleted", func() { storetest.Check(t, os.Remove(path)) }},
		{"garbage", func() { storetest.Check(t, os.WriteFile(path, []byte(strings.Repeat("garbage ", 2000)), 0o600)) }},
		{"cut", func() { storetest.Check(t, os.Truncate(path, 5000)) }},
		{"a folder", func() { storetest.Check(t, os.RemoveAll(path)); storetest.Check(t, os.Mkdir(path, 0o700)) }},
	} {
		state.make()
		if diff := cmp.Diff(want, look(s), opts); diff != "" {
			t.Errorf("catalogue %s: -none +this\n%s", state.name, diff)
		}
	}
	if diff := cmp.Diff(before, []map[string]string{storetest.Tree(t, storage), storetest.Tree(t, root)}); diff != "" {
		t.Errorf("searching changed something: %s", diff)
	}
}

func TestSearchSeesChangesAtOnce(t *testing.T) {
	storage, cache := garden(t), t.TempDir()
	aged(t, storage)
	s := searching(t, t.TempDir(), cache, storage)
	search1(t, s, api.SearchQuery{Text: "x"})
	dir := filepath.Join(storage, "tasks", "task1")
	for _, text := range []string{"a wall instead", "a gate instead"} { // of equal length, in place
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(11, text)))
		r := search1(t, s, api.SearchQuery{Text: text})
		if diff := cmp.Diff([]string{"task1 ui#1"}, places(r)); diff != "" || r.Read != 1 {
			t.Errorf("%q: %d read, %s", text, r.Read, diff)
		}
	}
	if got := places(search1(t, s, api.SearchQuery{Text: "wall"})); len(got) > 0 {
		t.Errorf("what is gone is found: %v", got)
	}
	storetest.Check(t, os.RemoveAll(dir))
	if got := places(search1(t, s, api.SearchQuery{Text: "gate"})); len(got) > 0 {
		t.Errorf("a task that was deleted is found: %v", got)
	}
	storetest.Write(t, filepath.Join(storage, "tasks", "new"), roofmt.UIName, storetest.Array(storetest.UIRow(99, "a gate again")))
	if diff := cmp.Diff([]string{"new ui#1"}, places(search1(t, s, api.SearchQuery{Text: "gate"}))); diff != "" {
		t.Error(diff)
	}
}

// Our own tasks are found while they run, with what was committed, and their state is
// told as it is now.
func TestSearchOwnTasks(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	s := searching(t, root, cache)
	k := storetest.Create(t, s, "mine")
	storetest.Commit(t, k, "ui", storetest.UIRow(2, "half a thought"))
	if diff := cmp.Diff([]string{"mine ui#2"}, places(search1(t, s, api.SearchQuery{Text: "thought"}))); diff != "" {
		t.Error(diff)
	}
	storetest.Close(t, k)
	aged(t, root)
	for _, read := range []int{1, 0} {
		r := search1(t, s, api.SearchQuery{Text: "thought"})
		if diff := cmp.Diff([]string{"mine ui#2"}, places(r)); diff != "" || r.Read != read {
			t.Errorf("%d read, want %d; %s", r.Read, read, diff)
		}
		listed := storetest.List(t, s, store.Filter{}).Items[0]
		if diff := cmp.Diff(listed, r.Items[0].Task); diff != "" {
			t.Errorf("a hit's task is not the listed one: %s", diff)
		}
	}
}

func TestSearchFilters(t *testing.T) {
	storage, cache := garden(t), t.TempDir()
	aged(t, storage)
	s := searching(t, t.TempDir(), cache, storage)
	for _, round := range []string{"read", "known"} {
		for _, c := range []struct {
			name string
			q    api.SearchQuery
			want []string
		}{
			{"workspace", api.SearchQuery{Text: "garden", Filter: api.TaskFilter{Workspace: "/w1"}}, []string{"task1 ui#2"}},
			{"status", api.SearchQuery{Text: "garden", Filter: api.TaskFilter{Status: "completed"}}, []string{}},
			{"since", api.SearchQuery{Text: "garden", Filter: api.TaskFilter{Since: storetest.TS0 + 20}}, []string{"task2 ui#2"}},
			{"until", api.SearchQuery{Text: "garden", Filter: api.TaskFilter{Until: storetest.TS0 + 10}}, []string{"task0 ui#2"}},
			{"source", api.SearchQuery{Text: "garden", Filter: api.TaskFilter{Source: "elsewhere"}}, []string{}},
			{"tool", api.SearchQuery{Text: "pond", Filter: api.TaskFilter{Source: "roo"}}, []string{"task0 ui#1"}},
			{"history", api.SearchQuery{Text: "pond", In: []string{"api"}}, []string{"task0 api#1"}},
			{"path", api.SearchQuery{Text: "2.md", In: []string{"path"}}, []string{"task2 api#2"}},
			{"tool text", api.SearchQuery{Text: "read_file 0.md", In: []string{"tool"}}, []string{"task0 api#2"}},
		} {
			if diff := cmp.Diff(c.want, places(search1(t, s, c.q))); diff != "" {
				t.Errorf("got %s, %s: %s, want diff = \"\"", round, c.name, diff)
			}
		}
	}
}

func TestSearchPages(t *testing.T) {
	storage, cache := garden(t), t.TempDir()
	aged(t, storage)
	s := searching(t, t.TempDir(), cache, storage)
	all := places(search1(t, s, api.SearchQuery{Text: "a"}))
	for limit := 1; limit <= len(all)+1; limit++ {
		var got []string
		cursor := ""
		for {
			r := search1(t, s, api.SearchQuery{Text: "a", Filter: api.TaskFilter{Limit: limit, Cursor: cursor}})
			got = append(got, places(r)...)
			if cursor = r.NextCursor; cursor == "" || len(r.Items) == 0 {
				break
			}
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("pages of %d: %s", limit, diff)
		}
	}
	if _, err := Run(context.Background(), s, api.SearchQuery{Text: "a", Filter: api.TaskFilter{Cursor: "x"}}); err == nil {
		t.Error("a cursor that nobody gave was taken")
	}
	if _, err := Run(context.Background(), s, api.SearchQuery{Text: " "}); !errors.Is(err, catalog.ErrQuery) {
		t.Errorf("error %v", err)
	}
}

// One task that cannot be read is named, and the others are searched. A storage that
// cannot be reached is named, too, and what the catalogue knows of it is kept.
func TestSearchBesideDamage(t *testing.T) {
	storage, root, cache := garden(t), t.TempDir(), t.TempDir()
	loop := filepath.Join(storage, "tasks", "loop")
	storetest.Check(t, os.Symlink(loop, loop))
	storetest.Write(t, filepath.Join(storage, "tasks", "torn"), roofmt.UIName, "["+storetest.UIRow(1, "half of the garden")+`,{"ts":`)
	s := searching(t, root, cache, storage)
	r := search1(t, s, api.SearchQuery{Text: "garden"})
	if diff := cmp.Diff([]string{"task2 ui#2", "task1 ui#2", "task0 ui#2", "torn ui#1"}, places(r)); diff != "" {
		t.Error(diff)
	}
	if len(r.Unread) != 1 || r.Unread[0].File != loop || len(r.Items[3].Task.Damaged) == 0 {
		t.Errorf("got %+v, want len(r.Unread) = 1 and r.Unread[0].File = loop and len(r.Items[3].Task.Damaged) != 0",
			r.Unread)
	}
	for _, id := range []string{"task0", "task1", "task2", "torn"} {
		aged(t, filepath.Join(storage, "tasks", id))
	}
	search1(t, s, api.SearchQuery{Text: "garden"})
	away := storage + ".away"
	storetest.Check(t, os.Rename(storage, away))
	storetest.Check(t, os.Symlink(storage, storage))
	r = search1(t, s, api.SearchQuery{Text: "garden"})
	if len(r.Items) != 0 || !strings.HasPrefix(r.Sources[1].State, "unreachable") {
		t.Errorf("got %v, %+v, want len(r.Items) = 0 and strings.HasPrefix(r.Sources[1].State, \"unreachable\")",
			places(r), r.Sources)
	}
	storetest.Check(t, os.Remove(storage))
	storetest.Check(t, os.Rename(away, storage))
	if r = search1(t, s, api.SearchQuery{Text: "garden"}); len(r.Items) != 4 || r.Read != 1 {
		t.Errorf("%v, %d read: what the catalogue knew was forgotten", places(r), r.Read)
	}
}

// A copy of a task is found once, and where it lies is said.
func TestSearchCopiesOnce(t *testing.T) {
	first, dir := storetest.RooStorage(t, "same")
	second, other := storetest.RooStorage(t, "same")
	s := searching(t, t.TempDir(), t.TempDir(), first, second)
	for _, round := range []string{"read", "known"} {
		r := search1(t, s, api.SearchQuery{Text: "done so far", In: []string{"ui"}})
		if len(r.Items) != 1 || r.Items[0].Task.Path != dir || cmp.Diff([]string{other}, r.Items[0].Task.Copies) != "" {
			t.Errorf("%s: %+v", round, r.Items)
		}
		aged(t, first)
		search1(t, s, api.SearchQuery{Text: "x"})
	}
}

// A search that has no patience left finds the same and keeps less.
func TestSearchWithoutPatience(t *testing.T) {
	storage, cache := garden(t), t.TempDir()
	aged(t, storage)
	s := searching(t, t.TempDir(), cache, storage)
	for range 2 {
		r := search1(t, s, api.SearchQuery{Text: "garden", Patience: 1})
		if len(r.Items) != 3 || r.Read != 3 {
			t.Errorf("%v, %d read", places(r), r.Read)
		}
	}
}

func TestSearchesTogether(t *testing.T) {
	storage, root, cache := garden(t), t.TempDir(), t.TempDir()
	aged(t, storage)
	var all sync.WaitGroup
	for range 4 {
		s := searching(t, root, cache, storage)
		all.Go(func() {
			for range 5 {
				r, err := Run(context.Background(), s, api.SearchQuery{Text: "garden"})
				if err != nil || len(r.Items) != 3 || len(r.Notes) > 0 {
					t.Errorf("got %v, %v, %v, want no error and len(r.Items) = 3 and len(r.Notes) <= 0",
						places(r), r.Notes, err)
				}
			}
		})
	}
	all.Wait()
}

func TestSearchCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, searching(t, t.TempDir(), t.TempDir(), garden(t)), api.SearchQuery{Text: "garden"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Of every real task each kind of text is found, by reading and by the catalogue
// alike, and nothing is changed by looking.
func TestCorpusSearch(t *testing.T) {
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		before := storetest.Tree(t, dir)
		root := filepath.Join(t.TempDir(), "root")
		s, without := searching(t, root, t.TempDir(), dir), searching(t, root, "", dir)
		for i, text := range []string{"the", "e", "src/", "tion", "的", "\" a\"", "import"} {
			want, got := search1(t, without, api.SearchQuery{Text: text}), search1(t, s, api.SearchQuery{Text: text})
			if i > 0 && got.Read > 0 {
				t.Errorf("the task is not kept")
			}
			if diff := cmp.Diff(want.Items, got.Items); diff != "" {
				t.Errorf("%q: -read +known\n%.2000s", text, diff)
			}
		}
		if diff := cmp.Diff(before, storetest.Tree(t, dir)); diff != "" {
			t.Errorf("searching changed the folder: %s", diff)
		}
	})
}
