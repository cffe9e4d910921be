package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// dirs are two servers' paths of one shared folder, and of another folder.
func dirs(t *testing.T) (here, there, other string) {
	t.Helper()
	top := fixture.Must[string](t)(filepath.EvalSymlinks(t.TempDir()))
	here, there, other = filepath.Join(top, "here"), filepath.Join(top, "there"), filepath.Join(top, "other")
	for _, dir := range []string{filepath.Join(here, "project"), filepath.Join(other, "project")} {
		fixture.NoError(t, os.MkdirAll(dir, 0o755))
	}
	fixture.NoError(t, os.Symlink(here, there))
	return here, there, other
}

func serving(t *testing.T, id string, shared ...string) *Server {
	t.Helper()
	return fixture.Must[*Server](t)(New(id, Options{Shared: shared}))
}

func TestFind(t *testing.T) {
	here, there, other := dirs(t)
	project := filepath.Join(here, "project")
	a := serving(t, "a", "work="+here)
	shared := a.Identify(project)
	alone := serving(t, "a").Identify(project)
	with := func(p api.FolderID, change func(*api.FolderID)) api.FolderID {
		change(&p)
		return p
	}
	elsewhere := with(alone, func(p *api.FolderID) { p.Inode = "another machine" })
	for _, c := range []struct {
		name   string
		on     *Server
		folder api.FolderID
		want   string // a path, or words of the error
	}{
		{"no group", nil, api.FolderID{}, project},
		{"the shared folder at another path", serving(t, "b", "work="+there), shared, project},
		{"no shared folder", serving(t, "b"), shared, "the shared folder work, which this server does not have"},
		{"another name", serving(t, "b", "else="+there), shared, "the shared folder work, which this server does not have"},
		{"another folder of the name", serving(t, "b", "work="+other), shared, "is another folder"},
		{"the same server that shares it no more", serving(t, "a"), shared, "which this server does not have"},
		{"a way out", serving(t, "b", "work="+there), with(shared, func(p *api.FolderID) { p.Below = "../other/project" }), "no path in the shared folder"},
		{"an absolute path", serving(t, "b", "work="+there), with(shared, func(p *api.FolderID) { p.Below = other }), "no path in the shared folder"},
		{"a folder that is gone", serving(t, "b", "work="+there), with(shared, func(p *api.FolderID) { p.Below = "gone" }), "has no folder gone"},
		{"the same server", serving(t, "a"), elsewhere, project},
		{"another server of the machine", serving(t, "b"), alone, project},
		{"an equal path on another machine", serving(t, "b"), elsewhere, "a folder of another server"},
		{"not recorded", serving(t, "b"), api.FolderID{}, "nothing records"},
		{"no folder and no server", serving(t, "b"), api.FolderID{Inode: "x"}, "a folder of another server"},
	} {
		got, err := c.on.Find(project, c.folder)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && !(err != nil && strings.Contains(got, c.want)) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if SharedName(shared) == "" || SharedName(shared) != SharedName(serving(t, "b", "work="+there).Identify(project)) {
		t.Errorf("the name for the files of a shared folder: got %q, want one name on each server", SharedName(shared))
	}
}

// A link in a shared folder leads a task to no other folder of a server, and a folder that is not mounted is none.
func TestFindRefusesWhatIsNotThere(t *testing.T) {
	here, there, other := dirs(t)
	project := filepath.Join(here, "project")
	a, b := serving(t, "a", "work="+here), serving(t, "b", "work="+there)
	p := a.Identify(project)
	fixture.NoError(t, os.Rename(project, project+"-away"))
	fixture.NoError(t, os.Symlink(filepath.Join(other, "project"), project))
	if got, err := b.Find(project, p); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link to another folder: got %q %v, want it refused", got, err)
	}
	if err := b.Check(filepath.Join(other, "project"), p); err == nil {
		t.Error("a workspace that was opened through a link: got no error, want it refused")
	}
	fixture.NoError(t, os.Remove(project))
	fixture.NoError(t, os.Rename(project+"-away", project))
	fixture.NoError(t, b.Check(project, p))
	fixture.NoError(t, os.Rename(filepath.Join(here, markName), filepath.Join(here, "away")))
	if got, err := b.Find(project, p); err == nil || !strings.Contains(err.Error(), "not mounted") || len(b.Folders()) != 0 {
		t.Errorf("without a mark: got %q %v, folders %v, want it refused and not announced", got, err, b.Folders())
	}
	if got := a.Identify(project).Shared; got != "" {
		t.Errorf("a workspace in a folder without a mark: got the shared folder %q, want none", got)
	}
}

func TestNewRefuses(t *testing.T) {
	here, _, other := dirs(t)
	for _, shared := range [][]string{
		{"work"}, {"=" + here}, {"../work=" + here}, {"-c=" + here}, {"work=relative"}, {"work=" + here + "/gone"}, {"work=" + here, "work=" + other},
	} {
		if _, err := New("a", Options{Shared: shared}); err == nil || !strings.Contains(err.Error(), "share the folder") {
			t.Errorf("%q: got %v, want it refused", shared, err)
		}
	}
}

func TestUnreached(t *testing.T) {
	here, _, _ := dirs(t)
	a := serving(t, "a", "work="+here)
	p := a.Identify(here)
	as := func(id string, folders ...api.SharedFolder) []api.GroupServer {
		return []api.GroupServer{{ID: id, Folders: folders}}
	}
	for _, c := range []struct {
		name    string
		folder  api.FolderID
		running []api.GroupServer
		want    string
	}{
		{"announced", p, as("b", a.Folders()...), ""},
		{"another folder of the name", p, as("a", api.SharedFolder{Name: "work", Mark: "x"}), "no server that runs has the shared folder work"},
		{"its server runs", api.FolderID{Server: "a"}, as("a"), ""},
		{"its server does not run", api.FolderID{Server: "a"}, as("b"), "the server that has its workspace does not run"},
	} {
		if got := Unreached(c.folder, c.running); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
