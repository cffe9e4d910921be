package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// bring imports what lies at a path.
func bring(t testing.TB, s *Store, path string, o ImportOptions) ImportReport {
	t.Helper()
	list := must[[]Importable](t)(s.ImportPath(context.Background(), path))
	return must[ImportReport](t)(s.Import(context.Background(), list, o))
}

// outcomes are what became of each folder, by name.
func outcomes(r ImportReport) map[string]string {
	out := map[string]string{}
	for _, item := range r.Items {
		out[item.Name] = item.Outcome
	}
	return out
}

// files are every file below dir by path, without ours.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, text := range tree(t, dir) {
		rel := must[string](t)(filepath.Rel(dir, path))
		if info := must[os.FileInfo](t)(os.Lstat(path)); info.Mode().IsRegular() && !strings.HasPrefix(rel, ".roost-") {
			out[rel] = text[strings.LastIndex(text, " ")+1:]
		}
	}
	return out
}

// motley is a storage with a task of every sort.
func motley(t testing.TB) string {
	t.Helper()
	storage, dir := rooStorage(t, "whole-1")
	tasks := filepath.Dir(dir)
	write(t, filepath.Join(dir, "checkpoints", ".git", "objects"), "aa", "blob")
	check(t, os.MkdirAll(filepath.Join(dir, "checkpoints", ".git", "refs"), 0o700))
	check(t, os.Mkdir(filepath.Join(dir, "ui_messages.json.lock"), 0o700))
	write(t, filepath.Join(tasks, "cut-2"), roofmt.UIName, array(uiRow(1, "half"))[:40])
	write(t, filepath.Join(tasks, "left-3"), ".ui_messages.json.bak_1700000000000_ab12.tmp", array(uiRow(1, "only in a backup")))
	write(t, filepath.Join(tasks, "-no id\x01"), roofmt.UIName, array(uiRow(1, "odd name")))
	write(t, filepath.Join(tasks, "row-4"), roofmt.UIName, array(uiRow(1, "row")))
	write(t, tasks, roofmt.IndexName, `{"version":1,"updatedAt":1,"entries":[{"id":"row-4","ts":5,"task":"row","workspace":"/from/index"}]}`)
	write(t, filepath.Join(tasks, "zero-5"), roofmt.UIName, "")
	check(t, os.Mkdir(filepath.Join(tasks, "ghost-6"), 0o700))
	if runtime.GOOS != "windows" {
		check(t, os.Symlink("/etc", filepath.Join(dir, "out")))
		check(t, os.Symlink(".", filepath.Join(dir, "loop")))
	}
	return storage
}

func TestImport(t *testing.T) {
	storage := motley(t)
	before := tree(t, storage)
	s := open(t, filepath.Join(t.TempDir(), "root"))
	want := map[string]string{
		"whole-1": Imported, "cut-2": Imported, "left-3": Imported, "-no id\x01": Imported, "row-4": Imported, "zero-5": Vacant, "ghost-6": Vacant,
	}

	dry := bring(t, s, storage, ImportOptions{DryRun: true})
	if d := cmp.Diff(want, outcomes(dry)); d != "" {
		t.Errorf("a dry run: %s", d)
	}
	if exists(s.opt.Root, "") {
		t.Fatal("a dry run made the root")
	}

	r := bring(t, s, storage, ImportOptions{})
	if d := cmp.Diff(want, outcomes(r)); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Errorf("the original was changed: %s", d)
	}
	if r.Imported != 5 || r.Empty != 2 || r.Tasks != 7 || r.Imported != dry.Imported || r.Bytes != dry.Bytes || r.Files != dry.Files {
		t.Errorf("counts %+v, and %+v of the dry run", r, dry)
	}
	for i, item := range r.Items {
		if item.Outcome != Imported {
			continue
		}
		if !item.ByteEqual || item.ID != dry.Items[i].ID || item.Path != dry.Items[i].Path {
			t.Errorf("%+v, not as in the dry run: %+v", item, dry.Items[i])
		}
		copied := files(t, item.Path)
		if item.Name == "row-4" {
			delete(copied, roofmt.ItemName)
		}
		if d := cmp.Diff(files(t, item.From), copied); d != "" {
			t.Errorf("%s: %s", item.Name, d)
		}
	}
	dir := filepath.Join(s.TasksDir(), "whole-1")
	if !exists(dir, "checkpoints/.git/refs") || exists(dir, "out") || exists(dir, "loop") || exists(dir, "ui_messages.json.lock") {
		t.Errorf("folders are copied, links and locks are not: %v", tree(t, dir))
	}
	info := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, roofmt.UIName)))
	original := must[os.FileInfo](t)(os.Stat(filepath.Join(storage, "tasks", "whole-1", roofmt.UIName)))
	if !info.ModTime().Equal(original.ModTime()) {
		t.Error("the copy has another time")
	}

	// What is there can be listed, and an editor finds it in the index.
	titles := map[string]bool{}
	for _, sum := range must[Listing](t)(s.List(context.Background(), Filter{})).Items {
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
	index := must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir()))
	for _, id := range []string{"whole-1", "row-4"} {
		if _, ok := index.Get(id); !ok {
			t.Errorf("%s is not in the index", id)
		}
	}

	// Again: nothing is done, nothing is changed.
	was := tree(t, s.TasksDir())
	again := bring(t, s, storage, ImportOptions{OnConflict: ConflictFork})
	if again.Same != 5 || again.Imported+again.Forked+again.Conflicts+again.Failed != 0 {
		t.Errorf("again: %+v", outcomes(again))
	}
	delete(was, s.TasksDir()) // its time: the folder of copies comes and goes
	now := tree(t, s.TasksDir())
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
		write(t, filepath.Join(tasks, name), roofmt.UIName, array(uiRow(1, "of "+fmt.Sprintf("%q", name))))
	}
	s := open(t, t.TempDir())
	r := bring(t, s, tasks, ImportOptions{})
	ids := map[string]bool{}
	for _, item := range r.Items {
		ids[item.ID] = true
		if item.Outcome != Imported || !roofmt.ValidID(item.ID) || item.Path != filepath.Join(s.TasksDir(), item.ID) {
			t.Errorf("%+v", item)
		}
	}
	if len(ids) != 6 || r.Imported != 6 {
		t.Errorf("%d tasks under %d ids", r.Imported, len(ids))
	}
}

