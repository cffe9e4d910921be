package importer_test

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

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

// An editor saves while its task is copied: what is imported is one of its states,
// whole. The first copy is thrown away, and the second look finds it at rest.
func TestImportOfTaskThatChanges(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "live-1")
	s := storetest.Open(t, t.TempDir())
	saves := 0
	r := bringWhile(t, s, storage, importer.Options{}, func(p progress.State) {
		if p.Files == 2 && saves == 0 {
			saves++
			storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far"), storetest.UIRow(3, "and on")))
			storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(1, "user", "do it")))
			storetest.Check(t, os.Remove(filepath.Join(dir, roofmt.MetadataName)))
			storetest.Write(t, filepath.Join(dir, "new"), "file", "n")
		}
	})
	if saves != 1 || r.Imported != 1 || !r.Items[0].ByteEqual {
		t.Fatalf("got %+v, want saves = 1 and r.Imported = 1 and r.Items[0].ByteEqual", r)
	}
	if d := cmp.Diff(storetest.Contents(t, dir), storetest.Contents(t, r.Items[0].Path)); d != "" {
		t.Error(d)
	}
}

// A task that never comes to rest is not imported, and the next one is.
func TestImportOfTaskThatNeverRests(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "busy-1")
	storetest.Write(t, filepath.Join(storage, "tasks", "calm-2"), roofmt.UIName, storetest.Array(storetest.UIRow(1, "calm")))
	s := storetest.Open(t, t.TempDir())
	n := 0
	r := bringWhile(t, s, storage, importer.Options{}, func(p progress.State) {
		if p.Done == 0 {
			n++
			storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, strings.Repeat("x", n))))
		}
	})
	if d := cmp.Diff(map[string]string{"busy-1": api.TaskFailed, "calm-2": api.TaskImported}, outcomes(r)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(r.Items[0].Problem, "keeps changing while it is copied") || storetest.Exists(s.TasksDir(), "busy-1") || storetest.Exists(s.TasksDir(), importer.StagesName) {
		t.Errorf("%+v", r.Items[0])
	}
}

// Somebody makes a task of the same id while ours is copied: theirs stays.
func TestImportMeetsNewTask(t *testing.T) {
	for _, how := range []string{api.ConflictSkip, api.ConflictFork} {
		storage, _ := storetest.RooStorage(t, "met-1")
		s := storetest.Open(t, t.TempDir())
		made := false
		r := bringWhile(t, s, storage, importer.Options{OnConflict: how}, func(progress.State) {
			if !made {
				made = true
				storetest.Close(t, storetest.Create(t, s, "met-1"))
			}
		})
		want := map[string]string{api.ConflictSkip: api.TaskConflict, api.ConflictFork: api.TaskForked}[how]
		if got := outcomes(r)["met-1"]; got != want {
			t.Errorf("%s: %s, want %s: %s", how, got, want, r.Items[0].Problem)
		}
		if text := storetest.Read(t, filepath.Join(s.TasksDir(), "met-1"), "journal.jsonl"); !strings.Contains(text, "hello met-1") {
			t.Error("the task that was made is gone")
		}
	}
}

// An empty folder under the id is what Roo leaves when it looks for a task.
func TestImportReplacesGhost(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "ghost-1")
	s := storetest.Open(t, t.TempDir())
	storetest.Check(t, os.MkdirAll(filepath.Join(s.TasksDir(), "ghost-1"), 0o700))
	if r := bring(t, s, storage, importer.Options{}); r.Imported != 1 {
		t.Errorf("got %+v, want r.Imported = 1", r.Items)
	}
}

// Stopped in the middle: what was imported is whole, the rest is not there, and
// doing it again completes it.
func TestImportStops(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "a-1")
	for _, id := range []string{"b-2", "c-3"} {
		storetest.Check(t, os.CopyFS(filepath.Join(storage, "tasks", id), os.DirFS(filepath.Join(storage, "tasks", "a-1"))))
	}
	s := storetest.Open(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(ctx, s, storage))
	r, err := importer.Run(progress.With(ctx, func(p progress.State) {
		if p.Done == 1 && p.Files == 5 {
			cancel()
		}
	}), s, list, importer.Options{})
	if !errors.Is(err, context.Canceled) || r.Imported != 1 || len(r.Items) != 1 {
		t.Fatalf("got %v, %+v, want errors.Is(err, context.Canceled) and r.Imported = 1 and len(r.Items) = 1",
			err, r)
	}
	entries := storetest.Must[[]fs.DirEntry](t)(os.ReadDir(s.TasksDir()))
	if len(entries) != 2 { // the task and the index
		t.Errorf("left: %v", entries)
	}
	if got := bring(t, s, storage, importer.Options{}); got.Same != 1 || got.Imported != 2 {
		t.Errorf("got %+v, want got.Same = 1 and got.Imported = 2", got)
	}
}

