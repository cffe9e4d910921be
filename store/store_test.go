package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("STORE_TEST_ROLE"); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// slow leaves a test out of the short run, which looks for races: it takes seconds there,
// and does nothing beside itself that the others do not.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, and seconds under the race detector")
	}
}

func open(t testing.TB, root string, sources ...string) *Store {
	t.Helper()
	s, err := Open(Options{Root: root, Sources: sources, Program: "store test", Now: func() int64 { return 1700000100000 }})
	if err != nil {
		t.Fatal(err)
	}
	// What stands still is believed at once: most tests are not about waiting.
	s.SkipWaits()
	return s
}

// tree is every path below dir with mode, time and content.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x", len(data), sha256.Sum256(data))
		}
		out[path] = text
		return nil
	})
	fixture.NoError(t, err)
	return out
}

const ts0 = 1700000000000

func uiRow(i int, text string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":%q}`, ts0+i, text)
}

func apiRow(i int, role, text string) string {
	return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"ts":%d}`, role, text, ts0+i)
}

func array(rows ...string) string { return "[" + strings.Join(rows, ",") + "]" }

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	fixture.NoError(t, os.MkdirAll(dir, 0o700))
	fixture.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	return string(fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, name))))
}

// rooStorage is an editor's storage with one task of Roo.
func rooStorage(t testing.TB, id string) (storage, dir string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	dir = filepath.Join(storage, "tasks", id)
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "done so far")))
	write(t, dir, roofmt.APIName, array(apiRow(1, "user", "do it"), apiRow(2, "assistant", "done so far")))
	write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":%q,"number":3,"ts":%d,"task":"do it","novel":{"a":[1, 2]},"workspace":"/w","mode":"code"}`, id, ts0+2))
	write(t, dir, roofmt.MetadataName, `{"files_in_context": [ {"path":"a.go","record_state":"active"} ]}`)
	return storage, dir
}

func add(t *Task, h task.History, raw string) task.MessageAdded {
	return task.MessageAdded{History: h, Message: t.State().NextMessage(), Body: task.Body{Raw: json.RawMessage(raw)}}
}

func commit(t testing.TB, k *Task, h task.History, raw string) {
	t.Helper()
	fixture.NoError(t, k.Commit(context.Background(), add(k, h, raw)))
	fixture.NoError(t, k.Barrier(context.Background()))
}

func create(t testing.TB, s *Store, id string) *Task {
	t.Helper()
	return fixture.Must[*Task](t)(s.Create(context.Background(), task.Created{Task: id, Title: "T " + id, Number: 1, CreatedAt: ts0},
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: json.RawMessage(uiRow(1, "hello "+id))}}))
}

func own(t testing.TB, s *Store, id string) *Owned {
	t.Helper()
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), id))
	return fixture.Must[*Owned](t)(s.Own(context.Background(), ref))
}

func closeTask(t testing.TB, k *Task) { t.Helper(); fixture.NoError(t, k.Close(context.Background())) }

func rows(s *task.State) string {
	var b strings.Builder
	for _, read := range []func() ([][]byte, error){s.RawUI, s.RawAPI} {
		list, err := read()
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		for _, r := range list {
			b.Write(r)
			b.WriteByte('\n')
		}
		b.WriteString("--\n")
	}
	return b.String()
}

func view(t testing.TB, s *Store, id string) *View {
	t.Helper()
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), id))
	v := fixture.Must[*View](t)(s.Read(context.Background(), ref))
	t.Cleanup(func() { fixture.NoError(t, v.Close()) })
	return v
}

func TestCreateReadOwn(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root)
	k := create(t, s, "first-task")
	commit(t, k, task.API, apiRow(1, "user", "hello"))
	want := rows(k.State())
	closeTask(t, k)

	v := view(t, s, "first-task")
	if got := rows(v.State); got != want || v.Summary.Title != "T first-task" || v.Pending != nil {
		t.Fatalf("read %q, pending %v; want %q", got, v.Pending, want)
	}
	dir := filepath.Join(root, "tasks", "first-task")
	if got := read(t, dir, roofmt.UIName); got != array(uiRow(1, "hello first-task")) {
		t.Errorf("projected UI %s", got)
	}
	if got := read(t, dir, roofmt.APIName); got != array(apiRow(1, "user", "hello")) {
		t.Errorf("projected API %s", got)
	}
	o := own(t, s, "first-task")
	if got := rows(o.Task.State()); got != want || len(o.Task.Intakes()) != 0 || o.Gone || o.Forked != "" {
		t.Errorf("owned %q %+v", got, o)
	}
	closeTask(t, o.Task)
	if _, err := s.Create(context.Background(), task.Created{Task: "first-task"}); err == nil {
		t.Error("a task was created twice")
	}
	for _, id := range []string{"../x", "a/b", ".hidden", "-x"} {
		if _, err := s.Create(context.Background(), task.Created{Task: id}); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "x")); err == nil {
		t.Error("an id became a path outside")
	}
}

func TestReadingWritesNothing(t *testing.T) {
	storage, _ := rooStorage(t, "t-read")
	base := t.TempDir()
	root := filepath.Join(base, "root")
	s := open(t, root, storage)
	look := func() {
		fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
		fixture.Must[*View](t)(s.Read(context.Background(), fixture.Must[Ref](t)(s.Find(context.Background(), "t-read")))).Close()
		fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, nil, false))
		if _, err := s.Find(context.Background(), "nowhere"); !errors.Is(err, ErrNotFound) {
			t.Errorf("find: %v", err)
		}
	}
	before := tree(t, storage)
	look()
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made the root")
	}
	closeTask(t, create(t, s, "mine"))
	closeTask(t, own(t, s, "t-read").Task)
	before, beforeRoot := tree(t, storage), tree(t, base)
	look()
	if d := cmp.Diff(before, tree(t, storage)) + cmp.Diff(beforeRoot, tree(t, base)); d != "" {
		t.Error(d)
	}
}

func TestRootErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "x")
	for _, root := range []string{"relative", filepath.Join(dir, "file"), filepath.Join(dir, "file", "below")} {
		var bad *RootError
		if _, err := Open(Options{Root: root}); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want errors.As(err, &bad)", root, err)
		}
	}
	root := filepath.Join(dir, "r")
	s := open(t, root)
	write(t, root, "tasks", "in the way")
	before := tree(t, dir)
	var bad *RootError
	if _, err := s.Create(context.Background(), task.Created{Task: "abc"}); !errors.As(err, &bad) {
		t.Errorf("create: %v", err)
	}
	if d := cmp.Diff(before, tree(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestFind(t *testing.T) {
	storage, dir := rooStorage(t, "abc-one-xyz")
	s := open(t, filepath.Join(t.TempDir(), "root"), storage)
	closeTask(t, create(t, s, "abc-two-uvw"))
	closeTask(t, create(t, s, "abc-one-xyz"))
	ctx := context.Background()
	for given, want := range map[string]string{
		"abc-two-uvw": "abc-two-uvw", "abc-t": "abc-two-uvw", "uvw": "abc-two-uvw",
		"roost:abc-one-xyz": "abc-one-xyz", "roo:abc-one-xyz": "abc-one-xyz",
	} {
		ref, err := s.Find(ctx, given)
		if err != nil || ref.ID != want {
			t.Errorf("%s: got %v %v, want no error and ref.ID = %v", given, ref.ID, err, want)
		}
		if strings.HasPrefix(given, "roo:") != (ref.Dir == dir) {
			t.Errorf("%s: wrong place %s", given, ref.Dir)
		}
	}
	var twice *AmbiguousError
	for _, given := range []string{"abc", "abc-one-xyz"} {
		if _, err := s.Find(ctx, given); !errors.As(err, &twice) || len(twice.Candidates) < 2 {
			t.Errorf("%s: got %v, want errors.As(err, &twice) and len(twice.Candidates) >= 2", given, err)
		}
	}
	for _, given := range []string{"", "ab", "roost:nope", "nope:abc-one-xyz", "../abc"} {
		if _, err := s.Find(ctx, given); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v, want errors.Is(err, ErrNotFound)", given, err)
		}
	}
}

// What is not found may lie where nobody can look now: that is said.
func TestNotFoundNamesWhatIsOutOfReach(t *testing.T) {
	storage, _ := rooStorage(t, "abc-one-xyz")
	s := open(t, t.TempDir(), storage)
	if _, err := s.Find(context.Background(), "nope"); !errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), storage) {
		t.Errorf("all can be reached: %v", err)
	}
	fixture.NoError(t, os.Rename(storage, storage+".away"))
	if _, err := s.Find(context.Background(), "abc-one-xyz"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), storage+", which cannot be reached") {
		t.Errorf("out of reach: %v", err)
	}
}

// However a task's place is named, its journal is the same one.
func TestSourceShapes(t *testing.T) {
	storage, dir := rooStorage(t, "aaa-1")
	write(t, filepath.Join(storage, "tasks", "aaa-2"), roofmt.UIName, array(uiRow(1, "x")))
	root := t.TempDir()
	logs := map[string]bool{}
	for _, sources := range [][]string{
		{storage}, {filepath.Join(storage, "tasks")}, {dir}, {dir, storage}, {storage, dir},
		{dir, filepath.Join(storage, "tasks", "aaa-2")},
	} {
		s := open(t, root, sources...)
		ref, err := s.Find(context.Background(), "aaa-1")
		if err != nil {
			t.Fatalf("%v: got %v, want no error", sources, err)
		}
		logs[ref.Log] = true
		if _, err := s.Find(context.Background(), "aaa-2"); (err == nil) == (len(sources) == 1 && sources[0] == dir) {
			t.Errorf("%v: second task: %v", sources, err)
		}
	}
	if len(logs) != 1 {
		t.Errorf("journals in several places: %v", logs)
	}
	l := fixture.Must[Listing](t)(open(t, root, filepath.Join(storage, "gone")).List(context.Background(), Filter{}))
	if !strings.HasPrefix(l.Sources[1].State, "unreachable") {
		t.Errorf("a missing storage is %q", l.Sources[1].State)
	}
}

func TestIndex(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for i, id := range []string{"old-one", "new-one"} {
		k := create(t, s, id)
		commit(t, k, task.UI, uiRow(10+i, "more"))
		closeTask(t, k)
	}
	x := fixture.Must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks")))
	var ids []string
	for _, e := range x.Entries {
		id, _ := esjson.GetString(e, "id")
		ids = append(ids, id)
		if string(e) != read(t, filepath.Join(root, "tasks", id), roofmt.ItemName) {
			t.Errorf("entry of %s is not its item", id)
		}
	}
	if d := cmp.Diff([]string{"new-one", "old-one"}, ids); d != "" || x.Version != 1 {
		t.Error(x.Version, d)
	}
	write(t, filepath.Join(root, "tasks"), roofmt.IndexName, "broken")
	fixture.NoError(t, os.RemoveAll(filepath.Join(root, "tasks", "old-one")))
	k := own(t, s, "new-one").Task
	commit(t, k, task.UI, uiRow(20, "yet more"))
	closeTask(t, k)
	x = fixture.Must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks")))
	if _, ok := x.Get("new-one"); !ok || len(x.Entries) != 1 {
		t.Errorf("built again: %s", x.Entries)
	}
}