func TestImportConflict(t *testing.T) {
	storage, dir := rooStorage(t, "same-id")
	s := open(t, t.TempDir())
	bring(t, s, storage, ImportOptions{})
	first := tree(t, filepath.Join(s.TasksDir(), "same-id"))

	// The same task from elsewhere is the same task.
	elsewhere := filepath.Join(t.TempDir(), "same-id")
	check(t, os.CopyFS(elsewhere, os.DirFS(dir)))
	if got := outcomes(bring(t, s, elsewhere, ImportOptions{})); got["same-id"] != Same {
		t.Errorf("the same content: %v", got)
	}
	check(t, os.Remove(filepath.Join(s.TasksDir(), "same-id", importRecord)))
	if got := outcomes(bring(t, s, elsewhere, ImportOptions{})); got["same-id"] != Same {
		t.Errorf("the same content, found by comparing: %v", got)
	}
	delete(first, filepath.Join(s.TasksDir(), "same-id", importRecord))
	delete(first, filepath.Join(s.TasksDir(), "same-id"))

	write(t, elsewhere, roofmt.UIName, array(uiRow(1, "another task")))
	r := bring(t, s, elsewhere, ImportOptions{})
	if r.Conflicts != 1 || r.Items[0].ID != "" || r.Items[0].Problem == "" {
		t.Errorf("other content: %+v", r)
	}
	for _, want := range []string{Forked, Same} {
		r = bring(t, s, elsewhere, ImportOptions{OnConflict: ConflictFork})
		if got := outcomes(r)["same-id"]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	fork := r.Items[0]
	was, now := read(t, elsewhere, roofmt.ItemName), read(t, fork.Path, roofmt.ItemName)
	if now != strings.Replace(was, `"same-id"`, fmt.Sprintf("%q", fork.ID), 1) {
		t.Errorf("only the id may change: %s", now)
	}
	if read(t, fork.Path, roofmt.UIName) != read(t, elsewhere, roofmt.UIName) {
		t.Error("messages were changed")
	}
	have := tree(t, filepath.Join(s.TasksDir(), "same-id"))
	delete(have, filepath.Join(s.TasksDir(), "same-id"))
	if d := cmp.Diff(first, have); d != "" {
		t.Errorf("the task that was there: %s", d)
	}
}

// Two folders of one name in one import, and a dry run that foresees it.
func TestImportTwins(t *testing.T) {
	base := t.TempDir()
	var list []Importable
	for i, text := range []string{"one", "two", "one"} {
		dir := filepath.Join(base, fmt.Sprint(i), "twin")
		write(t, dir, roofmt.UIName, array(uiRow(1, text)))
		list = append(list, Importable{Name: "twin", Dir: dir})
	}
	for _, dry := range []bool{true, false} {
		s := open(t, t.TempDir())
		for _, how := range []string{ConflictSkip, ConflictFork} {
			s = open(t, t.TempDir())
			r := must[ImportReport](t)(s.Import(context.Background(), list, ImportOptions{DryRun: dry, OnConflict: how}))
			got := fmt.Sprint(r.Items[0].Outcome, " ", r.Items[1].Outcome, " ", r.Items[2].Outcome)
			want := map[string]string{ConflictSkip: "imported conflict same", ConflictFork: "imported forked same"}[how]
			if got != want {
				t.Errorf("dry %v, %s: %s", dry, how, got)
			}
		}
		if dry && exists(s.TasksDir(), "twin") {
			t.Error("a dry run imported")
		}
	}
}

// A task that went on in Roost after its import is not imported again.
func TestImportedTaskGoesOn(t *testing.T) {
	storage, dir := rooStorage(t, "going-1")
	s := open(t, t.TempDir())
	bring(t, s, storage, ImportOptions{Map: []PathMap{{"/w", "/here"}}})
	k := own(t, s, "roost:going-1").Task
	if k.State().Settings.Workspace != "/here" {
		t.Errorf("workspace %q", k.State().Settings.Workspace)
	}
	commit(t, k, task.UI, uiRow(9, "more"))
	closeTask(t, k)
	if got := outcomes(bring(t, s, storage, ImportOptions{OnConflict: ConflictFork})); got["going-1"] != Same {
		t.Errorf("%v", got)
	}
	if !strings.Contains(read(t, filepath.Join(s.TasksDir(), "going-1"), roofmt.UIName), "more") {
		t.Error("what was done since is gone")
	}
	// When the original went on as well, they are two.
	write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(3, "otherwise")))
	if got := outcomes(bring(t, s, storage, ImportOptions{})); got["going-1"] != Conflict {
		t.Errorf("%v", got)
	}
}