// What a killed import left is cleared, and nobody takes it for a task meanwhile.
func TestImportClearsLeftovers(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "after-1")
	s := storetest.Open(t, t.TempDir())
	left := filepath.Join(s.TasksDir(), importer.StagesName, "0")
	storetest.Write(t, left, roofmt.UIName, storetest.Array(storetest.UIRow(1, "half copied")))
	if got := storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{TaskFilter: api.TaskFilter{Empty: true}})); len(got.Items) != 0 {
		t.Errorf("a half copied task is shown: %+v", got.Items)
	}
	if r := bring(t, s, storage, importer.Options{}); r.Imported != 1 || storetest.Exists(s.TasksDir(), importer.StagesName) {
		t.Errorf("got %+v, want r.Imported = 1 and not storetest.Exists(s.TasksDir(), importer.StagesName)", r)
	}
}

func TestImportsTakeTurns(t *testing.T) {
	storage, _ := storetest.RooStorage(t, "turn-1")
	s := storetest.Open(t, t.TempDir())
	storetest.Check(t, s.Prepare())
	lock := storetest.Must[*os.File](t)(importer.TakeLock(s.Root()))
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(context.Background(), s, storage))
	if _, err := importer.Run(context.Background(), s, list, importer.Options{}); !errors.Is(err, importer.ErrRunning) {
		t.Errorf("two at a time: %v", err)
	}
	if _, err := importer.Run(context.Background(), s, list, importer.Options{DryRun: true}); err != nil {
		t.Errorf("looking needs no turn: %v", err)
	}
	storetest.Check(t, filelock.Release(lock))
	if r := bring(t, s, storage, importer.Options{}); r.Imported != 1 {
		t.Errorf("got %+v, want r.Imported = 1", r)
	}
}

// One folder that cannot be read does not keep the others.
func TestImportGoesOn(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "fine-1")
	s := storetest.Open(t, t.TempDir())
	r := storetest.Must[api.Import](t)(importer.Run(context.Background(), s, []importer.Original{
		{Name: "gone", Dir: filepath.Join(storage, "gone")},
		{Name: "file", Dir: filepath.Join(dir, roofmt.UIName)},
		{Name: "self", Dir: filepath.Join(s.TasksDir(), "self")},
		{Name: "around", Dir: filepath.Dir(s.Root())},
		{Name: "fine-1", Dir: dir},
	}, importer.Options{}))
	want := map[string]string{"gone": api.TaskFailed, "file": api.TaskFailed, "self": api.TaskFailed, "around": api.TaskFailed, "fine-1": api.TaskImported}
	if d := cmp.Diff(want, outcomes(r)); d != "" {
		t.Error(d)
	}
	for _, item := range r.Items {
		if (item.Problem == "") != (item.Outcome == api.TaskImported) {
			t.Errorf("got %+v, want (item.Problem == \"\") = (item.Outcome == api.TaskImported)", item)
		}
	}
}

