//go:build unix

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// childRestore, in the environment, names the file with what a child is to put back.
const childRestore = "CHECKPOINT_TEST_RESTORE"

type childsWork struct {
	Root, Data string
	Files      []task.RestoreFile
}

// TestRestoreOfAChild is the child's part of the test below.
func TestRestoreOfAChild(t *testing.T) {
	name := os.Getenv(childRestore)
	if name == "" {
		t.Skip("only for children")
	}
	var work childsWork
	raw, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, &work)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(work.Root)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(Place{Dir: work.Data}, w, Options{Git: "none", Home: "/nobody"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Apply(t.Context(), work.Files); err != nil {
		t.Fatal(err)
	}
}

// killed lets a child put files back and reports whether it was killed at the failpoint;
// false: it came to an end before.
func (l *bench) killed(files []task.RestoreFile, point string) bool {
	l.Helper()
	raw, err := json.Marshal(childsWork{l.root, l.data, files})
	l.must(err)
	name := filepath.Join(l.TempDir(), "work.json")
	l.must(os.WriteFile(name, raw, 0o600))
	cmd := exec.Command(os.Args[0], "-test.run=^TestRestoreOfAChild$")
	cmd.Env = append(os.Environ(), childRestore+"="+name, failpoint.Env+"="+point)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		l.Fatalf("the child ended with %v: %s", err, out)
	}
	return true
}

// Killed at any place, a restore is completed by whoever does it again, and taken back
// by whoever does its other way round.
func TestAKilledRestoreIsCompletedOrTakenBack(t *testing.T) {
	points := []string{"tool.write.filled", "restore.placing", "tool.write.linked", "restore.linked", "restore.applied-one", "restore.applied-all"}
	if testing.Short() {
		points = points[4:]
	}
	paths := []string{"edited", "deleted/with/its/folder", "new/folder/made", "link", "was", "mode", "folder"}
	l := newBench(t, Options{Git: "none"})
	l.write("edited", "old")
	l.write("deleted/with/its/folder", "old")
	l.must(os.Symlink("edited", l.at("link")))
	l.write("was", "a file")
	l.write("mode", "same")
	l.must(os.Symlink("nowhere", l.at("folder")))
	before := l.tree()
	list := l.past(paths, func() {
		l.write("edited", "new")
		l.remove("deleted")
		l.write("new/folder/made", "new")
		l.remove("link")
		l.must(os.Symlink("elsewhere", l.at("link")))
		l.remove("was")
		l.must(os.Symlink("mode", l.at("was")))
		l.must(os.Chmod(l.at("mode"), 0o755))
		l.remove("folder")
		l.write("folder/sub/f", "new")
	})
	after := l.tree()
	files := append(l.intent(l.plan(list, 1, Keep)), task.RestoreFile{
		Path: "folder/sub/f", From: l.hold("folder/sub/f")["folder/sub/f"], To: api.FileVersion{Kind: api.KindGone, Dirs: 2},
	})
	for _, point := range points {
		for n := 1; ; n++ {
			at := fmt.Sprintf("%s:%d", point, n)
			if !l.killed(files, at) {
				if n == 1 {
					t.Fatalf("%s: nothing was killed", point)
				}
				break
			}
			if n%2 == 1 {
				if got := l.apply(files); len(got.Left) != 0 {
					t.Errorf("completed after %s: left %v, want none", at, got.Left)
				}
				l.wantTree("completed after "+at, before)
			}
			l.apply(task.Swapped(files))
			l.wantTree("taken back after "+at, after)
		}
		l.apply(task.Swapped(files))
		l.wantTree("taken back in the end", after)
	}
}

// TestCarryOfAChild is the child's part of the test below.
func TestCarryOfAChild(t *testing.T) {
	name := os.Getenv(childRestore)
	if name == "" {
		t.Skip("only for children")
	}
	var work childsWork
	raw, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, &work)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(work.Root)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(Place{Dir: work.Data}, w, Options{Git: "none", Home: "/nobody"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Hold(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
}

// A kill at any moment of carrying an earlier version's store over loses nothing; the next process completes it.
func TestKillsWhileCarryingOver(t *testing.T) {
	for _, point := range []string{
		"content.bundle.written", "content.bundle.named", "checkpoint.carry.copied", "content.name.written", "content.name.named:2",
		"checkpoint.carry.named", "checkpoint.carry.refused",
	} {
		t.Run(point, func(t *testing.T) {
			l := newEarlierBench(t)
			raw, err := json.Marshal(childsWork{l.root, l.data, nil})
			l.must(err)
			name := filepath.Join(t.TempDir(), "work.json")
			l.must(os.WriteFile(name, raw, 0o600))
			cmd := exec.Command(os.Args[0], "-test.run=^TestCarryOfAChild$")
			cmd.Env = append(os.Environ(), childRestore+"="+name, failpoint.Env+"="+point)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			l.wantEarlier("after the kill")
			l.write("new", "new")
			l.hold("new")
			l.wantEarlier("after the next write")
			if _, err := l.k.Collect(t.Context(), false, true); err != nil {
				t.Error(err)
			}
			l.wantEarlier("after a collection")
			if !l.carried() {
				t.Error("the store of the earlier version is still there")
			}
			owners, err := l.k.Owners(t.Context())
			if err != nil || len(owners) != 2 {
				t.Errorf("owners: %v, %v", owners, err)
			}
		})
	}
}
