//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/tasks"
)

// beside calls f again and again until the test's work is done.
func beside(f func(i int)) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				f(i)
			}
		}
	})
	return func() { close(done); all.Wait() }
}

// every runs each command that reads, and import, and gives what the list had.
func (s *sandbox) every(id string) []api.Summary {
	s.t.Helper()
	var got struct{ Items []api.Summary }
	unmarshal(s.t, []byte(s.exitsWith([]int{failure.ExitDone}, "list", "--empty", "--json").out), &got)
	s.exitsWith([]int{failure.ExitDone, failure.ExitNotFound}, "show", id)
	s.exitsWith([]int{failure.ExitDone}, "search", "needle")
	s.exitsWith([]int{failure.ExitDone}, "usage")
	s.exitsWith([]int{failure.ExitDone, failure.ExitDamaged}, "doctor")
	for _, form := range tasks.ExportFormats {
		to := filepath.Join(s.dir, "out", form)
		s.exitsWith([]int{failure.ExitDone, failure.ExitDamaged, failure.ExitNotFound}, "export", id, "--format", form, "-o", to+"/")
	}
	s.exitsWith([]int{failure.ExitDone, failure.ExitFailed, failure.ExitNotFound}, "import", "--dry-run", s.store)
	return got.Items
}

// A task that changes while it is read, in place and by renames, by all kinds of
// writers: it is listed each time, and so is the one beside it.
func TestHostileWriter(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("good", "the needle of a good task", 1776300000000)
	s.foreign("moving", "the needle", 1776200000000)
	dir := filepath.Join(s.store, "tasks", "moving")
	stop := beside(func(i int) {
		var rows []string
		for n := range i % 300 {
			rows = append(rows, row(fmt.Sprint(1776200000000+n), `"needle `+strings.Repeat("x", i%2000)+`"`))
		}
		text := []byte("[" + strings.Join(rows, ",") + "]")
		path := filepath.Join(dir, uiFile)
		switch i % 4 {
		case 0: // in place
			_ = os.WriteFile(path, text, 0o600)
		case 1: // by rename
			_ = os.WriteFile(path+".tmp", text, 0o600)
			_ = os.Rename(path+".tmp", path)
		case 2: // cut
			_ = os.Truncate(path, int64(len(text)/3))
		case 3: // away, and there again
			_ = os.Remove(path)
		}
	})
	defer stop()
	for range 3 {
		if got := s.every("moving"); len(got) != 2 {
			t.Errorf("%d of 2 tasks are listed", len(got))
		}
	}
}

// A storage that goes away while it is read is unreachable or gone: never a crash,
// and the tasks of other storages are there.
func TestHostileRootThatVanishes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 50 {
		s.foreign(fmt.Sprintf("task-%d", i), "the needle", 1776200000000)
	}
	second := newSandbox(t)
	second.foreign("stays", "the needle", 1776300000000)
	s.env("ROOST_SOURCES=" + s.store + "," + second.store)
	away := s.store + ".away"
	stop := beside(func(i int) {
		if i%2 == 0 {
			_ = os.Rename(s.store, away)
		} else {
			_ = os.Rename(away, s.store)
		}
	})
	for range 3 {
		found := false
		for _, task := range s.every("stays") {
			found = found || task.ID == "stays"
		}
		if !found {
			t.Error("the storage that stays was not listed")
		}
	}
	stop()
	_ = os.Rename(s.store, away)
	r := s.exitsWith([]int{failure.ExitDone}, "list")
	if !strings.Contains(r.err, "unreachable") && !strings.Contains(r.err, "reached") {
		t.Errorf("a storage that is gone is not spoken of: %s", r.err)
	}
}

