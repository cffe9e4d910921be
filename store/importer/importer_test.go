package importer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// bring imports what lies at a path.
func bring(t testing.TB, s *store.Store, path string, o importer.Options) api.Import {
	t.Helper()
	return bringWhile(t, s, path, o, func(progress.State) {})
}

// bringWhile is bring, with a function that is called after each file and each task.
func bringWhile(t testing.TB, s *store.Store, path string, o importer.Options, f func(progress.State)) api.Import {
	t.Helper()
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(context.Background(), s, path))
	return storetest.Must[api.Import](t)(importer.Run(progress.With(context.Background(), f), s, list, o))
}

// outcomes are what became of each folder, by name.
func outcomes(r api.Import) map[string]string {
	out := map[string]string{}
	for _, item := range r.Items {
		out[item.Name] = item.Outcome
	}
	return out
}

// motley is a storage with a task of every sort.
func motley(t testing.TB) string {
	t.Helper()
	storage, dir := storetest.RooStorage(t, "whole-1")
	tasks := filepath.Dir(dir)
	storetest.Write(t, filepath.Join(dir, "checkpoints", ".git", "objects"), "aa", "blob")
	storetest.Check(t, os.MkdirAll(filepath.Join(dir, "checkpoints", ".git", "refs"), 0o700))
	storetest.Check(t, os.Mkdir(filepath.Join(dir, "ui_messages.json.lock"), 0o700))
	storetest.Write(t, filepath.Join(tasks, "cut-2"), roofmt.UIName, storetest.Array(storetest.UIRow(1, "half"))[:40])
	storetest.Write(t, filepath.Join(tasks, "left-3"), ".ui_messages.json.bak_1700000000000_ab12.tmp", storetest.Array(storetest.UIRow(1, "only in a backup")))
	storetest.Write(t, filepath.Join(tasks, "-no id\x01"), roofmt.UIName, storetest.Array(storetest.UIRow(1, "odd name")))
	storetest.Write(t, filepath.Join(tasks, "row-4"), roofmt.UIName, storetest.Array(storetest.UIRow(1, "row")))
	storetest.Write(t, tasks, roofmt.IndexName, `{"version":1,"updatedAt":1,"entries":[{"id":"row-4","ts":5,"task":"row","workspace":"/from/index"}]}`)
	storetest.Write(t, filepath.Join(tasks, "zero-5"), roofmt.UIName, "")
	storetest.Check(t, os.Mkdir(filepath.Join(tasks, "ghost-6"), 0o700))
	if runtime.GOOS != "windows" {
		storetest.Check(t, os.Symlink("/etc", filepath.Join(dir, "out")))
		storetest.Check(t, os.Symlink(".", filepath.Join(dir, "loop")))
	}
	return storage
}

