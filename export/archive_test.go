package export

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store"
	tasks "github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
)

func one(views ...*store.View) iter.Seq2[*store.View, error] {
	return func(yield func(*store.View, error) bool) {
		for _, v := range views {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// archived writes an archive, verifies it, and returns its files.
func archived(t *testing.T, views ...*store.View) (Manifest, map[string]string) {
	t.Helper()
	var out bytes.Buffer
	_, err := Archive(t.Context(), &out, one(views...), nothingKept)
	fixture.NoError(t, err)
	r := bytes.NewReader(out.Bytes())
	m, err := VerifyArchive(t.Context(), r, r.Size())
	fixture.NoError(t, err)
	z, err := zip.NewReader(r, r.Size())
	fixture.NoError(t, err)
	files := map[string]string{}
	for _, f := range z.File {
		in, err := f.Open()
		fixture.NoError(t, err)
		data, err := io.ReadAll(in)
		fixture.NoError(t, err)
		name, err := url.PathUnescape(f.Name)
		fixture.NoError(t, err)
		files[name] = string(data)
	}
	return m, files
}

func TestArchiveHoldsEveryByteOfAFolder(t *testing.T) {
	files := folder(`[{"ts":1,"type":"say","say":"text","text":"`+secret+`"}`, "\x00\xff not JSON") // also damaged ones
	files["checkpoints/.git/HEAD"] = "ref"
	files["command-output/a b.txt"] = "out\n"
	files["poetry/poetry.lock"], files["yarn.lock"], files["journal.idx.md"] = "kept", "kept", "kept"
	files["日本.txt"] = "x"
	files[".hidden"] = "y"
	files["..."], files["a+b %2F~.txt"] = "dots", "signs"
	files[strings.Repeat("a", 255)], files["dir/"+strings.Repeat("日", 85)] = "long", "long when it is escaped"
	s := newStorage(t, files)
	fixture.NoError(t, os.Mkdir(filepath.Join(s.task, "ui_messages.json.lock"), 0o700))
	before := tree(t, s.task)
	m, got := archived(t, s.open("t1"))
	want := map[string]string{}
	for name, text := range files {
		want["tasks/t1/task/"+name] = text
	}
	delete(got, ManifestName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(m.Tasks) != 1 || m.Tasks[0].ID != "t1" || len(m.Tasks[0].Damaged) == 0 || len(m.Files) != len(want) {
		t.Errorf("manifest %+v", m)
	}
	if diff := cmp.Diff(before, tree(t, s.task)); diff != "" {
		t.Errorf("archiving changed the folder: %s", diff)
	}
}

// A task that is taken out of an archive is one that opens.
func TestArchivedJournalOpens(t *testing.T) {
	s := newStorage(t, folder(oddUI, "[]"))
	s.own("mine", "my own words")
	m, files := archived(t, s.open("mine"), s.open("t1"))
	if len(m.Tasks) != 2 || m.Tasks[0].Source != store.OwnSource {
		t.Fatalf("manifest %+v", m)
	}
	for name := range files {
		if strings.HasSuffix(name, ".lock") || strings.Contains(name, "journal.idx") {
			t.Errorf("%s is in the archive", name)
		}
	}
	dir := t.TempDir()
	fixture.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(files["tasks/mine/task/journal.jsonl"]), 0o600))
	log, err := filelog.OpenReader(dir)
	fixture.NoError(t, err)
	defer log.Close()
	health, err := log.Health(t.Context())
	fixture.NoError(t, err)
	if !health.OK() || health.Commits < 3 {
		t.Errorf("health %+v", health)
	}
}

// What Roost keeps of another tool's task lies apart from its folder; both go along.
func TestArchiveOfAnAdoptedTask(t *testing.T) {
	s := newStorage(t, folder(oddUI, `[{"role":"user","content":"x","ts":1}]`))
	owned, err := s.st.Own(t.Context(), s.open("t1").Ref)
	fixture.NoError(t, err)
	fixture.NoError(t, owned.Task.Close(t.Context()))
	_, files := archived(t, s.open("t1"))
	names := slices.Sorted(maps.Keys(files))
	for _, want := range []string{"tasks/t1/log/journal.jsonl", "tasks/t1/task/ui_messages.json", "tasks/t1/log/blobs/"} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("no %s in %v", want, names)
		}
	}
}

// A fork's base goes on in the same file.
func TestTheArchiveOfAForkLacksWhatItsBaseGotLater(t *testing.T) {
	s := newStorage(t, folder(oddUI, "[]"))
	s.own("mine", "shared words")
	ref := s.open("mine").Ref
	_, finish, err := tasks.Fork(t.Context(), s.st, ref, tasks.ForkOptions{ID: "fork"})
	fixture.NoError(t, err)
	fixture.NoError(t, finish(t.Context()))
	owned, err := s.st.Own(t.Context(), ref)
	fixture.NoError(t, err)
	fixture.NoError(t, owned.Task.CommitSynced(t.Context(), task.InputQueued{Input: "i", Text: "later words"}))
	fixture.NoError(t, owned.Task.Close(t.Context()))
	_, files := archived(t, s.open("fork"))
	log := files["tasks/fork/task/base/journal.jsonl"]
	if !strings.Contains(log, "shared words") || strings.Contains(log, "later words") {
		t.Errorf("got %s, want what the fork shares and no more", log)
	}
}

