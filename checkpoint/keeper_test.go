package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// bench is a workspace with a keeper, in scratch folders.
type bench struct {
	testing.TB
	root string // of the workspace
	data string // <root>/checkpoints
	far  Stores // nil: contents are in data
	k    *Keeper
}

func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &bench{TB: t, root: filepath.Join(base, "ws"), data: filepath.Join(base, "roost", "checkpoints")}
	l.must(os.Mkdir(l.root, 0o777))
	l.k = l.open(o)
	return l
}

// open is another keeper of the same workspace, as another process has it.
func (l *bench) open(o Options) *Keeper {
	l.Helper()
	w, err := workspace.Open(l.root)
	l.must(err)
	if o.Home == "" {
		o.Home = filepath.Join(filepath.Dir(l.root), "home")
	}
	k, err := Open(Place{Dir: l.data, Stores: l.far}, w, o)
	l.must(err)
	l.Cleanup(func() { _ = k.Close() })
	return k
}

func (l *bench) must(err error) {
	if err != nil {
		l.Helper()
		l.Fatal(err)
	}
}

func (l *bench) at(p string) string { return filepath.Join(l.root, filepath.FromSlash(p)) }

// write makes a file with its folders.
func (l *bench) write(p, text string) {
	l.Helper()
	l.must(os.MkdirAll(filepath.Dir(l.at(p)), 0o777))
	l.must(os.WriteFile(l.at(p), []byte(text), 0o644))
}

func (l *bench) remove(p string) {
	l.Helper()
	l.must(os.RemoveAll(l.at(p)))
}

func (l *bench) survey() *Survey {
	l.Helper()
	s, err := l.k.Survey(l.Context())
	l.must(err)
	l.Cleanup(s.Close)
	return s
}

// during gives what a survey says of what do changes, by path.
func (l *bench) during(do func()) map[string]task.CheckpointFile {
	l.Helper()
	s := l.survey()
	do()
	return l.changes(s)
}

func (l *bench) changes(s *Survey) map[string]task.CheckpointFile {
	l.Helper()
	list, err := s.Changes(l.Context())
	l.must(err)
	out := map[string]task.CheckpointFile{}
	for i, f := range list {
		if i > 0 && list[i-1].Path >= f.Path {
			l.Errorf("%s comes after %s", f.Path, list[i-1].Path)
		}
		out[f.Path] = f
	}
	return out
}

// content is what the store has of a version; "(not kept)" when it has nothing.
func (l *bench) content(v api.FileVersion) string {
	l.Helper()
	data, err := l.k.Content(l.Context(), v, 0)
	if errors.Is(err, ErrUnkept) {
		return "(not kept)"
	}
	l.must(err)
	return string(data)
}

// wantChange checks one change by its contents; "" stands for nothing there.
func (l *bench) wantChange(got map[string]task.CheckpointFile, p, was, now string) {
	l.Helper()
	f, ok := got[p]
	if !ok {
		l.Errorf("%s: no change is told", p)
		return
	}
	text := func(v api.FileVersion) string {
		if v.Kind == api.KindGone {
			return ""
		}
		return l.content(v)
	}
	if a, b := text(*f.Was), text(f.Now); a != was || b != now {
		l.Errorf("%s: was %q, now %q; want %q, %q", p, a, b, was, now)
	}
}

func TestRefusals(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"home/project", "data/checkpoints/x", "other"} {
		if err := os.MkdirAll(filepath.Join(base, filepath.FromSlash(dir)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, ws, data, why string }{
		{"the root of the disk", "/", "data", "root of a disk"},
		{"the home folder", "home", "data", "home folder"},
		{"a folder above the home folder", ".", "data", "home folder"},
		{"a folder that holds the data", "other", "other/roost", "holds Roost's own data"},
		{"the data itself", "data", "data", "own data"},
		{"a folder in the data", "data/checkpoints", "data", "is inside Roost's own data"},
		{"a project in the home folder", "home/project", "data", ""},
		{"a project beside the data", "home/project", "home/.roost", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := c.ws
			if ws != "/" {
				ws = filepath.Join(base, ws)
			}
			w, err := workspace.Open(ws)
			if err != nil {
				t.Fatal(err)
			}
			k, err := Open(Place{Dir: filepath.Join(base, c.data, "checkpoints")}, w, Options{Home: filepath.Join(base, "home")})
			if c.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = k.Close()
				return
			}
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("got %v, want a refusal that says %q", err, c.why)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	a, b := NameOf("/home/x/my project"), NameOf("/home/y/my project")
	if !strings.HasPrefix(a, "my_project-") || len(a) != len("my_project-")+16 {
		t.Errorf("the name is %q", a)
	}
	if a == b {
		t.Error("two workspaces of one name share a store")
	}
	if n := NameOf("/" + strings.Repeat("ä", 300)); len(n) > 60 || strings.ContainsFunc(n, func(r rune) bool { return r > 0x7E }) {
		t.Errorf("the name is %q", n)
	}
}