func TestImport(t *testing.T) {
	storage := motley(t)
	before := storetest.Tree(t, storage)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "root"))
	want := map[string]string{
		"whole-1": api.TaskImported, "cut-2": api.TaskImported, "left-3": api.TaskImported, "-no id\x01": api.TaskImported, "row-4": api.TaskImported, "zero-5": api.TaskEmpty, "ghost-6": api.TaskEmpty,
	}

	dry := bring(t, s, storage, importer.Options{DryRun: true})
	if d := cmp.Diff(want, outcomes(dry)); d != "" {
		t.Errorf("a dry run: %s", d)
	}
	if storetest.Exists(s.Root(), "") {
		t.Fatal("a dry run made the root")
	}

	r := bring(t, s, storage, importer.Options{})
	if d := cmp.Diff(want, outcomes(r)); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" {
		t.Errorf("the original was changed: %s", d)
	}
	if r.Imported != 5 || r.Empty != 2 || r.Tasks != 7 || r.Imported != dry.Imported || r.Bytes != dry.Bytes || r.Files != dry.Files {
		t.Errorf("counts %+v, and %+v of the dry run", r, dry)
	}
	for i, item := range r.Items {
		if item.Outcome != api.TaskImported {
			continue
		}
		if !item.ByteEqual || item.ID != dry.Items[i].ID || item.Path != dry.Items[i].Path {
			t.Errorf("%+v, not as in the dry run: %+v", item, dry.Items[i])
		}
		copied := storetest.Contents(t, item.Path)
		if item.Name == "row-4" {
			delete(copied, roofmt.ItemName)
		}
		if d := cmp.Diff(storetest.Contents(t, item.From), copied); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", item.Name, d)
		}
	}
	dir := filepath.Join(s.TasksDir(), "whole-1")
	if !storetest.Exists(dir, "checkpoints/.git/refs") || storetest.Exists(dir, "out") || storetest.Exists(dir, "loop") || storetest.Exists(dir, "ui_messages.json.lock") {
		t.Errorf("folders are copied, links and locks are not: %v", storetest.Tree(t, dir))
	}
	info := storetest.Must[os.FileInfo](t)(os.Stat(filepath.Join(dir, roofmt.UIName)))
	original := storetest.Must[os.FileInfo](t)(os.Stat(filepath.Join(storage, "tasks", "whole-1", roofmt.UIName)))
	if !info.ModTime().Equal(original.ModTime()) {
		t.Error("the copy has another time")
	}

	// What is there can be listed, and an editor finds it in the index.
	titles := map[string]bool{}
	for _, sum := range storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{})).Items {
		titles[sum.Title] = true
		if sum.Title == "row" && sum.Workspace != "/from/index" {
			t.Errorf("what only the index knew is gone: %+v", sum)
		}
	}
	for _, title := range []string{"do it", "only in a backup", "odd name", "row"} {
		if !titles[title] {
			t.Errorf("no task %q in %v", title, titles)
		}
	}
	index := storetest.Must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir()))
	for _, id := range []string{"whole-1", "row-4"} {
		if _, ok := index.Get(id); !ok {
			t.Errorf("%s is not in the index", id)
		}
	}

	// Again: nothing is done, nothing is changed.
	was := storetest.Tree(t, s.TasksDir())
	again := bring(t, s, storage, importer.Options{OnConflict: api.ConflictFork})
	if again.Same != 5 || again.Imported+again.Forked+again.Conflicts+again.Failed != 0 {
		t.Errorf("again: %+v", outcomes(again))
	}
	delete(was, s.TasksDir()) // its time: the folder of copies comes and goes
	now := storetest.Tree(t, s.TasksDir())
	delete(now, s.TasksDir())
	if d := cmp.Diff(was, now); d != "" {
		t.Errorf("importing again changed something: %s", d)
	}
}

func TestImportNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only some systems take any bytes")
	}
	tasks := filepath.Join(t.TempDir(), "tasks")
	for _, name := range []string{"\xff\xfe", "a b", "日本", "-rf", strings.Repeat("x", 200), "con:1"} {
		storetest.Write(t, filepath.Join(tasks, name), roofmt.UIName, storetest.Array(storetest.UIRow(1, "of "+fmt.Sprintf("%q", name))))
	}
	s := storetest.Open(t, t.TempDir())
	r := bring(t, s, tasks, importer.Options{})
	ids := map[string]bool{}
	for _, item := range r.Items {
		ids[item.ID] = true
		if item.Outcome != api.TaskImported || !api.ValidTaskID(item.ID) || item.Path != filepath.Join(s.TasksDir(), item.ID) {
			t.Errorf("got %+v, want item.Outcome = api.TaskImported and api.ValidTaskID(item.ID) and item.Path = filepath.Join(s.TasksDir(), item.ID)",
				item)
		}
	}
	if len(ids) != 6 || r.Imported != 6 {
		t.Errorf("%d tasks under %d ids", r.Imported, len(ids))
	}
}