// asNobody runs the commands that follow as a user who may not read everything, where the test runs as root. The sandbox is
// theirs from then on.
func (s *sandbox) asNobody() {
	s.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	exe, err := exec.LookPath("roost")
	must(s.t, err)
	s.exe = filepath.Join(s.dir, "roost")
	must(s.t, exec.Command("cp", exe, s.exe).Run()) // a child that another test starts must not hold it open for writing
	const nobody = 65534
	must(s.t, filepath.WalkDir(filepath.Dir(s.dir), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	s.as = &syscall.Credential{Uid: nobody, Gid: nobody}
}

// Without permission: the folder is listed as damaged, with the reason, and the rest
// goes on. Root may read everything, so it is done as somebody else.
func TestHostilePermissions(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("good", "the needle of a good task", 1776300000000)
	for _, id := range []string{"closed", "closed-file", "unlisted"} {
		s.foreign(id, "the needle", 1776200000000)
	}
	locked := filepath.Join(s.dir, "locked")
	must(t, os.Mkdir(locked, 0o500))
	tasks := filepath.Join(s.store, "tasks")
	must(t, os.Chmod(filepath.Join(tasks, "closed-file", uiFile), 0))
	must(t, os.Chmod(filepath.Join(tasks, "unlisted"), 0o300))
	must(t, os.Chmod(filepath.Join(tasks, "closed"), 0))
	t.Cleanup(func() {
		for _, id := range []string{"closed", "unlisted"} {
			_ = os.Chmod(filepath.Join(tasks, id), 0o700)
		}
	})
	s.asNobody()
	at := map[string]string{}
	for _, task := range s.every("good") {
		said, err := json.Marshal(task.Damaged)
		must(t, err)
		at[task.ID] = string(said)
	}
	for id, want := range map[string]string{"good": "[]", "closed": "permission denied", "closed-file": "permission denied", "unlisted": "permission denied"} {
		if !strings.Contains(at[id], want) {
			t.Errorf("%s: %q, want %q", id, at[id], want)
		}
	}
	r := s.exitsWith([]int{failure.ExitDone}, "search", "needle")
	if !strings.Contains(r.out, "good") || !strings.Contains(r.err, "closed") {
		t.Errorf("search: %s%s", r.out, r.err)
	}
	for _, id := range []string{"closed", "unlisted"} {
		if r := s.bounded("show", id); r.code == failure.ExitDone || !strings.Contains(r.err, "permission denied") {
			t.Errorf("show %s: exit %d %s", id, r.code, r.err)
		}
	}
	if r := s.bounded("import", s.store); r.code != failure.ExitFailed || !strings.Contains(r.out, "closed") {
		t.Errorf("import: exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.bounded("serve", "--root", locked, "--listen", "127.0.0.1:0"); r.code != failure.ExitConfig || !strings.Contains(r.err, "try: roost --root DIR") {
		t.Errorf("got exit %d %s, want the advice to name another root", r.code, r.err)
	}
}

// Two gigabytes: a list whose rest is a hole, as a disk that was full leaves it, and
// one that is sound. Memory does not grow with them.
func TestHostileSize(t *testing.T) {
	if !large() {
		t.Skip("ROOST_TEST_LARGE is not set")
	}
	s := newSandbox(t)
	s.foreign("good", "the needle of a good task", 1776300000000)
	for _, id := range []string{"hole", "long"} {
		dir := filepath.Join(s.store, "tasks", id)
		must(t, os.MkdirAll(dir, 0o700))
		f, err := os.Create(filepath.Join(dir, uiFile))
		must(t, err)
		if _, err = f.WriteString("[" + row("1776200000000", `"needle"`)); err != nil {
			t.Fatal(err)
		}
		if id == "hole" {
			must(t, f.Truncate(2<<30))
		} else {
			line := []byte("," + row("1776200000001", `"`+strings.Repeat("straw ", 1<<15)+`"`))
			for n := 0; n < 2<<30; n += len(line) {
				_, err = f.Write(line)
				must(t, err)
			}
			_, err = f.WriteString("]")
			must(t, err)
		}
		must(t, f.Close())
	}
	var got struct{ Items []api.Summary }
	unmarshal(t, []byte(s.exitsWith([]int{failure.ExitDone}, "list", "--json").out), &got)
	if len(got.Items) != 3 {
		t.Errorf("%d of 3 tasks are listed", len(got.Items))
	}
	for _, task := range got.Items {
		if want := task.ID == "hole"; want != (len(task.Damaged) > 0) {
			t.Errorf("%s: got %+v, want want = (len(task.Damaged) > 0)", task.ID, task.Damaged)
		}
	}
	for _, id := range []string{"hole", "long"} {
		s.exitsWith([]int{failure.ExitDone}, "show", id, "--tail", "3")
		for _, form := range tasks.ExportFormats {
			to := filepath.Join(s.dir, "out")
			s.exitsWith([]int{failure.ExitDone, failure.ExitDamaged}, "export", id, "--format", form, "-o", to+"/")
			must(t, os.RemoveAll(to))
		}
	}
	s.exitsWith([]int{failure.ExitDone}, "search", "needle")
	s.exitsWith([]int{failure.ExitDone}, "usage")
	s.exitsWith([]int{failure.ExitDamaged}, "doctor")
	s.exitsWith([]int{failure.ExitDone}, "import", "--dry-run", s.store)
}
