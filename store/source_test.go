package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func TestSourceNames(t *testing.T) {
	base := t.TempDir()
	seen := map[string]string{}
	for _, dir := range []string{
		"rooveterinaryinc.roo-cline/tasks", "a/rooveterinaryinc.roo-cline/tasks", "plain", "with blanks & more/tasks", "日本/tasks", "..dots../tasks", "tasks",
	} {
		path := filepath.Join(base, filepath.FromSlash(dir))
		fixture.NoError(t, os.MkdirAll(path, 0o700))
		name := SourceName(path)
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{6}$`).MatchString(name) {
			t.Errorf("%s: %q cannot be a folder's name everywhere", dir, name)
		}
		if seen[name] != "" {
			t.Errorf("%s and %s are both %q", dir, seen[name], name)
		}
		seen[name] = dir
		if again := SourceName(path + string(filepath.Separator)); again != name {
			t.Errorf("%s: %q and %q", dir, name, again)
		}
		link := filepath.Join(t.TempDir(), "link")
		fixture.NoError(t, os.Symlink(path, link))
		if through := SourceName(link); through != name {
			t.Errorf("%s through a link: %q, not %q", dir, through, name)
		}
	}
}

// A storage is listed once, whatever it is called, and our own root is no source
// of other tools' tasks.
func TestEachPlaceOnce(t *testing.T) {
	storage, dir := rooStorage(t, "aaa-1")
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	link := filepath.Join(t.TempDir(), "link")
	fixture.NoError(t, os.Symlink(storage, link))
	for _, sources := range [][]string{
		{storage, storage}, {link, storage}, {storage, filepath.Join(storage, "tasks")}, {dir, storage, dir}, {root, storage}, {filepath.Join(root, "tasks", "mine"), storage},
	} {
		s := open(t, root, sources...)
		var got []string
		for _, r := range fixture.Must[[]Ref](t)(s.Refs(context.Background())) {
			got = append(got, r.Tool+" "+r.ID)
			if r.Foreign() == (r.ID == "mine") {
				t.Errorf("%v: got %+v, want r.Foreign() != (r.ID == \"mine\")", sources, r)
			}
		}
		if d := cmp.Diff([]string{"roost mine", "roo aaa-1"}, got); d != "" {
			t.Errorf("%v: got %s, want d = \"\"", sources, d)
		}
	}
}

func TestFoundSources(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for _, name := range []string{"ROO_GLOBAL_STORAGE_PATH", "API_STORAGE_ROOT", "CLINE_DATA_DIR", "CLINE_DIR", "WSL_DISTRO_NAME"} {
		t.Setenv(name, "")
	}
	put := func(id string, parts ...string) {
		write(t, filepath.Join(append(append([]string{home}, parts...), "tasks", id)...), roofmt.UIName, array(fourRows...))
	}
	put("roo-1", ".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	put("cline-1", ".config", "Cursor", "User", "globalStorage", "saoudrizwan.claude-dev")
	put("kilo-1", ".vscode-server", "data", "User", "globalStorage", "kilocode.kilo-code")
	put("moved-1", "my tasks")
	write(t, filepath.Join(home, ".config", "Code", "User"), "settings.json", `{ // moved
		"roo-cline.customStoragePath": "`+filepath.Join(home, "my tasks")+`", }`)
	fixture.NoError(t, os.MkdirAll(filepath.Join(home, ".agentz", "tasks"), 0o700)) // found, but nothing in it
	s := fixture.Must[*Store](t)(Open(Options{Root: filepath.Join(home, "roost"), AutoSources: true}))
	var got []string
	l := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
	for _, item := range l.Items {
		got = append(got, item.Tool+" "+item.ID)
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"cline cline-1", "kilo kilo-1", "roo moved-1", "roo roo-1"}, got); d != "" {
		t.Error(d)
	}
	if len(l.Sources) != 5 {
		t.Errorf("got %+v, want len(l.Sources) = 5", l.Sources)
	}
	// Asked not to look, it does not.
	s = fixture.Must[*Store](t)(Open(Options{Root: filepath.Join(home, "roost")}))
	if l := fixture.Must[Listing](t)(s.List(context.Background(), Filter{})); len(l.Items) != 0 {
		t.Errorf("got %+v, want len(l.Items) = 0", l.Items)
	}
}

// What was continued stays to be found while its storage cannot be looked into.
func TestUnreachableStorage(t *testing.T) {
	storage, _ := rooStorage(t, "aaa-1")
	write(t, filepath.Join(storage, "tasks", "aaa-2"), roofmt.UIName, array(fourRows...))
	root := t.TempDir()
	s := open(t, root, storage)
	k := own(t, s, "aaa-1").Task
	commit(t, k, task.UI, uiRow(9, "on"))
	want := rows(k.State())
	closeTask(t, k)
	away := storage + ".away"
	fixture.NoError(t, os.Rename(storage, away))
	l := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
	if len(l.Items) != 1 || l.Items[0].ID != "aaa-1" || !strings.HasPrefix(l.Sources[1].State, "unreachable") {
		t.Errorf(`got %+v %+v, want len(l.Items) = 1 and l.Items[0].ID = "aaa-1" and strings.HasPrefix(l.Sources[1].State, "unreachable")`,
			l.Items, l.Sources)
	}
	if v := view(t, s, "aaa-1"); rows(v.State) != want {
		t.Errorf("got %s, want rows(v.State) = %v", rows(v.State), want)
	}
	fixture.NoError(t, os.Rename(away, storage))
	o := own(t, s, "aaa-1")
	if o.Gone || len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
		t.Errorf("back again: %+v", o)
	}
	closeTask(t, o.Task)
}

// What cannot be taken over is refused before anything is made.
func TestOwnRefuses(t *testing.T) {
	ctx := context.Background()
	storage, _ := rooStorage(t, "fine")
	write(t, filepath.Join(storage, "tasks", "odd name"), roofmt.UIName, array(fourRows...))
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, storage)
	odd := foreignRef(t, s, "odd name")
	if _, err := s.Own(ctx, odd); err == nil || !strings.Contains(err.Error(), "cannot be a task id") {
		t.Errorf("odd name: %v", err)
	}
	if v := fixture.Must[*View](t)(s.Read(ctx, odd)); len(v.State.UI()) != 4 {
		t.Errorf("it cannot be read: %d rows", len(v.State.UI()))
	} else {
		fixture.NoError(t, v.Close())
	}
	fine := foreignRef(t, s, "fine")
	gone := fine
	gone.ID, gone.Dir, gone.Log = "gone", filepath.Join(storage, "tasks", "gone"), filepath.Join(root, "adopted", gone.Source, "gone")
	if _, err := s.Own(ctx, gone); !errors.Is(err, ErrNotFound) {
		t.Errorf("gone: %v", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := s.Own(stopped, fine); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left := fixture.Must[[]string](t)(names(filepath.Join(root, "adopted"))); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if got := fixture.Must[[]string](t)(names(s.TasksDir())); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}
