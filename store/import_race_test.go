package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// An editor saves while its task is copied: what is imported is one of its states,
// whole. The first copy is thrown away, and the second look finds it at rest.
func TestImportOfTaskThatChanges(t *testing.T) {
	storage, dir := rooStorage(t, "live-1")
	s := open(t, t.TempDir())
	saves := 0
	r := bring(t, s, storage, ImportOptions{Progress: func(p ImportProgress) {
		if p.Files == 2 && saves == 0 {
			saves++
			write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "done so far"), uiRow(3, "and on")))
			write(t, dir, roofmt.APIName, array(apiRow(1, "user", "do it")))
			check(t, os.Remove(filepath.Join(dir, roofmt.MetadataName)))
			write(t, filepath.Join(dir, "new"), "file", "n")
		}
	}})
	if saves != 1 || r.Imported != 1 || !r.Items[0].ByteEqual {
		t.Fatalf("%+v", r)
	}
	if d := cmp.Diff(files(t, dir), files(t, r.Items[0].Path)); d != "" {
		t.Error(d)
	}
}

// A task that never comes to rest is not imported, and the next one is.
func TestImportOfTaskThatNeverRests(t *testing.T) {
	storage, dir := rooStorage(t, "busy-1")
	write(t, filepath.Join(storage, "tasks", "calm-2"), roofmt.UIName, array(uiRow(1, "calm")))
	s := open(t, t.TempDir())
	n := 0
	r := bring(t, s, storage, ImportOptions{Progress: func(p ImportProgress) {
		if p.Tasks == 0 {
			n++
			write(t, dir, roofmt.UIName, array(uiRow(1, strings.Repeat("x", n))))
		}
	}})
	if d := cmp.Diff(map[string]string{"busy-1": Failed, "calm-2": Imported}, outcomes(r)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(r.Items[0].Problem, "changes while it is copied") || exists(s.TasksDir(), "busy-1") || exists(s.TasksDir(), importStages) {
		t.Errorf("%+v", r.Items[0])
	}
}

// Somebody makes a task of the same id while ours is copied: theirs stays.
func TestImportMeetsNewTask(t *testing.T) {
	for _, how := range []string{ConflictSkip, ConflictFork} {
		storage, _ := rooStorage(t, "met-1")
		s := open(t, t.TempDir())
		made := false
		r := bring(t, s, storage, ImportOptions{OnConflict: how, Progress: func(ImportProgress) {
			if !made {
				made = true
				closeTask(t, create(t, s, "met-1"))
			}
		}})
		want := map[string]string{ConflictSkip: Conflict, ConflictFork: Forked}[how]
		if got := outcomes(r)["met-1"]; got != want {
			t.Errorf("%s: %s, want %s: %s", how, got, want, r.Items[0].Problem)
		}
		if text := read(t, filepath.Join(s.TasksDir(), "met-1"), "journal.jsonl"); !strings.Contains(text, "hello met-1") {
			t.Error("the task that was made is gone")
		}
	}
}

// An empty folder under the id is what Roo leaves when it looks for a task.
func TestImportReplacesGhost(t *testing.T) {
	storage, _ := rooStorage(t, "ghost-1")
	s := open(t, t.TempDir())
	check(t, os.MkdirAll(filepath.Join(s.TasksDir(), "ghost-1"), 0o700))
	if r := bring(t, s, storage, ImportOptions{}); r.Imported != 1 {
		t.Errorf("%+v", r.Items)
	}
}

// Stopped in the middle: what was imported is whole, the rest is not there, and
// doing it again completes it.
func TestImportStops(t *testing.T) {
	storage, _ := rooStorage(t, "a-1")
	for _, id := range []string{"b-2", "c-3"} {
		check(t, os.CopyFS(filepath.Join(storage, "tasks", id), os.DirFS(filepath.Join(storage, "tasks", "a-1"))))
	}
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	list := must[[]Importable](t)(s.ImportPath(ctx, storage))
	r, err := s.Import(ctx, list, ImportOptions{Progress: func(p ImportProgress) {
		if p.Tasks == 1 && p.Files == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Imported != 1 || len(r.Items) != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	entries := must[[]fs.DirEntry](t)(os.ReadDir(s.TasksDir()))
	if len(entries) != 2 { // the task and the index
		t.Errorf("left: %v", entries)
	}
	if got := bring(t, s, storage, ImportOptions{}); got.Same != 1 || got.Imported != 2 {
		t.Errorf("%+v", got)
	}
}

// What a killed import left is cleared, and nobody takes it for a task meanwhile.
func TestImportClearsLeftovers(t *testing.T) {
	storage, _ := rooStorage(t, "after-1")
	s := open(t, t.TempDir())
	left := filepath.Join(s.TasksDir(), importStages, "0")
	write(t, left, roofmt.UIName, array(uiRow(1, "half copied")))
	if got := must[Listing](t)(s.List(context.Background(), Filter{Empty: true})); len(got.Items) != 0 {
		t.Errorf("a half copied task is shown: %+v", got.Items)
	}
	if r := bring(t, s, storage, ImportOptions{}); r.Imported != 1 || exists(s.TasksDir(), importStages) {
		t.Errorf("%+v", r)
	}
}

func TestImportsTakeTurns(t *testing.T) {
	storage, _ := rooStorage(t, "turn-1")
	s := open(t, t.TempDir())
	check(t, s.Prepare())
	free := must[func()](t)(lockImport(filepath.Join(s.opt.Root, importLock)))
	list := must[[]Importable](t)(s.ImportPath(context.Background(), storage))
	if _, err := s.Import(context.Background(), list, ImportOptions{}); !errors.Is(err, ErrImporting) {
		t.Errorf("two at a time: %v", err)
	}
	if _, err := s.Import(context.Background(), list, ImportOptions{DryRun: true}); err != nil {
		t.Errorf("looking needs no turn: %v", err)
	}
	free()
	if r := bring(t, s, storage, ImportOptions{}); r.Imported != 1 {
		t.Errorf("%+v", r)
	}
}

// One folder that cannot be read does not keep the others.
func TestImportGoesOn(t *testing.T) {
	storage, dir := rooStorage(t, "fine-1")
	s := open(t, t.TempDir())
	r := must[ImportReport](t)(s.Import(context.Background(), []Importable{
		{Name: "gone", Dir: filepath.Join(storage, "gone")},
		{Name: "file", Dir: filepath.Join(dir, roofmt.UIName)},
		{Name: "self", Dir: filepath.Join(s.TasksDir(), "self")},
		{Name: "around", Dir: filepath.Dir(s.opt.Root)},
		{Name: "fine-1", Dir: dir},
	}, ImportOptions{}))
	want := map[string]string{"gone": Failed, "file": Failed, "self": Failed, "around": Failed, "fine-1": Imported}
	if d := cmp.Diff(want, outcomes(r)); d != "" {
		t.Error(d)
	}
	for _, item := range r.Items {
		if (item.Problem == "") != (item.Outcome == Imported) {
			t.Errorf("%+v", item)
		}
	}
}

func TestImportPlaces(t *testing.T) {
	storage, dir := rooStorage(t, "place-1")
	ctx := context.Background()
	s := open(t, t.TempDir(), storage, filepath.Join(storage, "not there"))
	closeTask(t, create(t, s, "mine-1"))
	name := sourceName(filepath.Join(storage, "tasks"))
	for _, from := range []string{name, "roo", "all"} {
		list, dark, err := s.ImportSource(ctx, from)
		if err != nil || len(list) != 1 || list[0].Name != "place-1" || list[0].Dir != dir {
			t.Errorf("%s: %+v, %v", from, list, err)
		}
		if from == "all" && len(dark) != 1 {
			t.Errorf("the unreachable source is not named: %+v", dark)
		}
	}
	for from, want := range map[string]error{"nobody": ErrNotFound, OwnSource: ErrOwnPlace} {
		if _, _, err := s.ImportSource(ctx, from); !errors.Is(err, want) {
			t.Errorf("%s: %v", from, err)
		}
	}
	for path, want := range map[string]error{
		s.opt.Root: ErrOwnPlace, s.TasksDir(): ErrOwnPlace, filepath.Join(s.TasksDir(), "mine-1"): ErrOwnPlace,
		t.TempDir(): ErrNotFound, filepath.Join(storage, "nowhere"): roofmt.ErrUnreachable,
	} {
		if _, err := s.ImportPath(ctx, path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// Many tasks cost one write of the index, also when it was broken.
func TestImportIndexesOnce(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks")
	for i := range 60 {
		id := fmt.Sprintf("many-%02d", i)
		write(t, filepath.Join(tasks, id), roofmt.UIName, array(uiRow(i, id)))
		write(t, filepath.Join(tasks, id), roofmt.ItemName, fmt.Sprintf(`{"id":%q,"ts":%d,"task":%q}`, id, i, id))
	}
	s := open(t, t.TempDir())
	closeTask(t, must[*Task](t)(s.Create(context.Background(), task.Created{Task: "before", CreatedAt: ts0})))
	for _, before := range []string{"{broken", `{"version":1,"updatedAt":1,"entries":[{"id":"kept","ts":1}]}`} {
		check(t, os.RemoveAll(s.TasksDir()))
		write(t, s.TasksDir(), roofmt.IndexName, before)
		bring(t, s, tasks, ImportOptions{})
		index := must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir()))
		if want := 60 + strings.Count(before, "kept"); len(index.Entries) != want {
			t.Errorf("%d entries, want %d", len(index.Entries), want)
		}
		if first, _ := index.Get("many-59"); string(index.Entries[0]) != string(first) {
			t.Errorf("newest first, not %s", index.Entries[0])
		}
	}
}

// A file of an archive is only taken when it is what the archive's list says.
func TestImportProvesArchive(t *testing.T) {
	text := array(uiRow(1, "packed"))
	file := func(path, text, sum string, size int) ArchiveFile {
		return ArchiveFile{Path: path, Size: int64(size), SHA256: sum, MTime: time.UnixMilli(ts0), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}}
	}
	sumText := func(text string) string { return hexOf(sha256.Sum256([]byte(text))) }
	sum := sumText(text)
	good := file(roofmt.UIName, text, sum, len(text))
	for name, tt := range map[string]struct {
		list []ArchiveFile
		want string
	}{
		"whole":         {[]ArchiveFile{good, file(filepath.Join("a", "b"), text, sum, len(text))}, Imported},
		"other bytes":   {[]ArchiveFile{file(roofmt.UIName, text+" ", sum, len(text)+1)}, Failed},
		"longer":        {[]ArchiveFile{file(roofmt.UIName, text, sum, len(text)-1)}, Failed},
		"shorter":       {[]ArchiveFile{file(roofmt.UIName, text, sum, len(text)+1)}, Failed},
		"leads out":     {[]ArchiveFile{good, file(filepath.Join("..", "x"), text, sum, len(text))}, Failed},
		"absolute":      {[]ArchiveFile{good, file("/tmp/x", text, sum, len(text))}, Failed},
		"twice":         {[]ArchiveFile{good, file(roofmt.UIName, "{}", sumText("{}"), 2)}, Imported},
		"file is a dir": {[]ArchiveFile{good, file(filepath.Join(roofmt.UIName, "x"), text, sum, len(text))}, Failed},
		"nothing":       {[]ArchiveFile{}, Vacant},
		"deep":          {[]ArchiveFile{good, file(strings.Repeat("d"+string(filepath.Separator), deepest)+"x", text, sum, len(text))}, Imported},
		"too deep":      {[]ArchiveFile{good, file(strings.Repeat("d"+string(filepath.Separator), deepest+1)+"x", text, sum, len(text))}, Failed},
	} {
		s := open(t, t.TempDir())
		r := must[ImportReport](t)(s.Import(context.Background(), []Importable{{Name: "packed-1", Dir: "x.zip:tasks/packed-1", Files: tt.list}}, ImportOptions{}))
		if r.Items[0].Outcome != tt.want || exists(s.TasksDir(), "packed-1") != (tt.want == Imported) {
			t.Errorf("%s: %+v", name, r.Items[0])
		}
		if tt.want == Imported && read(t, r.Items[0].Path, roofmt.UIName) != text {
			t.Errorf("%s: another file", name)
		}
	}
}
