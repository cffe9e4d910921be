package store

import (
	"context"
	"encoding/json"
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
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// storageWith is a storage with n tasks, the last one the newest.
func storageWith(t testing.TB, n int) (storage string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	for i := range n {
		write(t, filepath.Join(storage, "tasks", fmt.Sprintf("task-%03d", i)), roofmt.UIName, array(uiRow(i, fmt.Sprint("do ", i))))
	}
	return storage
}

func titles(list []api.Summary) (out []string) {
	for _, t := range list {
		out = append(out, t.Title)
	}
	return out
}

func pageBy(t testing.TB, s *Store, f Filter) Listing {
	t.Helper()
	return fixture.Must[Listing](t)(s.List(context.Background(), f))
}

// A file that was written in place, to the same length, and given its old time back
// is seen: the system keeps a time that nobody can set.
func TestRewrittenWithItsOldTime(t *testing.T) {
	storage := storageWith(t, 2)
	s := cached(t, open(t, t.TempDir(), storage), t.TempDir())
	s.calmIn = intake.ClockTick // as it is outside of tests
	path := filepath.Join(storage, "tasks", "task-000", roofmt.UIName)
	old := time.Now().Add(-time.Hour)
	fixture.NoError(t, os.Chtimes(path, old, old))
	waitForCalm()
	pageBy(t, s, Filter{})
	info := fixture.Must[os.FileInfo](t)(os.Stat(path))
	f := fixture.Must[*os.File](t)(os.OpenFile(path, os.O_WRONLY, 0))
	_, err := f.WriteString(array(uiRow(0, "DO 0")))
	fixture.NoError(t, err)
	fixture.NoError(t, f.Close())
	fixture.NoError(t, os.Chtimes(path, old, old))
	if now := fixture.Must[os.FileInfo](t)(os.Stat(path)); now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		t.Fatal("the test did not do what it says")
	}
	if got := titles(pageBy(t, s, Filter{}).Items); !cmp.Equal(got, []string{"do 1", "DO 0"}) {
		t.Errorf("%q", got)
	}
}

// waitForCalm lets enough time pass for files to be believed.
func waitForCalm() { time.Sleep(2 * intake.ClockTick) }

// What was written just now is not believed: another write may leave no trace. It is
// once it has stood still, and then its file is not opened again.
func TestOnlyWhatStandsStillIsKept(t *testing.T) {
	storage, cache := storageWith(t, 3), t.TempDir()
	s := cached(t, open(t, t.TempDir(), storage), cache)
	s.calmIn = time.Hour
	pageBy(t, s, Filter{})
	if n := knownRows(t, s); n != 0 {
		t.Errorf("%d rows of files that had just changed were kept", n)
	}
	s.calmIn = 0
	pageBy(t, s, Filter{})
	if n := knownRows(t, s); n != 3 {
		t.Errorf("%d of 3 rows were kept", n)
	}
}

// knownSources is what the cache holds.
func knownSources(t testing.TB, s *Store) []catalog.SourceRows {
	t.Helper()
	known := s.readRows(context.Background(), catalog.Summaries)
	if known.DB() == nil {
		t.Fatal("there is no cache")
	}
	defer known.Close()
	return known.Sources()
}

// knownRows counts the rows that the cache holds.
func knownRows(t testing.TB, s *Store) (n int) {
	t.Helper()
	for _, src := range knownSources(t, s) {
		n += len(src.Rows)
	}
	return n
}

// A storage that cannot be reached keeps its tasks in the list, each saying so, by
// whichever path it was named; what is unreachable from the start has none.
func TestUnreachableStorageKeepsItsTasks(t *testing.T) {
	storage := storageWith(t, 3)
	link := filepath.Join(t.TempDir(), "link")
	fixture.NoError(t, os.Symlink(storage, link))
	for name, named := range map[string]string{"storage": storage, "tasks folder": filepath.Join(storage, "tasks"), "link": link} {
		t.Run(name, func(t *testing.T) {
			root, cache := t.TempDir(), t.TempDir()
			s := cached(t, open(t, root, named), cache)
			was := pageBy(t, s, Filter{})
			fixture.NoError(t, os.Rename(storage, storage+".away"))
			defer os.Rename(storage+".away", storage)
			got := pageBy(t, s, Filter{})
			if !cmp.Equal(titles(got.Items), titles(was.Items)) || got.Items[0].Source != was.Items[0].Source || got.Items[0].TS != was.Items[0].TS {
				t.Fatalf("%q, was %q", titles(got.Items), titles(was.Items))
			}
			for _, item := range got.Items {
				if len(item.Damaged) != 1 || !strings.Contains(item.Damaged[0].Problem, "cannot be reached") {
					t.Errorf("%s does not say so: %v", item.ID, item.Damaged)
				}
			}
			src := got.Sources[1]
			if src.Name != was.Sources[1].Name || !strings.HasPrefix(src.State, unreachable) || src.Tasks != 3 || src.Damaged != 0 {
				t.Errorf("got %+v, want src.Name = was.Sources[1].Name and strings.HasPrefix(src.State, unreachable) and src.Tasks = 3 and src.Damaged = 0",
					src)
			}
			if again := pageBy(t, s, Filter{TaskFilter: api.TaskFilter{Words: "do 1"}}); len(again.Items) != 1 {
				t.Errorf("a filter finds %d", len(again.Items))
			}
			fixture.NoError(t, os.Rename(storage+".away", storage))
			if diff := cmp.Diff(was, pageBy(t, s, Filter{}), cmp.AllowUnexported(api.SourceState{})); diff != "" {
				t.Errorf("when it is back: -was +is\n%s", diff)
			}
			fixture.NoError(t, os.Rename(storage, storage+".away"))
			if fresh := pageBy(t, open(t, root, named), Filter{}); len(fresh.Items) != 0 || !strings.HasPrefix(fresh.Sources[1].State, unreachable) {
				t.Errorf("without a cache: %+v", fresh)
			}
		})
	}
}