// Journals come along whole; what is derived from them is made again.
func TestImportAnotherRoot(t *testing.T) {
	other := open(t, t.TempDir())
	k := must[*Task](t)(other.Create(context.Background(), task.Created{Task: "ours-1", Title: "ours", Number: 1, CreatedAt: ts0,
		Settings: task.Settings{Workspace: "/old/w", Approve: "all"}}))
	commit(t, k, task.UI, uiRow(1, "hello"))
	commit(t, k, task.UI, uiRow(2, strings.Repeat("x", 300<<10))) // a blob
	closeTask(t, k)
	s := open(t, t.TempDir())
	r := bring(t, s, other.opt.Root, ImportOptions{Map: []PathMap{{"/old", "/new"}}})
	item := r.Items[0]
	if item.Outcome != Imported || !item.ByteEqual {
		t.Fatalf("%+v", item)
	}
	if notes := strings.Join(item.Notes, "\n"); !strings.Contains(notes, "its workspace here is /new/w, not /old/w") || !strings.Contains(notes, "approve all") {
		t.Errorf("notes %q", notes)
	}
	from, to := filepath.Join(other.TasksDir(), "ours-1"), filepath.Join(s.TasksDir(), "ours-1")
	behind, same := strings.CutPrefix(read(t, to, "journal.jsonl"), read(t, from, "journal.jsonl"))
	if !same || strings.Count(behind, "\n") != 2 || !strings.Contains(behind, `"type":"epoch.opened"`) || !strings.Contains(behind, `"type":"task.received"`) {
		t.Errorf("behind the journal stands %q, want the commit that receives it", behind)
	}
	if exists(to, "journal.idx") || exists(to, watermarkName) {
		t.Error("what belongs to the other place came along")
	}
	was := must[*View](t)(other.Read(context.Background(), must[Ref](t)(other.Find(context.Background(), "ours-1"))))
	defer was.Close()
	now := must[*View](t)(s.Read(context.Background(), must[Ref](t)(s.Find(context.Background(), "ours-1"))))
	defer now.Close()
	if d := cmp.Diff(rows(was.State), rows(now.State)); d != "" {
		t.Error(d)
	}
	if got := []string{now.State.Settings.Workspace, now.Summary.Workspace}; !slices.Equal(got, []string{"/new/w", "/new/w"}) {
		t.Errorf("the workspaces are %q, want /new/w", got)
	}
	if found := must[Report](t)(s.Check(context.Background(), nil, CheckOptions{})); found.OK != 1 {
		t.Errorf("%+v", found)
	}
	o := own(t, s, "ours-1") // and it goes on
	commit(t, o.Task, task.UI, uiRow(3, "on"))
	closeTask(t, o.Task)

	write(t, from, roofmt.UIName, array(uiRow(1, "changed")))
	if r := bring(t, s, other.opt.Root, ImportOptions{OnConflict: ConflictFork}); r.Conflicts != 1 || !strings.Contains(r.Items[0].Problem, "keeps its id") {
		t.Errorf("a journal under another id: %+v", r.Items)
	}
}

