//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// What became of each order is told once, of those that are refused too, and the other
// ones of the same list are done.
func TestEachOrderIsToldOf(t *testing.T) {
	w, root := open(t)
	mk(root, "mode", "m", 0o600)
	mk(root, "already", "x", 0o644)
	mk(root, "theirs", "y", 0o644)
	x := fileOf("x", 0o644)
	orders := []RestoreStep{
		{Path: ".git/config", From: absent(1), To: x},
		{Path: "../out", From: absent(0), To: x},
		{Path: "", From: absent(0), To: x},
		{Path: "d/new", From: absent(1), To: x},
		{Path: "link", From: absent(0), To: linkOf("x")},
		{Path: "mode", From: fileOf("m", 0o600), To: fileOf("m", 0o644)},
		{Path: "already", From: fileOf("w", 0o644), To: x},
		{Path: "theirs", From: fileOf("w", 0o644), To: x},
	}
	want := []RestoreResult{LeftAlone, LeftAlone, LeftAlone, Restored, Restored, Restored, AlreadyThere, LeftAlone}
	for i := range orders {
		orders[i].Data = func() ([]byte, error) { return []byte("x"), nil }
	}
	got := map[int]RestoreResult{}
	b := w.NewRestorer()
	if err := b.RestoreAll(t.Context(), orders, func(i int, put RestoreResult) {
		if _, twice := got[i]; twice {
			t.Errorf("told twice of %q", orders[i].Path)
		}
		got[i] = put
	}); err != nil {
		t.Fatal(err)
	}
	for i, put := range want {
		if told, ok := got[i]; !ok || told != put {
			t.Errorf("%q: told %v of %v, want %v", orders[i].Path, ok, told, put)
		}
	}
	if d := cmp.Diff("already=644 x d/new=644 x link>x mode=644 m theirs=644 y", things(t, root)); d != "" {
		t.Error(d)
	}
}

// Only so many files are open and without their names at once, and when one cannot be had
// those that nothing was told of are as they were: no file, no folder, no leftover.
func TestManyOrdersAndOneThatFails(t *testing.T) {
	w, root := open(t)
	const n, bad = 3 * maxOpenRestores, 2*maxOpenRestores + 7
	broken := errors.New("cannot be read")
	told := map[int]bool{}
	var orders []RestoreStep
	for i := range n {
		text := fmt.Sprint("content ", i)
		orders = append(orders, RestoreStep{Path: fmt.Sprintf("d%03d/f", i), From: absent(1), To: fileOf(text, 0o644), Data: func() ([]byte, error) {
			if i-len(told) > maxOpenRestores {
				t.Errorf("at %d only %d have their names", i, len(told))
			}
			if i == bad {
				return nil, broken
			}
			return []byte(text), nil
		}})
	}
	err := w.NewRestorer().RestoreAll(t.Context(), orders, func(i int, _ RestoreResult) { told[i] = true })
	if want := orders[bad].Path; !errors.Is(err, broken) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want an error that names %s", err, want)
	}
	if len(told) != 2*maxOpenRestores {
		t.Errorf("told of %d", len(told))
	}
	for i := range n {
		_, err := os.Lstat(filepath.Join(root, fmt.Sprintf("d%03d", i)))
		if there := err == nil; there != told[i] {
			t.Errorf("the folder of %d is there: %v, told of it: %v", i, there, told[i])
		}
	}
}

// What a killed try left of a link is taken away by the next one that has the same
// intent; a folder that only has such a name is somebody's.
func TestLinksThatAKillLeft(t *testing.T) {
	for _, leftover := range []bool{true, false} {
		w, root := open(t)
		mk(root, "a", "x", 0o644)
		beside := linkTemp("a", HashOf([]byte("b")))
		want := "a>b"
		if leftover {
			fixture.Link(t, "b", filepath.Join(root, beside))
		} else {
			mk(root, beside+"/f", "mine", 0o600)
			want = beside + "/f=600 mine a=644 x"
		}
		put, err := w.NewRestorer().Restore(t.Context(), "a", fileOf("x", 0o644), linkOf("b"), func() ([]byte, error) { return []byte("b"), nil })
		if err != nil || (put == Restored) != leftover || (put == LeftAlone) == leftover {
			t.Errorf("a leftover: %v: %v, %v", leftover, put, err)
		}
		if d := cmp.Diff(want, things(t, root)); d != "" {
			t.Error(d)
		}
	}
}

// A content of exactly the limit is read.
func TestReadThingHasALimit(t *testing.T) {
	w, root := open(t)
	mk(root, "a", "12345", 0o644)
	if data, err := w.ReadEntry(t.Context(), "a", 5); err != nil || string(data) != "12345" {
		t.Errorf("got %q, %v, want no error and string(data) = \"12345\"", data, err)
	}
	var large *TooLargeError
	if _, err := w.ReadEntry(t.Context(), "a", 4); !errors.As(err, &large) || large.Size != 5 || large.Limit != 4 {
		t.Errorf("over the limit: %v", err)
	}
	if data, err := w.ReadEntry(t.Context(), "a", 0); err != nil || string(data) != "12345" {
		t.Errorf("without one: %q, %v", data, err)
	}
}

// All is done whatever fails, never more than a few at a time, and of several errors the
// first by number is given.
func TestTogether(t *testing.T) {
	for _, n := range []int{0, 1, maxParallelSyncs, 10 * maxParallelSyncs} {
		var did, now, most atomic.Int64
		_, err := forEachParallel(n, func(i int) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			did.Add(1)
			if i%3 == 2 {
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		if did.Load() != int64(n) || most.Load() > maxParallelSyncs {
			t.Errorf("%d of %d were done, %d at once", did.Load(), n, most.Load())
		}
		if n < 3 && err != nil || n >= 3 && (err == nil || err.Error() != "number 2") {
			t.Errorf("of %d: %v", n, err)
		}
	}
}
