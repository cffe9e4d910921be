//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// plant makes a workspace with files given as name, content pairs.
func plant(t *testing.T, files ...string) (*Workspace, string) {
	t.Helper()
	w, root := open(t)
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(root, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		fixture.WriteFile(t, name, files[i+1])
	}
	return w, root
}

// to is a change of what is there now; "-" takes the file away.
func to(t *testing.T, w *Workspace, path, data string) Change {
	t.Helper()
	p := resolve(t, w, path)
	now, err := w.StatPath(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return Change{Path: p, Data: []byte(data), Remove: data == "-", Expect: now.Hash}
}

func TestApplyMakesAllChanges(t *testing.T) {
	w, root := plant(t, "a", "old a", "d/gone", "x", "moved", "m")
	script := filepath.Join(root, "moved")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "a"), 0o640); err != nil {
		t.Fatal(err)
	}
	move := to(t, w, "new/deep/moved", "m2")
	from := resolve(t, w, "moved")
	move.Like = &from
	states, err := w.Apply(t.Context(), []Change{to(t, w, "a", "new a"), to(t, w, "d/gone", "-"), move, to(t, w, "moved", "-")})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{".": "d---------", "a": "new a", "d": "d---------", "new": "d---------", "new/deep": "d---------", "new/deep/moved": "m2"}
	if d := cmp.Diff(want, tree(t, root)); d != "" {
		t.Error(d)
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o640, "new/deep/moved": 0o750} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
	for i, hash := range []string{HashOf([]byte("new a")), "", HashOf([]byte("m2")), ""} {
		if states[i].Hash != hash {
			t.Errorf("state %d: %+v", i, states[i])
		}
	}
	if now, err := w.StatPath(t.Context(), resolve(t, w, "a")); err != nil || now != states[0] {
		t.Errorf("the state given is %+v, the file's %+v", states[0], now)
	}
}