func TestImportConflict(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "same-id")
	s := storetest.Open(t, t.TempDir())
	bring(t, s, storage, importer.Options{})
	first := storetest.Tree(t, filepath.Join(s.TasksDir(), "same-id"))

	// The same task from elsewhere is the same task.
	elsewhere := filepath.Join(t.TempDir(), "same-id")
	storetest.Check(t, os.CopyFS(elsewhere, os.DirFS(dir)))
	if got := outcomes(bring(t, s, elsewhere, importer.Options{})); got["same-id"] != api.TaskSame {
		t.Errorf("the same content: %v", got)
	}
	storetest.Check(t, os.Remove(filepath.Join(s.TasksDir(), "same-id", store.ImportRecord)))
	if got := outcomes(bring(t, s, elsewhere, importer.Options{})); got["same-id"] != api.TaskSame {
		t.Errorf("the same content, found by comparing: %v", got)
	}
	delete(first, filepath.Join(s.TasksDir(), "same-id", store.ImportRecord))
	delete(first, filepath.Join(s.TasksDir(), "same-id"))

	storetest.Write(t, elsewhere, roofmt.UIName, storetest.Array(storetest.UIRow(1, "another task")))
	r := bring(t, s, elsewhere, importer.Options{})
	if r.Conflicts != 1 || r.Items[0].ID != "" || r.Items[0].Problem == "" {
		t.Errorf("other content: %+v", r)
	}
	for _, want := range []string{api.TaskForked, api.TaskSame} {
		r = bring(t, s, elsewhere, importer.Options{OnConflict: api.ConflictFork})
		if got := outcomes(r)["same-id"]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	fork := r.Items[0]
	was, now := storetest.Read(t, elsewhere, roofmt.ItemName), storetest.Read(t, fork.Path, roofmt.ItemName)
	if now != strings.Replace(was, `"same-id"`, fmt.Sprintf("%q", fork.ID), 1) {
		t.Errorf("only the id may change: %s", now)
	}
	if storetest.Read(t, fork.Path, roofmt.UIName) != storetest.Read(t, elsewhere, roofmt.UIName) {
		t.Error("messages were changed")
	}
	have := storetest.Tree(t, filepath.Join(s.TasksDir(), "same-id"))
	delete(have, filepath.Join(s.TasksDir(), "same-id"))
	if d := cmp.Diff(first, have); d != "" {
		t.Errorf("the task that was there: %s", d)
	}
}

// Two folders of one name in one import, and a dry run that foresees it.
func TestImportTwins(t *testing.T) {
	base := t.TempDir()
	var list []importer.Original
	for i, text := range []string{"one", "two", "one"} {
		dir := filepath.Join(base, fmt.Sprint(i), "twin")
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, text)))
		list = append(list, importer.Original{Name: "twin", Dir: dir})
	}
	for _, dry := range []bool{true, false} {
		s := storetest.Open(t, t.TempDir())
		for _, how := range []string{api.ConflictSkip, api.ConflictFork} {
			s = storetest.Open(t, t.TempDir())
			r := storetest.Must[api.Import](t)(importer.Run(context.Background(), s, list, importer.Options{DryRun: dry, OnConflict: how}))
			got := fmt.Sprint(r.Items[0].Outcome, " ", r.Items[1].Outcome, " ", r.Items[2].Outcome)
			want := map[string]string{api.ConflictSkip: "imported conflict same", api.ConflictFork: "imported forked same"}[how]
			if got != want {
				t.Errorf("dry %v, %s: %s", dry, how, got)
			}
		}
		if dry && storetest.Exists(s.TasksDir(), "twin") {
			t.Error("a dry run imported")
		}
	}
}

