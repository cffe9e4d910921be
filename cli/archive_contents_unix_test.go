//go:build unix

package cli

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/failpoint"
)

// archivedTask is a task that changed a.txt and added new.txt, in an archive, and a machine without the task.
type archivedTask struct {
	*sandbox
	id, archive string
	there       sandbox // the other machine: the same home and paths, with a root of its own
}

func newArchivedTask(t *testing.T) archivedTask {
	t.Helper()
	a := archivedTask{sandbox: newSandbox(t)}
	a.write(a.ws, "a.txt", "before\n")
	r := a.roost("run", "--json", "--provider", "script", "--yes", "go", "--model", a.script(
		call("read_file", "{path: a.txt}")+call("write_to_file", `{path: a.txt, content: "after\n"}`)+
			call("write_to_file", `{path: new.txt, content: "new\n"}`)+finish("done")))
	if r.code != 0 {
		t.Fatalf("run: exit %d\n%s%s", r.code, r.out, r.err)
	}
	a.id = regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(r.out)[1]
	a.archive = filepath.Join(a.dir, "t.zip")
	a.must("export", a.id, "-o", a.archive)
	a.there = *a.sandbox
	a.there.root = filepath.Join(a.dir, "there")
	return a
}

// must runs a command that succeeds.
func (s *sandbox) must(args ...string) string {
	s.t.Helper()
	r := s.roost(args...)
	if r.code != 0 {
		s.t.Fatalf("roost %s: exit %d, want 0\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out + r.err
}

func (s *sandbox) write(dir, name, text string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) //nolint:gosec // as os.CopyFS makes it
}

// holds compares the files of a folder, by name; "" = there is none.
func (s *sandbox) holds(dir string, want map[string]string) {
	s.t.Helper()
	for name, text := range want {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
		if got := string(data); got != text {
			s.t.Errorf("%s holds %q, want %q", filepath.Join(dir, name), got, text)
		}
	}
}

func TestAnArchiveCarriesWhatCheckpointsKeep(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	there := &a.there
	there.must("import", a.archive)
	if out := there.must("doctor", a.id); !strings.Contains(out, "0 damaged") {
		t.Errorf("doctor: %s", out)
	}
	there.must("checkpoint", "restore", a.id, "0", "--yes")
	a.holds(a.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
	there.must("undo", a.id)
	a.holds(a.ws, map[string]string{"a.txt": "after\n", "new.txt": "new\n"})

	// What the imported checkpoints keep counts as the task's own from now on.
	for _, p := range must1(filepath.Glob(filepath.Join(there.root, "checkpoints", "*", "bundles", "*.bundle"))) {
		must(t, os.Remove(p))
	}
	if r := there.roost("doctor", a.id); r.code != failure.ExitDamaged || !strings.Contains(r.out, "a.txt") {
		t.Errorf("doctor without the contents: exit %d, want %d and the file named\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
	}
}

// TestAForkOfAnImportedTaskKeepsItsContents: the archive brought no commits of checkpoints.
func TestAForkOfAnImportedTaskKeepsItsContents(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	there := &a.there
	there.must("import", a.archive)
	there.must("fork", a.id)
	there.must("delete", a.id)
	there.must("trash", "purge", a.id, "--yes")
	there.must("checkpoint", "gc")
	there.must("checkpoint", "restore", there.list()[0].ID, "0", "--yes")
	a.holds(a.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
}

// TestAMappedWorkspaceContinuesTheCheckpoints: on the other machine the workspace is in another folder. Runs there go on
// from the checkpoints of the archive, and a fork keeps them when its base is purged.
func TestAMappedWorkspaceContinuesTheCheckpoints(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	there := &a.there
	there.ws = filepath.Join(a.dir, "elsewhere")
	must(t, os.CopyFS(there.ws, os.DirFS(a.ws)))
	there.must("import", a.archive, "--map", a.ws+"="+there.ws)
	if out := there.must("checkpoint", "restore", a.id, "0", "--dry-run"); !strings.Contains(out, "in "+there.ws) {
		t.Errorf("a dry run names not the folder %s\n%s", there.ws, out)
	}
	turns := strings.Repeat(call("read_file", "{path: a.txt}"), 4) // those of the first run
	there.must("resume", a.id, "--provider", "script", "--yes", "more", "--model",
		there.script(turns+call("read_file", "{path: a.txt}")+call("write_to_file", `{path: a.txt, content: "third\n"}`)+finish("done")))
	a.holds(there.ws, map[string]string{"a.txt": "third\n", "new.txt": "new\n"})
	there.must("checkpoint", "restore", a.id, "c3", "--yes")
	a.holds(there.ws, map[string]string{"a.txt": "after\n", "new.txt": ""})
	there.must("fork", a.id, "--at", "3")
	fork := there.list()[0].ID
	if fork == a.id {
		fork = there.list()[1].ID
	}
	there.must("delete", a.id)
	there.must("trash", "purge", a.id, "--yes")
	there.must("checkpoint", "gc")
	there.must("checkpoint", "restore", fork, "0", "--yes")
	a.holds(there.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
	a.holds(a.ws, map[string]string{"a.txt": "after\n", "new.txt": "new\n"})
}

// TestAnImportKeepsWhatTheTrashHas: a task in the trash has the same id, and other contents.
func TestAnImportKeepsWhatTheTrashHas(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	a.must("resume", a.id, "--provider", "script", "--yes", "more", "--model", a.script(strings.Repeat(call("read_file", "{path: a.txt}"), 4)+
		call("read_file", "{path: a.txt}")+call("write_to_file", `{path: a.txt, content: "third\n"}`)+finish("done")))
	a.must("delete", a.id)
	a.must("import", a.archive)
	a.must("checkpoint", "gc")
	a.must("checkpoint", "restore", a.id, "0", "--yes", "--on-conflict", "overwrite")
	a.holds(a.ws, map[string]string{"a.txt": "before\n"})
	a.must("delete", a.id)
	a.must("trash", "purge", a.id+"~2", "--yes") // the imported one
	a.must("checkpoint", "gc")
	a.must("trash", "restore", a.id)
	a.must("checkpoint", "restore", a.id, "c5", "--yes", "--on-conflict", "overwrite")
	a.holds(a.ws, map[string]string{"a.txt": "third\n"})
}

// TestARestoreOfAnotherMachineIsNotUndone: an undo does not ask, and the journal of an archive may name any file.
func TestARestoreOfAnotherMachineIsNotUndone(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	a.must("checkpoint", "restore", a.id, "0", "--yes")
	a.must("export", a.id, "-o", a.archive)
	a.there.must("import", a.archive)
	r := a.there.roost("undo", a.id)
	if r.code != failure.ExitBusy || !strings.Contains(r.err, "came from elsewhere") || !strings.Contains(r.err, "checkpoint restore "+a.id+" c5") {
		t.Errorf("undo: exit %d, want %d, and the checkpoint named\n%s%s", r.code, failure.ExitBusy, r.out, r.err)
	}
	a.holds(a.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
	a.there.must("checkpoint", "restore", a.id, "c5", "--yes")
	a.holds(a.ws, map[string]string{"a.txt": "after\n", "new.txt": "new\n"})
	a.there.must("undo", a.id) // this one was done here
	a.holds(a.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
}

// TestKilledImportsKeepWhatCheckpointsHold: a kill at any place of an import leaves no task without its contents, and the
// import can be done again.
func TestKilledImportsKeepWhatCheckpointsHold(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"import.file", "import.contents", "import.copied", "import.published"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			a := newArchivedTask(t)
			there := &a.there
			killed := there.command("import", a.archive)
			killed.Env = append(killed.Env, failpoint.Env+"="+place)
			if out, err := killed.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("import ended with %v, want a kill\n%s", err, out)
			}
			there.must("checkpoint", "gc")
			there.must("import", a.archive)
			there.must("checkpoint", "restore", a.id, "0", "--yes")
			a.holds(a.ws, map[string]string{"a.txt": "before\n", "new.txt": ""})
		})
	}
}

// TestAnArchiveLacksWhatIsDamaged: an export names contents that cannot be read, and carries the task.
func TestAnArchiveLacksWhatIsDamaged(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t)
	for _, p := range must1(filepath.Glob(filepath.Join(a.root, "checkpoints", "*", "bundles", "*.bundle"))) {
		must(t, os.Remove(p))
	}
	r := a.roost("export", a.id, "-o", a.archive)
	if r.code != failure.ExitDamaged || !strings.Contains(r.err, "what a checkpoint keeps of") {
		t.Errorf("export: exit %d, want %d and the file named\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
	}
	a.there.must("import", a.archive)
	if r := a.there.roost("checkpoint", "restore", a.id, "0", "--yes"); r.code != failure.ExitDamaged {
		t.Errorf("restore: exit %d, want %d\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
	}
}

// edited copies an archive. change gets each member and returns what the copy has.
func (a archivedTask) edited(change func(name string, data []byte) (string, []byte)) string {
	a.t.Helper()
	from := must1(zip.OpenReader(a.archive))
	defer from.Close()
	path := filepath.Join(a.dir, "edited.zip")
	out := must1(os.Create(path))
	to := zip.NewWriter(out)
	for _, f := range from.File {
		in := must1(f.Open())
		name, data := change(f.Name, must1(io.ReadAll(in)))
		w := must1(to.Create(name))
		must1(w.Write(data))
	}
	must(a.t, to.Close())
	must(a.t, out.Close())
	return path
}

// TestContentsOfHostileArchives: an archive brings only what its journals name, under its own digest, into stores.
func TestContentsOfHostileArchives(t *testing.T) {
	t.Parallel()
	replaced := func(what, with string) func(string, []byte) (string, []byte) {
		return func(name string, data []byte) (string, []byte) {
			if name == "manifest.json" {
				data = []byte(strings.ReplaceAll(string(data), what, with))
			}
			return name, data
		}
	}
	for name, tt := range map[string]struct {
		change func(name string, data []byte) (string, []byte)
		note   string
	}{
		"other bytes": {func(name string, data []byte) (string, []byte) {
			if strings.HasPrefix(name, "contents/") && string(data) == "before\n" {
				data = []byte("hostil\n")
			}
			return name, data
		}, "differs from its entry"},
		"a size that is not so": {replaced(`"size":7,`, `"size":70000000,`), "above the limits"},
		"a negative size":       {replaced(`"size":7,`, `"size":-7,`), "differs from its entry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchivedTask(t)
			there := &a.there
			if out := there.must("import", a.edited(tt.change)); !strings.Contains(out, "lacks 1 content") || !strings.Contains(out, tt.note) {
				t.Errorf("the import names not what it left out (%q)\n%s", tt.note, out)
			}
			if r := there.roost("checkpoint", "restore", a.id, "0", "--yes"); r.code != failure.ExitDamaged {
				t.Errorf("restore: exit %d, want %d\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
			}
			a.holds(a.ws, map[string]string{"a.txt": "after\n", "new.txt": ""})
		})
	}
}

// TestAnImportedTaskNamesNoOtherFolder: its checkpoints may name the store of any workspace here. Their files go back in
// the task's own workspace, or not at all.
func TestAnImportedTaskNamesNoOtherFolder(t *testing.T) {
	t.Parallel()
	a := newArchivedTask(t) // in this root the store of a.ws has its folder
	elsewhere := filepath.Join(a.dir, "elsewhere")
	must(t, os.Mkdir(elsewhere, 0o700))
	a.must("delete", a.id)
	a.must("import", "--map", a.ws+"="+elsewhere, a.edited(func(name string, data []byte) (string, []byte) {
		if name == "manifest.json" {
			data = regexp.MustCompile(`"store":"[^"]+"`).ReplaceAll(data, []byte(`"store":"x"`))
		}
		return name, data
	}))
	for _, to := range []string{"c1", "0"} {
		if r := a.roost("checkpoint", "restore", a.id, to, "--yes"); r.code == 0 || !strings.Contains(r.err, "c1 is of another folder than "+elsewhere) {
			t.Errorf("restore to %s: exit %d, want a refusal\n%s%s", to, r.code, r.out, r.err)
		}
	}
	a.holds(a.ws, map[string]string{"a.txt": "after\n", "new.txt": "new\n"})
}
