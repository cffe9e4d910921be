package roofmt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// A broken index is told by an error and left as it is, and its print lets it be
// replaced only as it was seen.
func TestABrokenIndexCanBeReplaced(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"version":2,"entries":[]}`, `{"version":1,"entries":{}}`, "\x00\x00"} {
		dir := t.TempDir()
		write(t, dir, map[string]string{roofmt.IndexName: text})
		x, err := roofmt.ReadIndex(dir)
		if !errors.Is(err, roofmt.ErrIndex) || x == nil || len(x.Entries) != 0 || x.Print.Size != int64(len(text)) {
			t.Fatalf("%q: got %+v (%v), want errors.Is(err, roofmt.ErrIndex) and x != nil and len(x.Entries) = 0 and x.Print.Size = int64(len(text))",
				text, x, err)
		}
		seen := x.Print
		put := func() error {
			return roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.IndexName, Bytes: []byte(`{"version":1,"entries":[]}`), Expect: &seen}}, roofmt.Options{})
		}
		if err := put(); err != nil {
			t.Errorf("%q: got %v, want no error", text, err)
		}
		if err := put(); !errors.Is(err, roofmt.ErrChanged) {
			t.Errorf("%q: replaced twice as it was seen once: %v", text, err)
		}
	}
	if err := os.Mkdir(filepath.Join(t.TempDir(), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, roofmt.IndexName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := roofmt.ReadIndex(dir); err == nil || errors.Is(err, roofmt.ErrIndex) {
		t.Errorf("a folder under its name: %v", err)
	}
}

// The print belongs to the bytes that were read, also while others replace the
// file: else a change would be overwritten that nobody saw.
func TestAnIndexIsReadWithItsOwnPrint(t *testing.T) {
	dir := t.TempDir()
	texts := map[int64]string{}
	for n := range 3 {
		text := fmt.Sprintf(`{"version":1,"updatedAt":%d,"entries":[%s]}`, n, strings.TrimSuffix(strings.Repeat(`{"id":"a"},`, n+1), ","))
		texts[int64(len(text))] = text
		write(t, dir, map[string]string{fmt.Sprint("next", n): text})
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := 0; ; n = (n + 1) % 3 {
			select {
			case <-stop:
				return
			default:
			}
			// A link keeps the file for the next round.
			temp := filepath.Join(dir, "temp")
			if err := errors.Join(os.Link(filepath.Join(dir, fmt.Sprint("next", n)), temp), os.Rename(temp, filepath.Join(dir, roofmt.IndexName))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2000 {
		x, err := roofmt.ReadIndex(dir)
		if err != nil {
			t.Error(err)
			break
		}
		if !x.Print.Exists {
			continue // not there yet
		}
		if want := int64(len(x.Entries) - 1); x.UpdatedAt != want || !strings.Contains(texts[x.Print.Size], fmt.Sprintf(`"updatedAt":%d,`, want)) {
			t.Errorf("%d entries of %d with the print of another file: %v", len(x.Entries), x.UpdatedAt, x.Print)
			break
		}
	}
	close(stop)
	wait.Wait()
}

// Whatever is put in and taken out, every other entry stays as it was spelled,
// each id stands once, and the newest come first.
func TestIndexKeepsWhatItDoesNotKnow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		odd := rapid.SliceOfN(rapid.SampledFrom([]string{`{"odd":1}`, `null`, `{"id":7}`, `"x"`, `{"id":"","ts":5}`}), 0, 3).Draw(r, "odd")
		x, err := roofmt.ParseIndex([]byte(`{"more":{"a": 1.50},"version":1,"entries":[` + strings.Join(odd, ",") + `],"updatedAt":3}`))
		if err != nil {
			r.Fatal(err)
		}
		model := map[string]string{}
		for range rapid.IntRange(0, 20).Draw(r, "changes") {
			id := rapid.SampledFrom([]string{"a", "b", "c", `q"uote`}).Draw(r, "id")
			if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				if got, want := x.Remove(id), model[id] != ""; got != want {
					r.Fatalf("removed %s: %v", id, got)
				}
				delete(model, id)
				continue
			}
			item := fmt.Sprintf(`{"id":%s,"ts":%d,"cost":1.50}`, esjson.Quote(nil, id), rapid.IntRange(0, 9).Draw(r, "ts"))
			x.Remove(id)
			x.Entries = append(x.Entries, []byte(item))
			model[id] = item
		}
		raw, err := x.Bytes(77)
		if err != nil {
			r.Fatal(err)
		}
		again, err := roofmt.ParseIndex(raw)
		if err != nil || again.UpdatedAt != 77 {
			r.Fatalf("%s: got %v, want no error and again.UpdatedAt = 77", raw, err)
		}
		if more, _ := esjson.Get(raw, "more"); string(more) != `{"a": 1.50}` && string(more) != `{"a":1.50}` {
			r.Fatalf("more is %s", more)
		}
		for id, want := range model {
			if got, ok := again.Get(id); !ok || string(got) != want {
				r.Fatalf("%s is %s, want %s", id, got, want)
			}
		}
		if len(again.Entries) != len(model)+len(odd) {
			r.Fatalf("%d entries, want %d", len(again.Entries), len(model)+len(odd))
		}
		last := 1e9
		for _, e := range again.Entries {
			ts, ok := esjson.GetFloat(e, "ts")
			if ok && ts > last {
				r.Fatalf("not in order: %s", raw)
			}
			if ok {
				last = ts
			}
		}
	})
}

