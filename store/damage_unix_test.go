//go:build unix

package store

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// Each place that cannot be looked into says so, and the rest goes on.
func TestLinksAndOddNames(t *testing.T) {
	storage, dir := rooStorage(t, "fine")
	tasks := filepath.Dir(dir)
	fixture.NoError(t, os.Symlink(filepath.Join(tasks, "itself"), filepath.Join(tasks, "itself")))
	fixture.NoError(t, os.Symlink(tasks, filepath.Join(tasks, "above"))) // a folder of folders: no message in it
	fixture.NoError(t, os.Symlink(filepath.Join(storage, "usb", "1"), filepath.Join(tasks, "away")))
	odd := []string{"odd name", "-x", "new\nline", "日本", strings.Repeat("a", 200)}
	if runtime.GOOS == "linux" {
		odd = append(odd, "\xff\xfe")
	}
	for i, name := range odd {
		write(t, filepath.Join(tasks, name), roofmt.UIName, array(uiRow(i, "odd")))
	}
	before := tree(t, storage)
	s := open(t, t.TempDir(), storage)
	got := listing(t, s, Filter{})
	if len(got.Items) != 1+len(odd)+2 || got.Sources[1].Damaged != 2 || got.Sources[1].Empty != 1 || got.Sources[1].State != "partly damaged" {
		t.Fatalf("%d items, %+v", len(got.Items), got.Sources)
	}
	for _, item := range got.Items {
		broken := item.ID == "itself" || item.ID == "away"
		if broken != (len(item.Damaged) > 0) || broken && !strings.Contains(item.Damaged[0].Problem, "link that cannot be followed") {
			t.Errorf("%q: got %+v, want broken = (len(item.Damaged) > 0) and (not broken or strings.Contains(item.Damaged[0].Problem, \"link that cannot be followed\"))",
				item.ID, item.Damaged)
		}
		if slices.Contains(odd, item.ID) {
			if v := view(t, s, item.Source+":"+item.ID); len(v.State.UI()) != 1 {
				t.Errorf("%q cannot be read", item.ID)
			}
		}
	}
	if after := tree(t, storage); len(after) != len(before) {
		t.Error("looking changed the storage")
	}
}

// Nobody but root reads everything: the same test runs as somebody else.
func TestWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 && os.Getenv("STORE_TEST_NOBODY") == "" {
		dir, err := os.MkdirTemp("", "roost-nobody-")
		fixture.NoError(t, err)
		defer os.RemoveAll(dir)
		fixture.NoError(t, os.Chmod(dir, 0o777))
		self := filepath.Join(dir, "test")
		fixture.NoError(t, os.WriteFile(self, fixture.Must[[]byte](t)(os.ReadFile(fixture.Must[string](t)(os.Executable()))), 0o755))
		cmd := exec.Command(self, "-test.run=^TestWithoutPermission$")
		cmd.Dir = dir
		cmd.Env = []string{"STORE_TEST_NOBODY=1", "TMPDIR=" + dir, "HOME=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("got %v\n%s, want no error", err, out)
		}
		return
	}
	locked, dir := rooStorage(t, "behind")
	storage, fine := rooStorage(t, "fine")
	write(t, filepath.Join(storage, "tasks", "shut"), roofmt.UIName, array(uiRow(1, "x")))
	write(t, filepath.Join(storage, "tasks", "half"), roofmt.UIName, array(uiRow(1, "half")))
	write(t, filepath.Join(storage, "tasks", "half"), roofmt.APIName, array(apiRow(1, "user", "half")))
	for _, path := range []string{filepath.Dir(dir), filepath.Join(storage, "tasks", "shut"), filepath.Join(storage, "tasks", "half", roofmt.APIName)} {
		was := fixture.Must[os.FileInfo](t)(os.Stat(path)).Mode()
		fixture.NoError(t, os.Chmod(path, 0))
		t.Cleanup(func() { fixture.NoError(t, os.Chmod(path, was)) })
	}
	got := listing(t, open(t, t.TempDir(), locked, storage), Filter{})
	if state := got.Sources[1].State; !strings.HasPrefix(state, "unreachable: ") || !strings.Contains(state, "permission denied") {
		t.Errorf("locked: %s", state)
	}
	if got.Sources[2].State != "partly damaged" || got.Sources[2].Damaged != 2 || len(got.Items) != 3 {
		t.Errorf("got %+v %+v, want got.Sources[2].State = \"partly damaged\" and got.Sources[2].Damaged = 2 and len(got.Items) = 3",
			got.Sources, got.Items)
	}
	for _, item := range got.Items {
		if item.Path != fine && (len(item.Damaged) == 0 || !strings.Contains(item.Damaged[0].Problem, "permission denied")) {
			t.Errorf("%s: got %+v, want item.Path = fine or (len(item.Damaged) != 0 and strings.Contains(item.Damaged[0].Problem, \"permission denied\"))",
				item.ID, item.Damaged)
		}
		if item.ID == "half" && (item.Messages.UI != 1 || item.Title != "half") {
			t.Errorf("what can be read of it is not there: %+v", item)
		}
	}
}