func TestArchiveNamesTwoTasksOfOneID(t *testing.T) {
	a, b := newStorage(t, folder(oddUI, "[]")), newStorage(t, folder("[]", "[]"))
	m, _ := archived(t, a.open("t1"), b.open("t1"))
	if m.Tasks[0].Dir != "tasks/t1" || m.Tasks[1].Dir != "tasks/t1~2" {
		t.Errorf("tasks %+v", m.Tasks)
	}
}

func TestArchiveFollowsNoLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	s := newStorage(t, folder(oddUI, "[]"))
	outside := filepath.Join(s.dir, "outside.txt")
	fixture.NoError(t, os.WriteFile(outside, []byte("private"), 0o600))
	fixture.NoError(t, os.Symlink(outside, filepath.Join(s.task, "leads-out")))
	fixture.NoError(t, os.Symlink("..", filepath.Join(s.task, "loop")))
	v := s.open("t1")
	var out bytes.Buffer
	r, err := Archive(t.Context(), &out, one(v), nothingKept)
	fixture.NoError(t, err)
	if len(r.Skipped) != 2 || bytes.Contains(out.Bytes(), []byte("private")) {
		t.Errorf("skipped %q", r.Skipped)
	}
}

func TestArchiveStops(t *testing.T) {
	v := newStorage(t, folder(oddUI, "[]")).open("t1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Archive(ctx, io.Discard, one(v), nothingKept); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := errors.New("no such task")
	_, err := Archive(t.Context(), io.Discard, func(yield func(*store.View, error) bool) { yield(nil, broken) }, nothingKept)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// Every way in which an archive can be less than what was put into it is seen.
func TestVerifyArchive(t *testing.T) {
	var out bytes.Buffer
	_, err := Archive(t.Context(), &out, one(newStorage(t, folder(oddUI, "[]")).open("t1")), nothingKept)
	fixture.NoError(t, err)
	whole := out.Bytes()
	verify := func(data []byte) error {
		_, err := VerifyArchive(t.Context(), bytes.NewReader(data), int64(len(data)))
		return err
	}
	fixture.NoError(t, verify(whole))
	for n := 0; n < len(whole); n += 97 {
		if err := verify(whole[:n]); !errors.Is(err, ErrArchive) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	// remake writes the same files again, each as change says.
	remake := func(change func(name string, data []byte) (string, []byte)) []byte {
		var out bytes.Buffer
		z, w := must2(zip.NewReader(bytes.NewReader(whole), int64(len(whole))))(t), zip.NewWriter(&out)
		for _, f := range z.File {
			data := must2(io.ReadAll(must2(f.Open())(t)))(t)
			if name, data := change(f.Name, data); name != "" {
				_, err := must2(w.Create(name))(t).Write(data)
				fixture.NoError(t, err)
			}
		}
		fixture.NoError(t, w.Close())
		return out.Bytes()
	}
	for name, change := range map[string]func(string, []byte) (string, []byte){
		"other bytes": func(n string, d []byte) (string, []byte) {
			return n, bytes.Replace(d, []byte("more"), []byte("less"), 1)
		},
		"longer": func(n string, d []byte) (string, []byte) {
			if n != ManifestName {
				d = append(d, ' ')
			}
			return n, d
		},
		"a file is missing": func(n string, d []byte) (string, []byte) {
			return strings.TrimSuffix(n, "tasks/t1/task/ui_messages.json"), d
		},
		"a file is new": func(n string, d []byte) (string, []byte) { return strings.Replace(n, "/ui_", "/new_", 1), d },
		"no manifest":   func(n string, d []byte) (string, []byte) { return strings.TrimSuffix(n, ManifestName), d },
		"another manifest": func(n string, d []byte) (string, []byte) {
			return n, bytes.Replace(d, []byte(ArchiveFormat), []byte("other"), 1)
		},
		"a later version": func(n string, d []byte) (string, []byte) {
			return n, bytes.Replace(d, []byte(`"version":1`), []byte(`"version":2`), 1)
		},
		"manifest not JSON": func(n string, d []byte) (string, []byte) {
			return n, bytes.Replace(d, []byte(`{"format"`), []byte("format"), 1)
		},
	} {
		if err := verify(remake(change)); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: got %v, want errors.Is(err, ErrArchive)", name, err)
		}
	}
}

// must2 is must for a call with a result.
func must2[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		fixture.NoError(t, err)
		return v
	}
}

// nothingKept is for tasks without checkpoints.
func nothingKept(context.Context, *store.View) (iter.Seq[importer.ArchiveFile], string) {
	return func(func(importer.ArchiveFile) bool) {}, ""
}
