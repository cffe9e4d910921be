package reach

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestAllowed(t *testing.T) {
	from := []string{"https://git.example.org/team/", "git@git.example.org:team/", "ssh://git@git.example.org:2222/", "/srv/git/"}
	for address, want := range map[string]bool{
		"https://git.example.org/team/app.git":               true,
		"https://git.example.org/team/sub/app":               true,
		"git@git.example.org:team/app.git":                   true,
		"ssh://git@git.example.org:2222/app.git":             true,
		"/srv/git/app.git":                                   true,
		"https://git.example.org/team/":                      false,
		"https://git.example.org/team/../other/app.git":      false,
		"https://git.example.org/team/%2e%2e/app.git":        false,
		"https://git.example.org/team//app.git":              false,
		"https://git.example.org/team/.hidden":               false,
		"https://git.example.org/team/app.git?x=1":           false,
		"https://git.example.org/team/app.git -x":            false,
		"https://git.example.org/team/a\nb":                  false,
		"https://git.example.org/teams/app.git":              false,
		"https://git.example.org.evil.net/team/app.git":      false,
		"https://me:key@git.example.org/team/app.git":        false,
		"http://git.example.org/team/app.git":                false,
		"ext::sh -c git.example.org/team/":                   false,
		"file:///srv/git/app.git":                            false,
		"/srv/git/../etc":                                    false,
		"--upload-pack=x https://git.example.org/team/a.git": false,
	} {
		if got := Allowed(from, address); got != want {
			t.Errorf("%q: got %v, want %v", address, got, want)
		}
	}
}

func TestCloningIsChecked(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]Cloning{
		"no folder":                {From: []string{"https://git.example.org/"}},
		"no remote":                {Dir: dir},
		"a relative folder":        {Dir: "clones", From: []string{"https://git.example.org/"}},
		"no slash at the end":      {Dir: dir, From: []string{"https://git.example.org/team"}},
		"every server":             {Dir: dir, From: []string{"https://"}},
		"without TLS":              {Dir: dir, From: []string{"http://git.example.org/"}},
		"a program":                {Dir: dir, From: []string{"ext::sh/"}},
		"an option":                {Dir: dir, From: []string{"-x/"}},
		"every folder of the disk": {Dir: dir, From: []string{"/"}},
		"one of several":           {Dir: dir, From: []string{"https://git.example.org/", ""}},
	} {
		if _, err := New("a", Options{Clones: c}); err == nil || !strings.Contains(err.Error(), "clone") {
			t.Errorf("%s: got %v, want an error about clones", name, err)
		}
	}
	fixture.Must[*Server](t)(New("a", Options{Clones: Cloning{Dir: filepath.Join(dir, "new"), From: []string{"https://git.example.org/"}}}))
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || !info.IsDir() {
		t.Errorf("the folder for clones: got %v, want it made", err)
	}
}

// cloner is a server that clones from the folder of a remote, and a task's workspace with one commit there.
func cloner(t *testing.T, running ...api.GroupServer) (*Server, api.FolderID) {
	t.Helper()
	top := fixture.Must[string](t)(filepath.EvalSymlinks(t.TempDir()))
	work, remote := filepath.Join(top, "work"), filepath.Join(top, "git", "app.git")
	fixture.NoError(t, os.MkdirAll(filepath.Join(work, "in"), 0o755))
	fixture.NoError(t, os.WriteFile(filepath.Join(work, "in", "a.txt"), []byte("a"), 0o600))
	fixture.NoError(t, os.Symlink("in", filepath.Join(work, "link")))
	fixture.Git(t, work, "init", "-q", "-b", "main")
	fixture.Git(t, work, "add", "-A")
	fixture.Git(t, work, "commit", "-qm", "first")
	fixture.Git(t, top, "clone", "-q", "--bare", work, remote)
	s := fixture.Must[*Server](t)(New("b", Options{
		Clones:  Cloning{Dir: filepath.Join(top, "clones"), From: []string{filepath.Join(top, "git") + "/"}},
		Running: func(context.Context) ([]api.GroupServer, error) { return running, nil },
	}))
	return s, api.FolderID{
		Server: "a",
		Inode:  "of another machine",
		Tree: &api.WorkTree{
			Remote: remote,
			Commit: fixture.Git(t, work, "rev-parse", "HEAD"),
			Branch: "main",
			Store:  "work-0123456789abcdef",
		},
	}
}