// Where one looks decides what is found; what cannot be looked into is never
// nothing.
func TestFindBySigns(t *testing.T) {
	mk := func(files ...string) string {
		dir := t.TempDir()
		for _, f := range files {
			path := filepath.Join(dir, filepath.FromSlash(f))
			mkdirs(t, filepath.Dir(path))
			if strings.HasSuffix(f, "/") {
				mkdirs(t, path)
				continue
			}
			write(t, filepath.Dir(path), map[string]string{filepath.Base(path): "[]"})
		}
		return dir
	}
	for _, c := range []struct {
		name  string
		files []string
		shape roofmt.Shape
		ids   []string
	}{
		{"an empty folder", nil, roofmt.NoTasks, nil},
		{"a storage without a task", []string{"tasks/"}, roofmt.StorageRoot, nil},
		{"a storage with a folder that is no task yet", []string{"tasks/ghost/"}, roofmt.StorageRoot, []string{"ghost"}},
		{"a storage whose tasks is a file", []string{"tasks"}, roofmt.NoTasks, nil},
		{"folders beside an index", []string{"_index.json", "a/", "b/"}, roofmt.TasksDir, []string{"a", "b"}},
		{"folders of which one is a task", []string{"a/notes.txt", "b/" + roofmt.ItemName}, roofmt.TasksDir, []string{"a", "b"}},
		{"folders of something else", []string{"a/notes.txt", "b/x.json"}, roofmt.NoTasks, nil},
		{"a task with a folder named tasks", []string{roofmt.UIName, "tasks/x/"}, roofmt.TaskFolder, []string{""}},
		{"a task of which only a backup is left", []string{".ui_messages.json.bak_1_a.tmp"}, roofmt.TaskFolder, []string{""}},
		{"locks and hidden folders are no tasks", []string{"tasks/_index.json.lock/", "tasks/.trash/", "tasks/_x/", "tasks/a/"}, roofmt.StorageRoot, []string{"a"}},
		{"names that cannot be ids", []string{"tasks/a b/", "tasks/日/", "tasks/-x/"}, roofmt.StorageRoot, []string{"-x", "a b", "日"}},
	} {
		dir := mk(c.files...)
		l, err := roofmt.Find(context.Background(), dir)
		var ids []string
		for _, f := range l.Tasks {
			ids = append(ids, f.ID)
		}
		want := c.ids
		if len(want) == 1 && want[0] == "" {
			want = []string{filepath.Base(dir)}
		}
		if err != nil || l.Shape != c.shape || !cmp.Equal(ids, want) {
			t.Errorf("%s: %v %q (%v)", c.name, l.Shape, ids, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := roofmt.Find(ctx, mk("tasks/a/")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A link among the tasks is followed to see what it is. One that can not be followed may lead to a disk that is not there
// now: it is listed, and reading it says why it can not be read.
func TestFindFollowsLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	mkdirs(t, filepath.Join(dir, "tasks"))
	write(t, outside, map[string]string{"file": "x"})
	for name, to := range map[string]string{"there": outside, "dead": filepath.Join(outside, "none"), "itself": filepath.Join(dir, "tasks", "itself"), "file": filepath.Join(outside, "file")} {
		if err := os.Symlink(to, filepath.Join(dir, "tasks", name)); err != nil {
			t.Skip(err)
		}
	}
	l, err := roofmt.Find(context.Background(), dir)
	var got []string
	for _, f := range l.Tasks {
		got = append(got, f.ID)
	}
	if want := []string{"dead", "itself", "there"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want no error and slices.Equal(got, want)", got, err)
	}
	for _, id := range []string{"dead", "itself"} {
		if _, err := roofmt.Read(context.Background(), filepath.Join(dir, "tasks", id)); err == nil {
			t.Errorf("%s can be read", id)
		}
	}
}

// A storage whose tasks lie behind a link to a disk that is not mounted has not lost them.
func TestTasksBehindADeadLink(t *testing.T) {
	home := t.TempDir()
	storage := filepath.Join(home, ".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	mkdirs(t, storage)
	if err := os.Symlink(filepath.Join(home, "usb", "tasks"), filepath.Join(storage, "tasks")); err != nil {
		t.Skip(err)
	}
	if l, err := roofmt.Find(context.Background(), storage); !errors.Is(err, roofmt.ErrUnreachable) || l.TasksDir != filepath.Join(storage, "tasks") {
		t.Errorf("got %+v (%v), want errors.Is(err, roofmt.ErrUnreachable) and l.TasksDir = filepath.Join(storage, \"tasks\")",
			l, err)
	}
	// The same for the storage itself.
	other := filepath.Join(home, ".config", "Cursor", "User", "globalStorage")
	mkdirs(t, other)
	if err := os.Symlink(filepath.Join(home, "usb"), filepath.Join(other, "saoudrizwan.claude-dev")); err != nil {
		t.Skip(err)
	}
	var reach []roofmt.Reach
	for _, s := range roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home}) {
		reach = append(reach, s.Reach)
	}
	if want := []roofmt.Reach{roofmt.Reachable, roofmt.Unreachable}; !slices.Equal(reach, want) {
		t.Errorf("got %v, want slices.Equal(reach, want)", reach)
	}
}
