//go:build unix

package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// Several processes put their tasks into one index; no entry is lost, whatever
// stood there before.
func TestIndexOfManyProcesses(t *testing.T) {
	for name, before := range map[string]string{"no index": "", "a broken index": "{broken", "an older index": `{"version":1,"updatedAt":1,"entries":[]}`} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if before != "" {
				write(t, filepath.Join(root, "tasks"), roofmt.IndexName, before)
			}
			var cmds []*exec.Cmd
			for i := range 3 {
				cmd := process(t, "create", "STORE_TEST_ROOT="+root, fmt.Sprintf("STORE_TEST_TASK=proc%d", i))
				cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
				fixture.NoError(t, cmd.Start())
				cmds = append(cmds, cmd)
			}
			for _, cmd := range cmds {
				fixture.NoError(t, cmd.Wait())
			}
			x := fixture.Must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks")))
			for i := range 3 {
				for n := range 6 {
					if _, ok := x.Get(fmt.Sprintf("proc%d-%d", i, n)); !ok {
						t.Errorf("proc%d-%d is not in the index of %d", i, n, len(x.Entries))
					}
				}
			}
			if len(x.Entries) != 18 {
				t.Errorf("%d entries", len(x.Entries))
			}
		})
	}
}

// An index that is gone comes back with every task, not only with the next one.
func TestIndexIsDerived(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, id := range []string{"one", "two", "three"} {
		closeTask(t, create(t, s, id))
	}
	fixture.NoError(t, os.Remove(filepath.Join(root, "tasks", roofmt.IndexName)))
	k := own(t, s, "two").Task
	commit(t, k, task.UI, uiRow(9, "more"))
	closeTask(t, k)
	x := fixture.Must[*roofmt.Index](t)(roofmt.ReadIndex(filepath.Join(root, "tasks")))
	var ids []string
	for _, e := range x.Entries {
		id, _ := esjson.GetString(e, "id")
		ids = append(ids, id)
	}
	if d := cmp.Diff([]string{"two", "one", "three"}, ids); d != "" {
		t.Error(d)
	}
	// Entries of nobody's folder go, those that we cannot judge stay.
	path := filepath.Join(root, "tasks")
	write(t, path, roofmt.IndexName, `{"version":1,"updatedAt":1,"entries":[{"id":"left long ago","ts":1},{"id":"gone","ts":2},{"odd":1}],"more":[1]}`)
	k = own(t, s, "two").Task
	commit(t, k, task.UI, uiRow(10, "more"))
	closeTask(t, k)
	text := read(t, path, roofmt.IndexName)
	if strings.Contains(text, `"gone"`) || !strings.Contains(text, "left long ago") || !strings.Contains(text, `{"odd":1}`) || !strings.Contains(text, `"more":[1]`) {
		t.Errorf("index %s", text)
	}
}

// stranger starts this binary as an account that owns nothing here.
func stranger(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	self := fixture.Must[string](t)(os.Executable())
	dir := fixture.Must[string](t)(os.MkdirTemp("", "store-stranger-"))
	t.Cleanup(func() { fixture.NoError(t, os.RemoveAll(dir)) })
	fixture.NoError(t, os.Chmod(dir, 0o755))
	data := fixture.Must[[]byte](t)(os.ReadFile(self))
	copied := filepath.Join(dir, "store.test")
	fixture.NoError(t, os.WriteFile(copied, data, 0o700))
	fixture.NoError(t, os.Chmod(copied, 0o755))
	cmd := process(t, role, env...)
	cmd.Path, cmd.Args[0], cmd.Dir = copied, copied, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

// opened lets everybody read a tree, and nobody write it.
func opened(t *testing.T, dir string) {
	t.Helper()
	for up := dir; up != "/" && up != os.TempDir(); up = filepath.Dir(up) {
		fixture.NoError(t, os.Chmod(up, 0o755))
	}
	fixture.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.Type()&os.ModeSymlink != 0 {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o555)
		}
		return os.Chmod(path, 0o444)
	}))
}

