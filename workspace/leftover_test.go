//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// killedWrite is where the child of a test writes; it dies at a failpoint.
const killedWrite = "WORKSPACE_TEST_WRITE"

func TestMain(m *testing.M) {
	if name := os.Getenv(killedWrite); name != "" {
		w, err := Open(filepath.Dir(name))
		if err == nil {
			var p Path
			if p, err = w.Resolve(filepath.Base(name)); err == nil {
				_, err = w.Write(context.Background(), p, []byte("from the child"), os.Getenv("WORKSPACE_TEST_EXPECT"))
			}
		}
		fmt.Println("not killed:", err)
		os.Exit(1)
	}
	if dir := os.Getenv(killedMove); dir != "" {
		fmt.Println("not killed:", move(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// killWrite lets a child write root/name and kills it at a failpoint.
func killWrite(t *testing.T, root, name, expect, point string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedWrite+"="+filepath.Join(root, name), "WORKSPACE_TEST_EXPECT="+expect, failpoint.Env+"="+point)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v: %s", err, out)
	}
}

func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".roost-") {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestKilledWriteLeavesNothingForLong(t *testing.T) {
	old := HashOf([]byte("old"))
	tests := []struct {
		point, before, expect string
		left                  int
		after                 string
	}{
		{"tool.write.filled", "old", old, 1, "old"},
		{"tool.write.before", "old", old, 1, "old"},
		{"tool.write.after", "old", old, 0, "from the child"},
		{"tool.write.before", "", "", 1, ""},
		{"tool.write.linked", "", "", 1, "from the child"},
		{"tool.write.after", "", "", 0, "from the child"},
	}
	for _, tt := range tests {
		for _, how := range []string{"Sweep", "the next write", "a write to another file"} {
			t.Run(tt.point+" of "+tt.before+", then "+how, func(t *testing.T) {
				w, root := open(t)
				if tt.before != "" {
					fixture.WriteFile(t, filepath.Join(root, "f"), tt.before)
				}
				killWrite(t, root, "f", tt.expect, tt.point)
				left := leftovers(t, root)
				if len(left) != tt.left {
					t.Fatalf("the kill left %v", left)
				}
				data, _ := os.ReadFile(filepath.Join(root, "f"))
				if string(data) != tt.after {
					t.Fatalf("the file holds %q", data)
				}
				switch how {
				case "Sweep":
					if n, err := w.Sweep(resolve(t, w, "f")); n != tt.left || err != nil {
						t.Errorf("Sweep removed %d, %v", n, err)
					}
				case "the next write":
					if _, err := w.Write(t.Context(), resolve(t, w, "f"), data, AnyContent); err != nil {
						t.Fatal(err)
					}
				default:
					if _, err := w.Write(t.Context(), resolve(t, w, "g"), nil, ""); err != nil {
						t.Fatal(err)
					}
				}
				if left := leftovers(t, root); len(left) > 0 {
					t.Errorf("still there: %v", left)
				}
				if now, _ := os.ReadFile(filepath.Join(root, "f")); string(now) != tt.after {
					t.Errorf("the file holds %q now", now)
				}
			})
		}
	}
}

// What only looks like a leftover stays: of somebody alive, of another name, no
// file, behind a link.
func TestSweepTakesOnlyDeadOnesOfOurs(t *testing.T) {
	w, root := open(t)
	dead := ".f.roost-0123456789ab.tmp"
	keep := []string{
		".f.roost-0123456789ab.tmp.txt", ".f.roost-0123456789a.tmp", ".f.roost-0123456789AB.tmp", "f.roost-0123456789ab.tmp", ".roost-0123456789ab.tmp", ".f.tmp", ".f.roost-.tmp",
	}
	for _, name := range append(keep, dead) {
		fixture.WriteFile(t, filepath.Join(root, name), name)
	}
	if err := os.Mkdir(filepath.Join(root, ".d.roost-0123456789ab.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, ".p.roost-0123456789ab.tmp"), 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "..", "far"), "far")
	fixture.Link(t, "../far", filepath.Join(root, ".l.roost-0123456789ab.tmp"))
	fixture.Link(t, dead, filepath.Join(root, ".m.roost-0123456789ab.tmp"))
	want := tree(t, root)
	delete(want, dead)
	fixture.WriteFile(t, filepath.Join(root, ".two\nlines.roost-0123456789ab.tmp"), "dead")

	dir, err := w.pinFolder(root, true)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.release(true)
	alive, err := newTemp(t.Context(), dir.Root, "f", []byte("being written"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want[alive.name] = "being written"
	if n, err := w.Sweep(resolve(t, w, "anything")); n != 2 || err != nil {
		t.Errorf("Sweep removed %d, %v, want 2, no error", n, err)
	}
	if d := cmp.Diff(want, tree(t, root)); d != "" {
		t.Error(d)
	}
	if _, err := alive.rename("f", true); err != nil {
		t.Errorf("the one that was being written: %v", err)
	}
	if n, err := w.Sweep(resolve(t, w, "no/such/folder")); n != 0 || err != nil {
		t.Errorf("without a folder: %d, %v", n, err)
	}
	if n, err := w.Sweep(resolve(t, w, ".")); n != 0 || err != nil {
		t.Errorf("the root has no name of its own: %d, %v", n, err)
	}
}

// Between making a file and locking it a writer may be late, by far less than a second.
func TestAFileThatWasJustMadeIsGivenTimeToBeLocked(t *testing.T) {
	const name = ".f.roost-0123456789ab.tmp"
	for _, tt := range []struct {
		name    string
		content string
		age     time.Duration
		locked  time.Duration // after so long; 0: never
		removed int
		took    time.Duration
	}{
		{"just made, then locked", "", 0, maxUnlocked / 2, 0, maxUnlocked/2 + maxUnlocked/200},
		{"just made, and its writer is dead", "", 0, 0, 1, maxUnlocked},
		{"made a while ago", "", maxUnlocked / 4, 0, 1, maxUnlocked * 3 / 4},
		{"old", "", time.Hour, 0, 1, 0},
		{"from a clock that is ahead", "", -time.Hour, 0, 1, maxUnlocked},
		{"it has content", "x", 0, 0, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, name)
			fixture.WriteFile(t, path, tt.content)
			dir, err := os.OpenRoot(root)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				if err := os.Chtimes(path, begin, begin.Add(-tt.age)); err != nil {
					t.Fatal(err)
				}
				if tt.locked > 0 {
					f, err := os.OpenFile(path, os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					go func() {
						time.Sleep(tt.locked)
						if held, err := lockFile(f); !held {
							t.Error("the writer does not get the lock: ", err)
						}
						if _, err := f.WriteString("x"); err != nil {
							t.Error(err)
						}
					}()
				}
				removed := sweep(dir)
				if took := time.Since(begin); removed != tt.removed || took > tt.took || took < tt.took-maxUnlocked/200 {
					t.Errorf("removed %d after %v, want %d after %v", removed, took, tt.removed, tt.took)
				}
			})
		})
	}
}

// Writers and sweepers side by side, as several processes are: no write fails for
// the sweeping.
func TestSweepingDoesNotDisturbWriters(t *testing.T) {
	w, root := open(t)
	stop, swept := make(chan struct{}), make(chan int)
	for range 3 {
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					swept <- n
					return
				default:
					dir, err := w.pinFolder(root, true)
					if err != nil {
						t.Error(err)
					} else {
						n += sweep(dir.Root)
						dir.release(true)
					}
				}
			}
		}()
	}
	p := resolve(t, w, "f")
	for i := range 100 {
		if _, err := w.Write(t.Context(), p, []byte(fmt.Sprint(i)), AnyContent); err != nil {
			t.Errorf("write %d: %v", i, err)
			break
		}
	}
	close(stop)
	total := 0
	for range 3 {
		total += <-swept
	}
	t.Logf("%d new files were taken away before they were locked", total)
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