// A disk that is pulled out after its tasks were listed has not damaged them.
func TestARootThatVanishesInTheMiddle(t *testing.T) {
	storage, dir := rooStorage(t, "aaa-1")
	s := open(t, t.TempDir(), storage)
	_, states, err := s.RefsAndSources(t.Context())
	fixture.NoError(t, err)
	ref := foreignRef(t, s, "aaa-1")
	fixture.NoError(t, os.RemoveAll(storage))
	sum := s.SummaryOf(t.Context(), ref)
	if len(sum.Damaged) != 1 || sum.Path != dir {
		t.Errorf("got %+v, want len(sum.Damaged) = 1 and sum.Path = dir", sum)
	}
	states[1].Damaged = 1
	judge(&states[1])
	if state := states[1].State; !strings.HasPrefix(state, "unreachable: it went away") {
		t.Errorf("got %s, want strings.HasPrefix(state, \"unreachable: it went away\")", state)
	}
}

// A pipe in place of a small file is nothing to wait for: who continues or forks the task
// goes on without what it might have said.
func TestPipesInPlaceOfSmallFiles(t *testing.T) {
	storage, dir := rooStorage(t, "piped")
	cline, clineDir := clineStorage(t, "1730047571772")
	s := open(t, t.TempDir(), storage, cline)
	for _, in := range []string{dir, clineDir} {
		for _, name := range []string{roofmt.ItemName, roofmt.MetadataName} {
			if err := os.Remove(filepath.Join(in, name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			fixture.NoError(t, syscall.Mkfifo(filepath.Join(in, name), 0o600))
		}
	}
	for _, id := range []string{"piped", "1730047571772"} {
		o := fixture.Must[*Owned](t)(s.Own(context.Background(), foreignRef(t, s, id)))
		if len(o.Task.State().UI()) != 2 {
			t.Errorf("%s: got %s, want len(o.Task.State().UI()) = 2", id, rows(o.Task.State()))
		}
		_ = o.Task.Close(context.Background()) // what stands there cannot be replaced, and that is said
		fork, done, err := Rooms.Fork(context.Background(), s, o.Task.Ref, "")
		fixture.NoError(t, err)
		fixture.NoError(t, done(context.Background()))
		if v := view(t, s, fork); len(v.State.UI()) != 2 {
			t.Errorf("fork of %s: %s", id, rows(v.State))
		}
	}
}

// A root that came from elsewhere may have a pipe in place of the record of an import. A list does not wait for its writer.
func TestAPipeInPlaceOfTheRecordOfAnImport(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "tasks", "piped")
	write(t, dir, roofmt.UIName, array(fourRows[:2]...))
	fixture.NoError(t, syscall.Mkfifo(filepath.Join(dir, ImportRecord), 0o600))
	if got := listing(t, open(t, root), Filter{}); len(got.Items) != 1 || got.Items[0].Messages.UI != 2 {
		t.Errorf("got %+v, want the task with two rows", got.Items)
	}
}