// A list of one storage does not forget another one, nor one that another process
// has kept meanwhile.
func TestStoragesAreKeptApart(t *testing.T) {
	one, two, root, cache := storageWith(t, 2), storageWith(t, 3), t.TempDir(), t.TempDir()
	first, second := cached(t, open(t, root, one), cache), cached(t, open(t, root, two), cache)
	pageBy(t, first, Filter{})
	pageBy(t, second, Filter{})
	if n := knownRows(t, first); n != 5 {
		t.Errorf("%d of 5 rows are known", n)
	}
	l := fixture.Must[*lines](t)(first.lines(context.Background(), first.readRows(context.Background(), catalog.Bare), false))
	defer l.close()
	write(t, filepath.Join(two, "tasks", "more"), roofmt.UIName, array(uiRow(9, "more")))
	pageBy(t, second, Filter{})
	l.keep(context.Background()) // as a process that read before the other one wrote
	if n := knownRows(t, first); n != 6 {
		t.Errorf("%d of 6 rows are known", n)
	}
}

// Lists at the same time, with tasks coming in between, agree with the folders.
func TestListsTogether(t *testing.T) {
	storage, root, cache := storageWith(t, 20), t.TempDir(), t.TempDir()
	var all sync.WaitGroup
	for w := range 4 {
		s := cached(t, open(t, root, storage), cache)
		all.Go(func() {
			for i := range 5 {
				dir := filepath.Join(storage, "tasks", fmt.Sprint("new-", w, "-", i))
				write(t, dir, roofmt.UIName, array(uiRow(100, "new")))
				got, err := s.List(context.Background(), Filter{})
				if err != nil || len(got.Items) < 20+i+1 {
					t.Errorf("%d tasks, %v", len(got.Items), err)
				}
			}
		})
	}
	all.Wait()
	if got := pageBy(t, cached(t, open(t, root, storage), cache), Filter{}); len(got.Items) != 40 {
		t.Errorf("%d of 40 tasks", len(got.Items))
	}
}

// Lists of one process at the same time, by titles and with
// copies, see each change that was made before them, and so does another process.
func TestListsOfOneProcessTogether(t *testing.T) {
	storage, second, root, cache := storageWith(t, 12), storageWith(t, 12), t.TempDir(), t.TempDir()
	plain := open(t, root, storage, second)
	server, other := cached(t, plain, cache), cached(t, plain, cache)
	server.calmIn, other.calmIn = intake.ClockTick, intake.ClockTick // as they are outside of tests
	waitForCalm()
	pageBy(t, server, Filter{})
	if n := knownRows(t, server); n != 24 {
		t.Errorf("%d of 24 rows were kept", n)
	}
	var all sync.WaitGroup
	for w := range 4 {
		s := server
		if w == 3 {
			s = other
		}
		all.Go(func() {
			for i := range 4 {
				title := fmt.Sprintf("made-%d-%d", w, i)
				dir := filepath.Join(storage, "tasks", fmt.Sprint("new-", w, "-", i/2)) // every second is a change
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Error(err)
					return
				}
				if err := renamed(filepath.Join(dir, roofmt.UIName), []byte(array(uiRow(100+i, title)))); err != nil {
					t.Error(err)
					return
				}
				got, err := s.List(context.Background(), Filter{TaskFilter: api.TaskFilter{Words: title}})
				if err != nil || len(got.Items) != 1 {
					t.Errorf("%q: %d tasks, %v", title, len(got.Items), err)
				}
				got, err = s.List(context.Background(), Filter{TaskFilter: api.TaskFilter{Tree: w%2 == 0, Sort: "oldest"}})
				if err != nil || len(got.Items) < 12+i/2+1 || got.Items[0].Title != "do 0" || len(got.Items[0].Copies) != 1 {
					t.Errorf("%d tasks, %v", len(got.Items), err)
				}
			}
		})
	}
	all.Wait()
	for _, f := range []Filter{{}, {TaskFilter: api.TaskFilter{Words: "made-2"}}, {TaskFilter: api.TaskFilter{Sort: "oldest", Limit: 5, Cursor: Filter{TaskFilter: api.TaskFilter{Sort: "oldest"}}.cursor(position{ts: ts0 + 3})}}} {
		want := page(t, plain, f)
		for _, s := range []*Store{server, other} {
			if diff := cmp.Diff(want, page(t, s, f)); diff != "" {
				t.Errorf("%+v: -without +with rows\n%s", f, diff)
			}
		}
	}
}