func TestImportPlaces(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "place-1")
	ctx := context.Background()
	s := storetest.Open(t, t.TempDir(), storage, filepath.Join(storage, "not there"))
	storetest.Close(t, storetest.Create(t, s, "mine-1"))
	name := store.SourceName(filepath.Join(storage, "tasks"))
	for _, from := range []string{name, "roo", "all"} {
		list, dark, err := importer.FindSource(ctx, s, from)
		if err != nil || len(list) != 1 || list[0].Name != "place-1" || list[0].Dir != dir {
			t.Errorf("%s: got %+v, %v, want no error and len(list) = 1 and list[0].Name = \"place-1\" and list[0].Dir = dir",
				from, list, err)
		}
		if from == "all" && len(dark) != 1 {
			t.Errorf("the unreachable source is not named: %+v", dark)
		}
	}
	for from, want := range map[string]error{"nobody": store.ErrNotFound, store.OwnSource: importer.ErrInOwnRoot} {
		if _, _, err := importer.FindSource(ctx, s, from); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want errors.Is(err, want)", from, err)
		}
	}
	for path, want := range map[string]error{
		s.Root(): importer.ErrInOwnRoot, s.TasksDir(): importer.ErrInOwnRoot, filepath.Join(s.TasksDir(), "mine-1"): importer.ErrInOwnRoot,
		t.TempDir(): store.ErrNotFound, filepath.Join(storage, "nowhere"): roofmt.ErrUnreachable,
	} {
		if _, err := importer.FindPath(ctx, s, path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// Many tasks cost one write of the index, also when it was broken.
func TestImportIndexesOnce(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks")
	for i := range 60 {
		id := fmt.Sprintf("many-%02d", i)
		storetest.Write(t, filepath.Join(tasks, id), roofmt.UIName, storetest.Array(storetest.UIRow(i, id)))
		storetest.Write(t, filepath.Join(tasks, id), roofmt.ItemName, fmt.Sprintf(`{"id":%q,"ts":%d,"task":%q}`, id, i, id))
	}
	s := storetest.Open(t, t.TempDir())
	storetest.Close(t, storetest.Must[*store.Task](t)(s.Create(context.Background(), task.Created{Task: "before", CreatedAt: storetest.TS0})))
	for _, before := range []string{"{broken", `{"version":1,"updatedAt":1,"entries":[{"id":"kept","ts":1}]}`} {
		storetest.Check(t, os.RemoveAll(s.TasksDir()))
		storetest.Write(t, s.TasksDir(), roofmt.IndexName, before)
		bring(t, s, tasks, importer.Options{})
		index := storetest.Must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir()))
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
	text := storetest.Array(storetest.UIRow(1, "packed"))
	file := func(path, text, sum string, size int) importer.ArchiveFile {
		return importer.ArchiveFile{Path: path, Size: int64(size), SHA256: sum, MTime: time.UnixMilli(storetest.TS0), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}}
	}
	sumText := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	sum := sumText(text)
	good := file(roofmt.UIName, text, sum, len(text))
	for name, tt := range map[string]struct {
		list []importer.ArchiveFile
		want string
	}{
		"whole":         {[]importer.ArchiveFile{good, file(filepath.Join("a", "b"), text, sum, len(text))}, api.TaskImported},
		"other bytes":   {[]importer.ArchiveFile{file(roofmt.UIName, text+" ", sum, len(text)+1)}, api.TaskFailed},
		"longer":        {[]importer.ArchiveFile{file(roofmt.UIName, text, sum, len(text)-1)}, api.TaskFailed},
		"shorter":       {[]importer.ArchiveFile{file(roofmt.UIName, text, sum, len(text)+1)}, api.TaskFailed},
		"leads out":     {[]importer.ArchiveFile{good, file(filepath.Join("..", "x"), text, sum, len(text))}, api.TaskFailed},
		"absolute":      {[]importer.ArchiveFile{good, file("/tmp/x", text, sum, len(text))}, api.TaskFailed},
		"twice":         {[]importer.ArchiveFile{good, file(roofmt.UIName, "{}", sumText("{}"), 2)}, api.TaskImported},
		"file is a dir": {[]importer.ArchiveFile{good, file(filepath.Join(roofmt.UIName, "x"), text, sum, len(text))}, api.TaskFailed},
		"nothing":       {[]importer.ArchiveFile{}, api.TaskEmpty},
		"deep":          {[]importer.ArchiveFile{good, file(strings.Repeat("d"+string(filepath.Separator), importer.MaxDepth)+"x", text, sum, len(text))}, api.TaskImported},
		"too deep":      {[]importer.ArchiveFile{good, file(strings.Repeat("d"+string(filepath.Separator), importer.MaxDepth+1)+"x", text, sum, len(text))}, api.TaskFailed},
	} {
		s := storetest.Open(t, t.TempDir())
		r := storetest.Must[api.Import](t)(importer.Run(context.Background(), s, []importer.Original{{Name: "packed-1", Dir: "x.zip:tasks/packed-1", Files: tt.list}}, importer.Options{}))
		if r.Items[0].Outcome != tt.want || storetest.Exists(s.TasksDir(), "packed-1") != (tt.want == api.TaskImported) {
			t.Errorf("%s: got %+v, want r.Items[0].Outcome = %v and storetest.Exists(s.TasksDir(), \"packed-1\") = (tt.want == api.TaskImported)",
				name, r.Items[0], tt.want)
		}
		if tt.want == api.TaskImported && storetest.Read(t, r.Items[0].Path, roofmt.UIName) != text {
			t.Errorf("%s: another file", name)
		}
	}
}
