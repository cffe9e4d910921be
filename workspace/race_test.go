//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// trap is a workspace whose folder d, or file d/f, somebody replaces by a link to
// outside again and again while the test works on them.
type trap struct {
	w       *Workspace
	root    string
	outside string
	swaps   int
	stop    chan struct{}
	done    sync.WaitGroup
}

func newTrap(t *testing.T, swap func(tr *trap, round int)) *trap {
	t.Helper()
	w, root := open(t)
	tr := &trap{w: w, root: root, outside: filepath.Join(root, "..", "outside"), stop: make(chan struct{})}
	fixture.WriteFile(t, filepath.Join(root, "d", "f"), "inside")
	fixture.WriteFile(t, filepath.Join(root, "d", "sub", "f"), "inside")
	fixture.WriteFile(t, filepath.Join(tr.outside, "f"), "SECRET")
	fixture.WriteFile(t, filepath.Join(tr.outside, "sub", "f"), "SECRET")
	fixture.WriteFile(t, filepath.Join(root, ".roo", "f"), "SECRET")
	tr.done.Add(1)
	go func() {
		defer tr.done.Done()
		for {
			select {
			case <-tr.stop:
				return
			default:
				swap(tr, tr.swaps)
				tr.swaps++
			}
		}
	}()
	t.Cleanup(tr.end)
	return tr
}

func (tr *trap) end() {
	select {
	case <-tr.stop:
	default:
		close(tr.stop)
		tr.done.Wait()
	}
}

// swapFolder puts a link in the place of d and takes it away again.
func swapFolder(target string) func(*trap, int) {
	return func(tr *trap, round int) {
		d, aside := filepath.Join(tr.root, "d"), filepath.Join(tr.root, "aside")
		_ = os.Rename(d, aside)
		_ = os.Symlink(target, d)
		pause(round)
		_ = os.Remove(d)
		_ = os.Rename(aside, d)
		pause(round + 1)
	}
}

func swapFile(target string) func(*trap, int) {
	return func(tr *trap, round int) {
		f, aside := filepath.Join(tr.root, "d", "f"), filepath.Join(tr.root, "d", "aside")
		_ = os.Symlink(target, aside)
		_ = os.Rename(aside, f)
		pause(round)
		_ = os.WriteFile(aside, []byte("inside"), 0o600)
		_ = os.Rename(aside, f)
		pause(round + 1)
	}
}

// pause lets the other side in between, for as long as one of its steps takes.
func pause(round int) {
	for range rand.N(60) * (round % 4) {
		_, _ = os.Lstat("/")
	}
}

// work repeats a step until it has met both a success and a refusal often enough,
// or for a second.
func work(t *testing.T, step func() error) {
	t.Helper()
	fine, refused := 0, 0
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline) && (fine < 50 || refused < 200); {
		if err := step(); err == nil {
			fine++
		} else {
			refused++
		}
	}
	t.Logf("%d went through, %d were refused", fine, refused)
	if fine == 0 || refused == 0 {
		t.Log("the race was not met on this machine")
	}
}

func TestWriteIsNotLedOutside(t *testing.T) {
	for name, swap := range map[string]func(*trap, int){
		"a link to outside for the folder":         swapFolder("../outside"),
		"an absolute link for the folder":          swapFolder("/proc/self/cwd/../outside"),
		"a link to a protected folder":             swapFolder(".roo"),
		"a link to outside for the file":           swapFile("../../outside/f"),
		"a link to a protected file, for the file": swapFile("../.roo/f"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrap(t, swap)
			n := 0
			work(t, func() error {
				for _, path := range []string{"d/f", "d/sub/f", fmt.Sprintf("d/new%d/f", n)} {
					// Judged as the plan did, in peace.
					p := Path{Given: path, Abs: filepath.Join(tr.root, path), Real: filepath.Join(tr.root, path), Readable: path}
					n++
					if _, err := tr.w.Write(t.Context(), p, []byte("written"), AnyContent); err != nil {
						return err
					}
				}
				return nil
			})
			tr.end()
			for _, dir := range []string{tr.outside, filepath.Join(tr.root, ".roo")} {
				for path, text := range tree(t, dir) {
					if text == "written" || strings.Contains(path, "new") || strings.Contains(path, ".roost-") {
						t.Errorf("%s/%s was written: %q", dir, path, text)
					}
				}
			}
		})
	}
}

func TestReadIsNotLedOutside(t *testing.T) {
	for name, swap := range map[string]func(*trap, int){
		"folder": swapFolder("../outside"),
		"file":   swapFile("../../outside/f"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrap(t, swap)
			secret := HashOf([]byte("SECRET"))
			p := Path{Given: "d/f", Real: filepath.Join(tr.root, "d", "f"), Readable: "d/f"}
			work(t, func() error {
				st, err := tr.w.StatPath(t.Context(), p)
				if st.Hash == secret {
					t.Fatal("the state of a file outside was given")
				}
				data, _, readErr := tr.w.Read(t.Context(), p, 0)
				if strings.Contains(string(data), "SECRET") {
					t.Fatal("a file outside was read")
				}
				return errors.Join(err, readErr)
			})
		})
	}
}

// Two who make the same new file: one wins, whatever the moment.
func TestOneOfManyMakesTheFile(t *testing.T) {
	w, root := open(t)
	for round := range 20 {
		path := fmt.Sprintf("new%d/deep/f", round)
		p := resolve(t, w, path)
		var wg sync.WaitGroup
		won := make(chan string, 8)
		for i := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				mine := fmt.Sprint("writer ", i)
				switch _, err := w.Write(t.Context(), p, []byte(mine), ""); {
				case err == nil:
					won <- mine
				case !errors.Is(err, ErrChanged) && !errors.Is(err, fs.ErrNotExist):
					t.Errorf("the loser is told: %v", err)
				}
			}()
		}
		wg.Wait()
		close(won)
		winners := 0
		for mine := range won {
			winners++
			if data, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(data) != mine {
				t.Errorf("%s won, the file holds %q, %v", mine, data, err)
			}
		}
		if winners != 1 {
			t.Fatalf("%d writers made the same file", winners)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*", "*", ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Somebody who edits without asking, as an editor does: either the write is
// refused, or theirs comes after ours. It is never lost unseen before the look.
func TestAnEditBetweenLookAndWriteIsSeen(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "f")
	for range 30 {
		fixture.WriteFile(t, name, "base")
		st, err := w.Stat(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		edited := make(chan struct{})
		go func() {
			defer close(edited)
			fixture.WriteFile(t, name+".theirs", "theirs")
			_ = os.Rename(name+".theirs", name)
		}()
		<-edited
		if _, err := w.Write(t.Context(), resolve(t, w, "f"), []byte("ours"), st.Hash); !errors.Is(err, ErrChanged) {
			t.Fatalf("the edit was overwritten: %v", err)
		}
	}
}