func TestMapPath(t *testing.T) {
	list := []PathMap{{"/old", "/new"}, {"/old/deep/", "/elsewhere"}, {`C:\Users\me`, "/home/me"}, {"/srv", `D:\srv`}, {"/root", "/"}}
	for path, want := range map[string]string{
		"/old": "/new", "/old/a/b": "/new/a/b", "/older": "", "/x/old": "", "": "", "/old/deep/x": "/elsewhere/x", "/old/deeper": "/new/deeper",
		`C:\Users\me\p\q`: "/home/me/p/q", `c:\users\ME\p`: "/home/me/p", `C:\Users\men`: "", "/srv/a/b": `D:\srv\a\b`, "/root/a": "/a", "/old/": "/new/",
	} {
		got, ok := mapPath(list, path)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", path, got, ok, want)
		}
	}
	if _, ok := mapPath([]PathMap{{"/w", "/w"}}, "/w/x"); ok {
		t.Error("a path that stays is not mapped")
	}
}

// Only the one value changes in a history item, however it is spelled.
func TestImportMapsItem(t *testing.T) {
	storage, dir := rooStorage(t, "map-1")
	raw := "{ \"id\" : \"map-1\",\"ts\":1e3, \"workspace\":\"\\u002fold\\/p\" ,\"odd\":\"\\ud800\", \"task\":\"/old/p\"}\n"
	write(t, dir, roofmt.ItemName, raw)
	s := open(t, t.TempDir())
	item := bring(t, s, storage, ImportOptions{Map: []PathMap{{"/old", "/new"}}}).Items[0]
	if item.ByteEqual || len(item.Differs) != 1 || item.Differs[0].File != roofmt.ItemName {
		t.Errorf("%+v", item)
	}
	if got, want := read(t, item.Path, roofmt.ItemName), strings.Replace(raw, `"\u002fold\/p"`, `"/new/p"`, 1); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.MetadataName} {
		if read(t, dir, name) != read(t, item.Path, name) {
			t.Errorf("%s was changed", name)
		}
	}
	if ws, _ := esjson.GetString([]byte(read(t, dir, roofmt.ItemName)), "workspace"); ws != "/old/p" {
		t.Error("the original was changed")
	}
}

// Every real task folder is copied byte for byte, and reads as it did.
func TestCorpusImport(t *testing.T) {
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		before := tree(t, dir)
		s := open(t, t.TempDir(), dir)
		item := bring(t, s, dir, ImportOptions{}).Items[0]
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("the original was changed: %s", d)
		}
		if item.Outcome == Vacant {
			return
		}
		if item.Outcome != Imported || !item.ByteEqual || len(item.LeftOut) > 0 {
			t.Fatalf("%s: %s, byte equal %v, left out %v", item.Outcome, item.Problem, item.ByteEqual, item.LeftOut)
		}
		copied := files(t, item.Path)
		if len(item.Notes) > 0 {
			delete(copied, roofmt.ItemName)
		}
		if d := cmp.Diff(files(t, dir), copied); d != "" {
			t.Error(d)
		}
		var both [2]Summary
		for i, name := range []string{sourceName(filepath.Dir(dir)) + ":" + item.Name, "roost:" + item.ID} {
			both[i] = s.SummaryOf(context.Background(), must[Ref](t)(s.Find(context.Background(), name)))
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
	write(t, dir, roofmt.UIName, array(uiRow(1, "x")))
	write(t, dir, "command-output.txt", "")
	check(t, os.Truncate(filepath.Join(dir, "command-output.txt"), 96<<20))
	s := open(t, t.TempDir())
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	r := bring(t, s, dir, ImportOptions{})
	runtime.ReadMemStats(&is)
	if r.Imported != 1 || r.Bytes < 96<<20 {
		t.Fatalf("%+v", r)
	}
	if n := is.TotalAlloc - was.TotalAlloc; n > 16<<20 {
		t.Errorf("%d MB allocated for 96", n>>20)
	}
}