// A task that went on in Roost after its import is not imported again.
func TestImportedTaskGoesOn(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "going-1")
	s := storetest.Open(t, t.TempDir())
	bring(t, s, storage, importer.Options{Map: []importer.PathMap{{"/w", "/here"}}})
	k := storetest.Own(t, s, "roost:going-1").Task
	if k.State().Settings.Workspace != "/here" {
		t.Errorf("workspace %q", k.State().Settings.Workspace)
	}
	storetest.Commit(t, k, task.UI, storetest.UIRow(9, "more"))
	storetest.Close(t, k)
	if got := outcomes(bring(t, s, storage, importer.Options{OnConflict: api.ConflictFork})); got["going-1"] != api.TaskSame {
		t.Errorf("got %v, want got[\"going-1\"] = api.TaskSame", got)
	}
	if !strings.Contains(storetest.Read(t, filepath.Join(s.TasksDir(), "going-1"), roofmt.UIName), "more") {
		t.Error("what was done since is gone")
	}
	// When the original went on as well, they are two.
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(3, "otherwise")))
	if got := outcomes(bring(t, s, storage, importer.Options{})); got["going-1"] != api.TaskConflict {
		t.Errorf("got %v, want got[\"going-1\"] = api.TaskConflict", got)
	}
}

// Journals come along whole; what is derived from them is made again.
func TestImportAnotherRoot(t *testing.T) {
	other := storetest.Open(t, t.TempDir())
	k := storetest.Must[*store.Task](t)(other.Create(context.Background(), task.Created{Task: "ours-1", Title: "ours", Number: 1, CreatedAt: storetest.TS0,
		Settings: task.Settings{Workspace: "/old/w", Approve: "all"}}))
	storetest.Commit(t, k, task.UI, storetest.UIRow(1, "hello"))
	storetest.Commit(t, k, task.UI, storetest.UIRow(2, strings.Repeat("x", 300<<10))) // a blob
	storetest.Close(t, k)
	s := storetest.Open(t, t.TempDir())
	r := bring(t, s, other.Root(), importer.Options{Map: []importer.PathMap{{"/old", "/new"}}})
	item := r.Items[0]
	if item.Outcome != api.TaskImported || !item.ByteEqual {
		t.Fatalf("got %+v, want item.Outcome = api.TaskImported and item.ByteEqual", item)
	}
	if notes := strings.Join(item.Notes, "\n"); !strings.Contains(notes, "its workspace here is /new/w, not /old/w") || !strings.Contains(notes, "approve all") {
		t.Errorf("notes %q", notes)
	}
	from, to := filepath.Join(other.TasksDir(), "ours-1"), filepath.Join(s.TasksDir(), "ours-1")
	behind, same := strings.CutPrefix(storetest.Read(t, to, "journal.jsonl"), storetest.Read(t, from, "journal.jsonl"))
	if !same || strings.Count(behind, "\n") != 2 || !strings.Contains(behind, `"type":"epoch.opened"`) || !strings.Contains(behind, `"type":"task.received"`) {
		t.Errorf("behind the journal stands %q, want the commit that receives it", behind)
	}
	if storetest.Exists(to, "journal.idx") || storetest.Exists(to, "projection.json") {
		t.Error("what belongs to the other place came along")
	}
	was := storetest.Must[*store.View](t)(other.Read(context.Background(), storetest.Must[store.Ref](t)(other.Find(context.Background(), "ours-1"))))
	defer was.Close()
	now := storetest.Must[*store.View](t)(s.Read(context.Background(), storetest.Must[store.Ref](t)(s.Find(context.Background(), "ours-1"))))
	defer now.Close()
	if d := cmp.Diff(storetest.Rows(was.State), storetest.Rows(now.State)); d != "" {
		t.Error(d)
	}
	if got := []string{now.State.Settings.Workspace, now.Summary.Workspace}; !slices.Equal(got, []string{"/new/w", "/new/w"}) {
		t.Errorf("the workspaces are %q, want /new/w", got)
	}
	if found := storetest.Must[api.Checkup](t)(doctor.Check(context.Background(), s, nil, doctor.Options{})); found.OK != 1 {
		t.Errorf("got %+v, want found.OK = 1", found)
	}
	o := storetest.Own(t, s, "ours-1") // and it goes on
	storetest.Commit(t, o.Task, task.UI, storetest.UIRow(3, "on"))
	storetest.Close(t, o.Task)

	storetest.Write(t, from, roofmt.UIName, storetest.Array(storetest.UIRow(1, "changed")))
	if r := bring(t, s, other.Root(), importer.Options{OnConflict: api.ConflictFork}); r.Conflicts != 1 || !strings.Contains(r.Items[0].Problem, "keeps its id") {
		t.Errorf("a journal under another id: %+v", r.Items)
	}
}