func TestReadOnlyRoot(t *testing.T) {
	base := fixture.Must[string](t)(os.MkdirTemp("", "store-readonly-"))
	t.Cleanup(func() { fixture.NoError(t, os.RemoveAll(base)) })
	root := filepath.Join(base, "root")
	s := open(t, root)
	closeTask(t, create(t, s, "readable"))
	opened(t, base)
	before := tree(t, base)
	out, err := stranger(t, "look", "STORE_TEST_ROOT="+root).CombinedOutput()
	if err != nil {
		t.Fatalf("got %v\n%s, want no error", err, out)
	}
	text := string(out)
	if !strings.Contains(text, "row: 1 T readable 0") {
		t.Errorf("it cannot be read: %s", text)
	}
	for _, did := range []string{"own: ", "create: "} {
		_, rest, _ := strings.Cut(text, did)
		line, _, _ := strings.Cut(rest, "\n")
		if !strings.Contains(line, root) || !strings.Contains(line, "cannot be written") || !strings.Contains(line, "permission denied") {
			t.Errorf(`got %s%s, want strings.Contains(line, root) and strings.Contains(line, "cannot be written") and strings.Contains(line, "permission denied")`,
				did, line)
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Error(d)
	}
}

// A task of another account is listed as damaged, with its place: it does not
// break the list, and it is not "empty".
func TestUnreadableTask(t *testing.T) {
	base := fixture.Must[string](t)(os.MkdirTemp("", "store-unreadable-"))
	t.Cleanup(func() { fixture.NoError(t, os.RemoveAll(base)) })
	root := filepath.Join(base, "root")
	s := open(t, root)
	closeTask(t, create(t, s, "mine"))
	closeTask(t, create(t, s, "other"))
	opened(t, base)
	fixture.NoError(t, os.Chmod(filepath.Join(root, "tasks", "other"), 0o000))
	out, err := stranger(t, "look", "STORE_TEST_ROOT="+root).CombinedOutput()
	if !strings.Contains(string(out), "row: 1 T mine 0") || !strings.Contains(string(out), "permission denied") {
		t.Errorf(`got %v %s, want strings.Contains(string(out), "row: 1 T mine 0") and strings.Contains(string(out), "permission denied")`,
			err, out)
	}
}

// What killed writers of ours left goes with the next owner; what is others'
// stays.
func TestLeftoversOfTheKilled(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "swept"))
	dir := filepath.Join(root, "tasks", "swept")
	for _, point := range []string{"project.temp", "project.renamed"} {
		if out, err := process(t, "commit", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=swept", "ROOST_FAILPOINT="+point).CombinedOutput(); err == nil {
			t.Fatalf("%s: not killed: %s", point, out)
		}
	}
	write(t, dir, projection.TempPrefix+"123", "half")
	foreign := map[string]string{".ui_messages.json.new_1_a.tmp": "an editor's", "notes.txt": "a person's", ".roost-later": "of a version to come"}
	for name, text := range foreign {
		write(t, dir, name, text)
	}
	live := process(t, "hold", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=swept")
	in := fixture.Must[io.WriteCloser](t)(live.StdinPipe())
	out := fixture.Must[io.ReadCloser](t)(live.StdoutPipe())
	fixture.NoError(t, live.Start())
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("got %q %v, want no error and string(line) = \"ready\\n\"", line, err)
	}
	for _, name := range fixture.Must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		if n := name.Name(); strings.HasPrefix(n, ".roost-tmp") || strings.HasPrefix(n, ".roost-lock") || strings.HasPrefix(n, projection.TempPrefix) || strings.HasSuffix(n, ".lock") && n != "journal.lock" {
			t.Errorf("left: %s", n)
		}
	}
	fixture.NoError(t, in.Close())
	fixture.NoError(t, live.Wait())
	for name, text := range foreign {
		if got := read(t, dir, name); got != text {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// The holder of a task is dead and its lock is not free yet: a command that it
// was starting has it open for a moment.
func TestALockThatOutlivesItsHolder(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "held"))
	dir := filepath.Join(root, "tasks", "held")
	// The lock says who held it last: a process that was killed.
	if out, err := process(t, "commit", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=held", "ROOST_FAILPOINT=project.temp").CombinedOutput(); err == nil {
		t.Fatalf("not killed: %s", out)
	}
	lock := fixture.Must[*os.File](t)(os.OpenFile(filepath.Join(dir, "journal.lock"), os.O_RDWR, 0))
	if ok, err := filelock.Try(lock, filelock.Exclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = lock.Close()
	}()
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), "held"))
	o, err := s.Own(context.Background(), ref)
	if err != nil {
		t.Fatalf("a lock that comes free: %v", err)
	}
	closeTask(t, o.Task)
}