func TestToClone(t *testing.T) {
	at := filepath.Join(t.TempDir(), "work")
	for name, c := range map[string]struct {
		running []api.GroupServer
		change  func(*api.FolderID)
		clone   bool
		want    string // of the error
	}{
		"no server has it":         {clone: true},
		"its server runs":          {running: []api.GroupServer{{ID: "a"}}, want: "a folder of another server"},
		"another server runs":      {running: []api.GroupServer{{ID: "c"}}, clone: true},
		"not recorded":             {change: func(p *api.FolderID) { p.Tree = nil }, want: "a folder of another server"},
		"a problem":                {change: func(p *api.FolderID) { p.Tree = &api.WorkTree{Problem: "it has submodules"} }, want: "it cannot be cloned: it has submodules"},
		"a remote of someone else": {change: func(p *api.FolderID) { p.Tree.Remote = "https://example.net/a" }, want: "servers do not clone from https://example.net/a"},
		"a shared folder":          {change: func(p *api.FolderID) { p.Shared, p.Mark = "work", "x" }, want: "the shared folder work"},
		"this server's own":        {change: func(p *api.FolderID) { p.Server = "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := cloner(t, c.running...)
			if c.change != nil {
				c.change(&p)
			}
			got, err := s.ToClone(t.Context(), at, p, true)
			if got != c.clone || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want %v, %q", got, err, c.clone, c.want)
			}
			if got := Unreached(p, []api.GroupServer{{ID: "b", ClonesFrom: s.ClonesFrom()}}); (got == "") != (c.clone || c.want == "" || len(c.running) > 0) {
				t.Errorf("why no server continues it: got %q", got)
			}
		})
	}
}

// A clone gets its place only once it is whole, keeps the name of the task's store, and is made again when it was removed.
func TestCloneIsPlaced(t *testing.T) {
	s, p := cloner(t)
	p.Tree.Below = "in"
	list := func() (names []string) {
		for _, d := range fixture.Must[[]os.DirEntry](t)(os.ReadDir(s.clones.Dir)) {
			names = append(names, d.Name())
		}
		return names
	}
	if _, _, err := s.Clone(t.Context(), "task", p, func(string) error { return errors.New("no room") }); err == nil || len(list()) != 0 {
		t.Errorf("files that cannot be put back: got %v and %q, want an error and no clone", err, list())
	}
	fill := func(root string) error { return os.WriteFile(filepath.Join(root, "b.txt"), []byte("b"), 0o600) }
	at, undo, err := s.Clone(t.Context(), "task", p, fill)
	fixture.NoError(t, err)
	if want := filepath.Join(s.clones.Dir, "task", "tree", "in"); at != want {
		t.Errorf("path: got %s, want %s", at, want)
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Errorf("%s in the clone: %v", name, err)
		}
	}
	id := s.Identify(at)
	id.Tree = p.Tree
	if id.Store != p.Tree.Store {
		t.Errorf("store of the clone: got %q, want %q", id.Store, p.Tree.Store)
	}
	for text, want := range map[string]string{`{"store":"../../x-0123456789abcdef"}`: "", `{`: "", `{"store":"work-0123456789abcdef"}`: p.Tree.Store} {
		fixture.NoError(t, os.WriteFile(filepath.Join(s.clones.Dir, "task", originName), []byte(text), 0o600))
		if got := s.Identify(at).Store; got != want {
			t.Errorf("the store that %s names: got %q, want %q", text, got, want)
		}
	}
	second, undoSecond, err := s.Clone(t.Context(), "task", p, fill)
	if err != nil || second == at {
		t.Errorf("a second clone: got %s, %v, want another place", second, err)
	}
	undoSecond()
	if clone, err := s.ToClone(t.Context(), at, id, true); clone || err != nil {
		t.Errorf("a clone that is there: got %v, %v, want it used", clone, err)
	}
	undo()
	if clone, err := s.ToClone(t.Context(), at, id, true); !clone || err != nil || len(list()) != 0 {
		t.Errorf("a clone that was removed: got %v, %v and %q, want it made again", clone, err, list())
	}
	for below, want := range map[string]string{
		"link":       "is a link",
		"..":         "no path in it",
		"../../task": "no path in it",
		"none":       "has no folder none",
	} {
		p.Tree.Below = below
		if at, _, err := s.Clone(t.Context(), "task", p, fill); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the workspace %s: got %s, %v, want %q", below, at, err, want)
		}
	}
	left := filepath.Join(s.clones.Dir, tempPrefix+"x")
	fixture.NoError(t, os.Mkdir(left, 0o700))
	for after, want := range map[time.Duration]int{0: 1, 2 * tempAge: 0} {
		fixture.NoError(t, os.MkdirAll(left, 0o700))
		c := s.clones
		fixture.NoError(t, c.open(time.Now().Add(after)))
		if got := list(); len(got) != want {
			t.Errorf("what a process left %s ago: got %q, want %d", after, got, want)
		}
	}
}

// A server that is away for a moment keeps its tasks, unless a person asks.
func TestToCloneWaits(t *testing.T) {
	running := []api.GroupServer{{ID: "a"}}
	s, p := cloner(t)
	s.running = func(context.Context) ([]api.GroupServer, error) { return running, nil }
	s.clones.After = 50 * time.Millisecond
	at := filepath.Join(t.TempDir(), "work")
	wants := func(when string, asked, want bool) {
		t.Helper()
		if got, err := s.ToClone(t.Context(), at, p, asked); got != want || (err == nil) != want {
			t.Errorf("%s: got %v, %v, want %v", when, got, err, want)
		}
	}
	wants("its server runs", true, false)
	running = nil
	wants("it has just ended, and a person asks", true, true)
	wants("it has just ended", false, false)
	running = []api.GroupServer{{ID: "a"}}
	time.Sleep(2 * s.clones.After)
	wants("it is back", false, false)
	running = nil
	wants("it has ended again", false, false)
	time.Sleep(2 * s.clones.After)
	wants("it stays away", false, true)
}