// One file of a set that is not as expected keeps all the others from being touched.
func TestApplyIsAllOrNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, root string)
		with  func(t *testing.T, w *Workspace) Change
		want  error
	}{
		"changed": {func(t *testing.T, root string) { fixture.WriteFile(t, filepath.Join(root, "b"), "theirs") }, nil, ErrChanged},
		"gone":    {func(t *testing.T, root string) { os.Remove(filepath.Join(root, "b")) }, nil, ErrChanged},
		"a folder": {func(t *testing.T, root string) {
			os.Remove(filepath.Join(root, "b"))
			os.Mkdir(filepath.Join(root, "b"), 0o755)
		}, nil, ErrNotRegular},
		"a link": {func(t *testing.T, root string) {
			os.Remove(filepath.Join(root, "b"))
			fixture.Link(t, "a", filepath.Join(root, "b"))
		}, nil, ErrChanged},
		"read-only": {func(t *testing.T, root string) { os.Chmod(filepath.Join(root, "b"), 0o444) }, nil, fs.ErrPermission},
		"made meanwhile": {func(t *testing.T, root string) { fixture.WriteFile(t, filepath.Join(root, "new"), "theirs") },
			func(t *testing.T, w *Workspace) Change {
				return Change{Path: resolve(t, w, "new"), Data: []byte("ours")}
			}, ErrChanged},
		"removed, not there": {func(*testing.T, string) {},
			func(t *testing.T, w *Workspace) Change { return Change{Path: resolve(t, w, "none"), Remove: true} }, fs.ErrNotExist},
		"the root": {func(*testing.T, string) {},
			func(t *testing.T, w *Workspace) Change {
				return Change{Path: resolve(t, w, "."), Remove: true, Expect: "x"}
			}, ErrNotRegular},
		"a folder led away": {func(t *testing.T, root string) {
			os.Rename(filepath.Join(root, "d"), filepath.Join(root, "e"))
			fixture.Link(t, "e", filepath.Join(root, "d"))
		}, nil, ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := plant(t, "a", "a", "b", "b", "d/c", "c")
			set := []Change{to(t, w, "a", "2"), to(t, w, "fresh/x", "x"), to(t, w, "b", "-"), to(t, w, "d/c", "2")}
			if tt.with != nil {
				set[2] = tt.with(t, w)
			}
			tt.spoil(t, root)
			unchanged(t, root, func() {
				if _, err := w.Apply(t.Context(), set); !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestApplyTakesAFileOnce(t *testing.T) {
	w, root := plant(t, "a", "a")
	fixture.Link(t, "a", filepath.Join(root, "also"))
	unchanged(t, root, func() {
		if _, err := w.Apply(t.Context(), []Change{to(t, w, "a", "1"), to(t, w, "also", "2")}); err == nil {
			t.Error("one file was changed twice")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Apply(ctx, []Change{to(t, w, "a", "1")}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before it began: %v", err)
		}
	})
}

// However far a set has come, what was done of it can be taken back: the same files on
// disk, with their modes, and no folder more.
func TestTakingBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "ws")
		if err != nil {
			r.Fatal(err)
		}
		w, err := Open(dir)
		if err != nil {
			r.Fatal(err)
		}
		root := w.Root()
		names := []string{"a", "b", "d/c", "n/e/f", "n/g"}
		var set []Change
		inodes := map[string]uint64{}
		for i, name := range names {
			p := resolve(t, w, name)
			c := Change{Path: p, Data: []byte("new " + name)}
			if i < 3 {
				_ = os.MkdirAll(filepath.Dir(p.Real), 0o755)
				fixture.WriteFile(t, p.Real, "old "+name)
				now, _ := w.StatPath(t.Context(), p)
				c.Expect, inodes[name] = now.Hash, now.Inode
				c.Remove = rapid.Bool().Draw(r, "remove "+name)
			}
			set = append(set, c)
		}
		set = rapid.Permutation(set).Draw(r, "order")
		before := tree(t, root)
		upTo := rapid.IntRange(0, len(set)).Draw(r, "placed")
		theirs := -1
		if upTo > 0 && rapid.Bool().Draw(r, "somebody goes on with one") {
			theirs = rapid.IntRange(0, upTo-1).Draw(r, "which")
		}
		var steps []*changeStep
		for _, c := range set {
			s := &changeStep{Change: c}
			steps = append(steps, s)
			if err := errors.Join(w.prepare(t.Context(), s), s.check(t.Context(), true)); err != nil {
				r.Fatal(err)
			}
		}
		for _, s := range steps[:upTo] {
			if err := s.apply(); err != nil {
				r.Fatal(err)
			}
		}
		if theirs >= 0 {
			p := set[theirs].Path
			os.Remove(p.Real)
			fixture.WriteFile(t, p.Real, "theirs")
			before[p.Readable] = "theirs"
			for dir := filepath.Dir(p.Readable); dir != "."; dir = filepath.Dir(dir) {
				before[dir] = "d---------"
			}
		}
		first := errors.New("the disk is full")
		err = rollBack(steps, first)
		for _, s := range slices.Backward(steps) {
			s.close(false)
		}
		if !errors.Is(err, first) || errors.Is(err, ErrPartly) != (theirs >= 0) {
			r.Fatal(err)
		}
		if theirs >= 0 && !strings.Contains(err.Error(), set[theirs].Path.Readable) {
			r.Fatalf("%v does not name %s", err, set[theirs].Path.Readable)
		}
		if d := cmp.Diff(before, tree(t, root)); d != "" {
			r.Fatal(d)
		}
		for name, inode := range inodes {
			if now, _ := w.StatPath(t.Context(), resolve(t, w, name)); now.Inode != inode && (theirs < 0 || set[theirs].Path.Readable != name) {
				r.Fatalf("%s is another file now", name)
			}
		}
	})
}

// Of sets that were made for the same state one is applied, and whole.
func TestConcurrentSetsDoNotMix(t *testing.T) {
	w, root := plant(t, "a", "0", "b", "0")
	const writers = 6
	var wg sync.WaitGroup
	errs := make([]error, writers)
	var sets [writers][]Change
	for i := range writers {
		text := fmt.Sprint("writer ", i)
		sets[i] = []Change{to(t, w, "a", text), to(t, w, "b", text), to(t, w, "new", text)}
		if i%2 == 1 {
			slices.Reverse(sets[i])
		}
	}
	for i := range writers {
		wg.Go(func() { _, errs[i] = w.Apply(t.Context(), sets[i]) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			want := map[string]string{".": "d---------"}
			for _, name := range []string{"a", "b", "new"} {
				want[name] = fmt.Sprint("writer ", i)
			}
			if d := cmp.Diff(want, tree(t, root)); d != "" {
				t.Error(d)
			}
		} else if !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d sets were applied", won)
	}
}
