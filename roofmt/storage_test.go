package roofmt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
)

func mkdirs(t *testing.T, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	root := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	tasks := filepath.Join(root, "tasks")
	mkdirs(t, filepath.Join(tasks, "a1"), filepath.Join(tasks, "ghost"), filepath.Join(tasks, "odd name"), filepath.Join(tasks, ".hidden"), filepath.Join(tasks, "_x"), filepath.Join(root, "cache"))
	write(t, filepath.Join(tasks, "a1"), map[string]string{roofmt.UIName: `[]`})
	write(t, tasks, map[string]string{roofmt.IndexName: `{}`})
	want := []roofmt.Found{{ID: "a1", Dir: filepath.Join(tasks, "a1")}, {ID: "ghost", Dir: filepath.Join(tasks, "ghost")}, {ID: "odd name", Dir: filepath.Join(tasks, "odd name")}}
	for _, c := range []struct {
		dir   string
		shape roofmt.Shape
		tasks []roofmt.Found
	}{
		{root, roofmt.StorageRoot, want}, {tasks, roofmt.TasksDir, want}, {filepath.Join(tasks, "a1"), roofmt.TaskFolder, want[:1]}, {filepath.Join(root, "cache"), roofmt.NoTasks, nil},
	} {
		l, err := roofmt.Find(context.Background(), c.dir)
		if err != nil || l.Shape != c.shape || l.Tool != roofmt.Roo || !cmp.Equal(l.Tasks, c.tasks) {
			t.Errorf("%s: %v, %+v (%v)", c.dir, l.Shape, l.Tasks, err)
		}
	}
	if _, err := roofmt.Find(context.Background(), filepath.Join(root, "none")); !errors.Is(err, roofmt.ErrUnreachable) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// A folder whose name begins with "." or "_" is a task where a task's file lies in it, and not
// otherwise; those in which Roost makes tasks are none, and neither is Roo's index.
func TestFindUnusualNames(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks")
	files := map[string]string{
		".hidden": roofmt.UIName, "_old": roofmt.APIName, ".fork-x": roofmt.UIName, ".fork--1": roofmt.UIName, "..": "", "_left": ".ui_messages.json.bak_200_abc.tmp",
		".fork-0199-abc-123": roofmt.UIName, ".import": roofmt.UIName, ".empty": "", "_notes": "readme.md", ".git": "HEAD", "_index.json": "",
	}
	for name, file := range files {
		mkdirs(t, filepath.Join(tasks, name))
		if file != "" {
			write(t, filepath.Join(tasks, name), map[string]string{file: uiList(1)})
		}
	}
	mkdirs(t, filepath.Join(tasks, ".import", "0199"))
	write(t, filepath.Join(tasks, ".import", "0199"), map[string]string{roofmt.UIName: uiList(1)})
	l, err := roofmt.Find(context.Background(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range l.Tasks {
		if api.ValidTaskID(f.ID) {
			t.Errorf("%s may be opened by its name", f.ID)
		}
		got = append(got, f.ID)
	}
	if want := []string{".fork--1", ".fork-x", ".hidden", "_left", "_old"}; !cmp.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A storage that is named by a link is the same tool's: what may be written there
// depends on it.
func TestToolThroughALink(t *testing.T) {
	root := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	mkdirs(t, filepath.Join(root, "tasks", "1"))
	write(t, filepath.Join(root, "tasks", "1"), map[string]string{roofmt.UIName: uiList(1)})
	link := filepath.Join(t.TempDir(), "tasks-of-mine")
	if err := os.Symlink(root, link); err != nil {
		t.Skip(err)
	}
	if l, err := roofmt.Find(context.Background(), link); err != nil || l.Tool != roofmt.Cline {
		t.Errorf("got %+v (%v), want no error and l.Tool = roofmt.Cline", l, err)
	}
	if tool := read(t, filepath.Join(link, "tasks", "1")).Tool; tool != roofmt.Cline {
		t.Errorf("got %q, want roofmt.Cline", tool)
	}
}

func TestFindAnyDirectoryOfFolders(t *testing.T) {
	dir := t.TempDir()
	mkdirs(t, filepath.Join(dir, "x"))
	write(t, filepath.Join(dir, "x"), map[string]string{".api_conversation_history.json.bak_1_a.tmp": `[]`})
	if l, err := roofmt.Find(context.Background(), dir); err != nil || l.Shape != roofmt.TasksDir || len(l.Tasks) != 1 {
		t.Errorf("got %+v (%v), want no error and l.Shape = roofmt.TasksDir and len(l.Tasks) = 1", l, err)
	}
}

func TestDefaultStorages(t *testing.T) {
	home := t.TempDir()
	other := filepath.Join(home, "elsewhere")
	for goos, config := range map[string]string{"linux": ".config", "darwin": "Library/Application Support", "windows": "AppData/Roaming"} {
		roo := filepath.Join(home, filepath.FromSlash(config), "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
		fork := filepath.Join(home, filepath.FromSlash(config), "SomeFork", "User", "globalStorage", "saoudrizwan.claude-dev")
		server := filepath.Join(home, ".vscode-server", "data", "User", "globalStorage", "kilocode.kilo-code")
		mkdirs(t, roo, fork, server, other)
		list := roofmt.DefaultStorages(roofmt.Env{GOOS: goos, Home: home, Getenv: func(k string) string {
			return map[string]string{"ROO_GLOBAL_STORAGE_PATH": other}[k]
		}})
		got := map[string]roofmt.Tool{}
		for _, s := range list {
			if s.Reach != roofmt.Reachable {
				t.Errorf("%s: got %+v, want s.Reach = roofmt.Reachable", goos, s)
			}
			got[s.Dir] = s.Tool
		}
		if want := map[string]roofmt.Tool{roo: roofmt.Roo, fork: roofmt.Cline, server: roofmt.Kilo, other: roofmt.Roo}; !cmp.Equal(got, want) {
			t.Errorf("%s: %s", goos, cmp.Diff(want, got))
		}
	}
}

func TestUnreachableIsNotEmpty(t *testing.T) {
	home := t.TempDir()
	// A file where a directory should be can not be listed, whoever asks (rights do not stop root).
	mkdirs(t, filepath.Join(home, ".config", "Code", "User", "globalStorage"))
	bad := filepath.Join(home, ".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	write(t, filepath.Dir(bad), map[string]string{filepath.Base(bad): "x"})
	list := roofmt.DefaultStorages(roofmt.Env{GOOS: "linux", Home: home})
	if len(list) != 1 || list[0].Reach != roofmt.Unreachable {
		t.Errorf("got %+v, want len(list) = 1 and list[0].Reach = roofmt.Unreachable", list)
	}
	if l, err := roofmt.Find(context.Background(), bad); !errors.Is(err, roofmt.ErrUnreachable) || len(l.Tasks) != 0 {
		t.Errorf("got %+v (%v), want errors.Is(err, roofmt.ErrUnreachable) and len(l.Tasks) = 0", l, err)
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"1728239012345": true, "0199f0a2-7c1b-7def-8a3b-0123456789ab": true, "1776_ab3xz": true, "a.b": true, strings.Repeat("a", 128): true,
		"": false, ".": false, "..": false, "../x": false, "a/b": false, `a\b`: false, "_x": false, "-x": false, "a b": false, "a\n": false, strings.Repeat("a", 129): false,
	} {
		if api.ValidTaskID(id) != want {
			t.Errorf("ValidID(%q) = %v", id, !want)
		}
	}
}

func TestIndex(t *testing.T) {
	x, err := roofmt.ParseIndex([]byte(`{"version":1,"updatedAt":5,"entries":[{"id":"a","ts":1},{"odd":true},{"id":"b","ts":3,"new":[1]}],"more":7}`))
	if err != nil {
		t.Fatal(err)
	}
	x.Remove("a")
	x.Entries = append(x.Entries, []byte(`{"id":"c","ts":2}`), []byte(`{"id":"a","ts":9}`))
	got, err := x.Bytes(8)
	if want := `{"version":1,"updatedAt":8,"entries":[{"id":"a","ts":9},{"id":"b","ts":3,"new":[1]},{"id":"c","ts":2},{"odd":true}],"more":7}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want no error and string(got) = %v", got, err, want)
	}
	if !x.Remove("b") || x.Remove("b") {
		t.Error("Remove")
	}
	for _, bad := range []string{``, `[]`, `{"version":2,"entries":[]}`, `{"version":1}`} {
		if _, err := roofmt.ParseIndex([]byte(bad)); !errors.Is(err, roofmt.ErrIndex) {
			t.Errorf("%s: got %v, want errors.Is(err, roofmt.ErrIndex)", bad, err)
		}
	}
	dir := t.TempDir()
	if x, err := roofmt.ReadIndex(dir); err != nil || len(x.Entries) != 0 || x.Print.Exists {
		t.Errorf("missing: %+v (%v)", x, err)
	}
}

// A folder of task folders may have an empty one that is called tasks among them: a
// copy that somebody made by hand. None of the others is missed for it.
func TestAnEmptyTasksFolderHidesNothing(t *testing.T) {
	dir := t.TempDir()
	mkdirs(t, filepath.Join(dir, "tasks"), filepath.Join(dir, "a1"), filepath.Join(dir, "ghost"))
	write(t, filepath.Join(dir, "tasks"), map[string]string{roofmt.IndexName: `{}`})
	write(t, filepath.Join(dir, "a1"), map[string]string{roofmt.UIName: uiList(1)})
	l, err := roofmt.Find(context.Background(), dir)
	if err != nil || l.Shape != roofmt.TasksDir || len(l.Tasks) != 2 || l.Tasks[0].ID != "a1" {
		t.Errorf("got %+v (%v), want no error and l.Shape = roofmt.TasksDir and len(l.Tasks) = 2 and l.Tasks[0].ID = \"a1\"",
			l, err)
	}
	mkdirs(t, filepath.Join(dir, "tasks", "b2"))
	if l, err = roofmt.Find(context.Background(), dir); err != nil || l.Shape != roofmt.StorageRoot || len(l.Tasks) != 1 {
		t.Errorf("with a task in it: %+v (%v)", l, err)
	}
}