// The base of a fork may append to the file that both share. An import of the fork leaves those commits out, and a
// second import finds the same fork.
func TestImportAForkWhoseBaseGoesOn(t *testing.T) {
	other, s := storetest.Open(t, t.TempDir()), storetest.Open(t, t.TempDir())
	k := storetest.Create(t, other, "mine")
	storetest.Commit(t, k, task.UI, storetest.UIRow(2, "shared"))
	storetest.Close(t, k)
	from := "mine"
	for _, id := range []string{"fork-1", "fork-2"} {
		_, finish, err := history.Fork(t.Context(), other, storetest.Must[store.Ref](t)(other.Find(t.Context(), from)), history.ForkOptions{ID: id})
		storetest.Check(t, errors.Join(err, finish(t.Context())))
		from = id
	}
	for _, want := range []string{api.TaskImported, api.TaskSame} {
		for _, id := range []string{"mine", "fork-1"} {
			k = storetest.Own(t, other, id).Task
			storetest.Commit(t, k, task.UI, storetest.UIRow(3, "said later"))
			storetest.Close(t, k)
		}
		if got := outcomes(bring(t, s, filepath.Join(other.TasksDir(), "fork-2"), importer.Options{})); got["fork-2"] != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	for path := range storetest.Tree(t, s.Root()) {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("said later")) {
			t.Errorf("%s holds words of the base that came after the fork", path)
		}
	}
	if found := storetest.Must[api.Checkup](t)(doctor.Check(t.Context(), s, nil, doctor.Options{})); found.OK != 1 {
		t.Errorf("got %+v, want found.OK = 1", found)
	}
	for n := 3; n <= 60; n++ { // each one lies a folder deeper
		id := fmt.Sprint("fork-", n)
		_, finish, err := history.Fork(t.Context(), other, storetest.Must[store.Ref](t)(other.Find(t.Context(), from)), history.ForkOptions{ID: id})
		storetest.Check(t, errors.Join(err, finish(t.Context())))
		from = id
	}
	got := bring(t, s, filepath.Join(other.TasksDir(), from), importer.Options{})
	if want := api.TaskImported; outcomes(got)[from] != want {
		t.Errorf("a fork of a fork, 60 times: got %s, %s, want %s", outcomes(got)[from], got.Items[0].Problem, want)
	}
}

func TestMapPath(t *testing.T) {
	list := []importer.PathMap{{"/old", "/new"}, {"/old/deep/", "/elsewhere"}, {`C:\Users\me`, "/home/me"}, {"/srv", `D:\srv`}, {"/root", "/"}}
	for path, want := range map[string]string{
		"/old": "/new", "/old/a/b": "/new/a/b", "/older": "", "/x/old": "", "": "", "/old/deep/x": "/elsewhere/x", "/old/deeper": "/new/deeper",
		`C:\Users\me\p\q`: "/home/me/p/q", `c:\users\ME\p`: "/home/me/p", `C:\Users\men`: "", "/srv/a/b": `D:\srv\a\b`, "/root/a": "/a", "/old/": "/new/",
	} {
		got, ok := importer.MapPath(list, path)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", path, got, ok, want)
		}
	}
	if _, ok := importer.MapPath([]importer.PathMap{{"/w", "/w"}}, "/w/x"); ok {
		t.Error("a path that stays is not mapped")
	}
}