// No place for the rows, or another thing in their place: the list is the same.
func TestNoPlaceForRows(t *testing.T) {
	storage, root := storageWith(t, 3), t.TempDir()
	want := pageBy(t, open(t, root, storage), Filter{})
	file := filepath.Join(t.TempDir(), "file")
	fixture.NoError(t, os.WriteFile(file, nil, 0o600))
	taken := t.TempDir()
	fixture.NoError(t, os.Mkdir(filepath.Join(taken, catalog.Name), 0o700))
	closed := t.TempDir()
	fixture.NoError(t, os.Chmod(closed, 0o500))
	for _, cache := range []string{filepath.Join(file, "cache"), taken, closed, filepath.Join(t.TempDir(), "not", "there")} {
		for range 2 {
			if diff := cmp.Diff(want, pageBy(t, cached(t, open(t, root, storage), cache), Filter{}), cmp.AllowUnexported(api.SourceState{})); diff != "" {
				t.Errorf("%s: -want +got\n%s", cache, diff)
			}
		}
	}
	left := fixture.Must[[]os.DirEntry](t)(os.ReadDir(taken))
	if len(left) != 1 {
		t.Errorf("something is left behind: %v", left)
	}
}

// What a run does shows at once, also while its owner holds the task, and that it runs
// is seen though no file tells it.
func TestRunningTaskIsNeverOld(t *testing.T) {
	ctx := context.Background()
	s := cached(t, open(t, t.TempDir()), t.TempDir())
	o := fixture.Must[*Task](t)(s.Create(ctx, task.Created{Task: "mine", Number: 1, CreatedAt: ts0}))
	fixture.NoError(t, o.Commit(ctx, task.RunStarted{Run: "r1"}))
	fixture.NoError(t, o.Close(ctx))
	for range 2 {
		if got := pageBy(t, s, Filter{}).Items[0].Status; got != "interrupted" {
			t.Errorf("nobody owns it, and it is %s", got)
		}
	}
	if knownRows(t, s) != 1 {
		t.Error("its row was not kept, so the next does not tell much")
	}
	owned := fixture.Must[*Owned](t)(s.Own(ctx, fixture.Must[Ref](t)(s.Find(ctx, "mine"))))
	for i := range 3 {
		title := fmt.Sprint("step ", i)
		fixture.NoError(t, owned.Task.Commit(ctx, task.Changed{Title: &title}))
		fixture.NoError(t, owned.Task.Barrier(ctx))
		if got := pageBy(t, s, Filter{TaskFilter: api.TaskFilter{Words: title}}); len(got.Items) != 1 {
			t.Errorf("%s is not listed", title)
		}
	}
	fixture.NoError(t, owned.Task.Close(ctx))
}