// Only the one value changes in a history item, however it is spelled.
func TestImportMapsItem(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "map-1")
	raw := "{ \"id\" : \"map-1\",\"ts\":1e3, \"workspace\":\"\\u002fold\\/p\" ,\"odd\":\"\\ud800\", \"task\":\"/old/p\"}\n"
	storetest.Write(t, dir, roofmt.ItemName, raw)
	s := storetest.Open(t, t.TempDir())
	item := bring(t, s, storage, importer.Options{Map: []importer.PathMap{{"/old", "/new"}}}).Items[0]
	if item.ByteEqual || len(item.Differs) != 1 || item.Differs[0].File != roofmt.ItemName {
		t.Errorf("got %+v, want not item.ByteEqual and len(item.Differs) = 1 and item.Differs[0].File = roofmt.ItemName",
			item)
	}
	if got, want := storetest.Read(t, item.Path, roofmt.ItemName), strings.Replace(raw, `"\u002fold\/p"`, `"/new/p"`, 1); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.MetadataName} {
		if storetest.Read(t, dir, name) != storetest.Read(t, item.Path, name) {
			t.Errorf("%s was changed", name)
		}
	}
	if ws, _ := esjson.GetString([]byte(storetest.Read(t, dir, roofmt.ItemName)), "workspace"); ws != "/old/p" {
		t.Error("the original was changed")
	}
}

// Every real task folder is copied byte for byte, and reads as it did.
func TestCorpusImport(t *testing.T) {
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		before := storetest.Tree(t, dir)
		s := storetest.Open(t, t.TempDir(), dir)
		item := bring(t, s, dir, importer.Options{}).Items[0]
		if d := cmp.Diff(before, storetest.Tree(t, dir)); d != "" {
			t.Errorf("the original was changed: %s", d)
		}
		if item.Outcome == api.TaskEmpty {
			return
		}
		if item.Outcome != api.TaskImported || !item.ByteEqual || len(item.LeftOut) > 0 {
			t.Fatalf("%s: %s, byte equal %v, left out %v", item.Outcome, item.Problem, item.ByteEqual, item.LeftOut)
		}
		copied := storetest.Contents(t, item.Path)
		if len(item.Notes) > 0 {
			delete(copied, roofmt.ItemName)
		}
		if d := cmp.Diff(storetest.Contents(t, dir), copied); d != "" {
			t.Error(d)
		}
		var both [2]api.Summary
		for i, name := range []string{store.SourceName(filepath.Dir(dir)) + ":" + item.Name, "roost:" + item.ID} {
			both[i] = s.SummaryOf(context.Background(), storetest.Must[store.Ref](t)(s.Find(context.Background(), name)))
		}
		a, b := both[0], both[1]
		if a.Title != b.Title || a.TS != b.TS || a.Messages != b.Messages || a.Status != b.Status || len(a.Damaged) != len(b.Damaged) || a.Usage.TokensIn != b.Usage.TokensIn {
			t.Errorf("read otherwise: %+v\n%+v", a, b)
		}
	})
}

// Importing a big file takes no memory for it.
func TestImportStreams(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "big-1")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "x")))
	storetest.Write(t, dir, "command-output.txt", "")
	storetest.Check(t, os.Truncate(filepath.Join(dir, "command-output.txt"), 96<<20))
	s := storetest.Open(t, t.TempDir())
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	r := bring(t, s, dir, importer.Options{})
	runtime.ReadMemStats(&is)
	if r.Imported != 1 || r.Bytes < 96<<20 {
		t.Fatalf("got %+v, want r.Imported = 1 and r.Bytes >= 96<<20", r)
	}
	if n := is.TotalAlloc - was.TotalAlloc; n > 16<<20 {
		t.Errorf("%d MB allocated for 96", n>>20)
	}
}