// A page of a tree has whole families, pages have every task once, and a child of a
// parent that the filter leaves out stands alone.
func TestTreeInPages(t *testing.T) {
	storage := storageWith(t, 0)
	parent := map[int]int{5: 0, 1: 0, 4: 5, 3: 4, 8: 7, 9: 42}
	for i := range 10 {
		dir := filepath.Join(storage, "tasks", fmt.Sprintf("task-%03d", i))
		write(t, dir, roofmt.UIName, array(uiRow(i, fmt.Sprint("do ", i))))
		item := fmt.Sprintf(`{"id":"task-%03d","ts":%d,"task":"do %d"`, i, ts0+i, i)
		if p, ok := parent[i]; ok {
			item += fmt.Sprintf(`,"parentTaskId":"task-%03d"`, p)
		}
		write(t, dir, roofmt.ItemName, item+"}")
	}
	s := cached(t, open(t, t.TempDir(), storage), t.TempDir())
	for _, limit := range []int{0, 1, 2, 3, 5, 100} {
		var all []string
		var f Filter
		for f = (Filter{TaskFilter: api.TaskFilter{Tree: true, Limit: limit}}); ; {
			got := pageBy(t, s, f)
			on := map[string]int{}
			for i, item := range got.Items {
				on[item.ID] = got.Depths[i]
				if depth, there := on[item.ParentID]; (there || got.Depths[i] != 0) && (!there || got.Depths[i] != depth+1) {
					t.Errorf("limit %d: %s stands at depth %d and its parent %s at %d", limit, item.ID, got.Depths[i], item.ParentID, depth)
				}
				if _, there := on[item.ParentID]; !there && item.ParentID != "" && item.ParentID != "task-042" {
					t.Errorf("limit %d: %s lost its parent", limit, item.ID)
				}
			}
			all = append(all, titles(got.Items)...)
			if f.Cursor = got.NextCursor; f.Cursor == "" {
				break
			}
		}
		if got := strings.Join(all, ","); got != "do 9,do 7,do 8,do 6,do 2,do 0,do 5,do 4,do 3,do 1" {
			t.Errorf("limit %d: %s", limit, got)
		}
	}
	alone := pageBy(t, s, Filter{TaskFilter: api.TaskFilter{Tree: true, Words: "8"}})
	if len(alone.Items) != 1 || alone.Depths[0] != 0 {
		t.Errorf("%v at %v", titles(alone.Items), alone.Depths)
	}
}

// Copies are told apart by content, and what was compared is not read again.
func TestCopiesAreComparedOnce(t *testing.T) {
	one, two := storageWith(t, 3), storageWith(t, 3)
	s := cached(t, open(t, t.TempDir(), one, two), t.TempDir())
	if got := pageBy(t, s, Filter{}); len(got.Items) != 3 || len(got.Items[0].Copies) != 1 {
		t.Fatalf("%d tasks", len(got.Items))
	}
	for _, src := range knownSources(t, s) {
		for _, row := range src.Rows {
			if row.Content == [16]byte{} {
				t.Errorf("%s of %s was not kept as compared", row.ID, src.Name)
			}
		}
	}
	path := filepath.Join(two, "tasks", "task-001", roofmt.UIName)
	fixture.NoError(t, os.WriteFile(path, []byte(array(uiRow(1, "DO 1"))), 0o600))
	if got := pageBy(t, s, Filter{}); len(got.Items) != 4 {
		t.Errorf("%d tasks after one went on elsewhere", len(got.Items))
	}
}

// A list that is cancelled says so, whatever it was doing.
func TestCancelledList(t *testing.T) {
	s := cached(t, open(t, t.TempDir(), storageWith(t, 3)), t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 {
		if got, err := s.List(ctx, Filter{}); !errors.Is(err, context.Canceled) || len(got.Items) > 0 {
			t.Errorf("%d tasks, %v", len(got.Items), err)
		}
		pageBy(t, s, Filter{})
	}
}

// What a person put on a task, its copies and what became of its storage show in a list,
// though the kept row knows nothing of them; a name that JSON escapes comes back.
func TestAListShowsWhatRowsDoNotKnow(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var storages []string
	for i, name := range []string{"one", "two"} {
		storages = append(storages, filepath.Join(dir, name))
		for j, title := range []string{"in both", "<b>&  \xff of " + name} {
			id := []string{"both", "only-" + name}[j]
			text := fixture.Must[[]byte](t)(json.Marshal([]map[string]any{{"ts": ts0 + i*j, "type": "say", "say": "text", "text": title}}))
			write(t, filepath.Join(storages[i], "tasks", id), roofmt.UIName, string(text))
		}
	}
	plain := open(t, filepath.Join(dir, "root"), storages...)
	s := cached(t, plain, filepath.Join(dir, "cache"))
	same := func(when string) string {
		t.Helper()
		page(t, s, Filter{})
		got := page(t, s, Filter{}) // from kept rows
		if diff := cmp.Diff(page(t, plain, Filter{}), got); diff != "" {
			t.Errorf("%s: -without +with rows\n%s", when, diff)
		}
		return got
	}
	if got := same("at first"); !strings.Contains(got, filepath.Join(storages[1], "tasks", "both")) {
		t.Errorf("the copy is not shown\n%s", got)
	}
	fixture.NoError(t, Rooms.Label(ctx, s, fixture.Must[Ref](t)(s.Find(ctx, "only-one")), nil, "kept"))
	if got := same("tagged"); !strings.Contains(got, `"kept"`) {
		t.Errorf("the tag is not shown\n%s", got)
	}
	fixture.NoError(t, os.Rename(storages[1], storages[1]+" away"))
	if got := page(t, s, Filter{}); strings.Count(got, "its storage cannot be reached") != 2 {
		t.Errorf("with a storage away\n%s", got)
	}
}
