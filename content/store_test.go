package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestReadingCreatesNothing(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	h := hashOf("x")
	if s.Has(context.Background(), h) || s.Contains(context.Background(), h) || s.Contains(context.Background(), "no hash") {
		t.Error("an empty store has a content")
	}
	if _, err := s.Read(ctx, h, 0); !errors.Is(err, ErrMissing) {
		t.Errorf("read: got %v, want ErrMissing", err)
	}
	if _, err := s.Name(context.Background(), "x"); !errors.Is(err, ErrMissing) {
		t.Errorf("name: got %v, want ErrMissing", err)
	}
	if names, err := s.Names(context.Background()); err != nil || len(names) != 0 {
		t.Errorf("names: %v, %v", names, err)
	}
	fixture.NoError(t, s.RemoveName(context.Background(), "x"))
	if got, err := s.Collect(ctx, CollectOptions{}); err != nil || got != (Collected{}) {
		t.Errorf("collect: %v, %v", got, err)
	}
	if n, err := s.Size(context.Background()); n != 0 || err != nil {
		t.Errorf("size: %d, %v", n, err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading created a folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	fixture.NoError(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(file); err == nil {
		t.Error("a file was opened as a store")
	}
}

// noise is content that cannot be compressed.
type noise struct {
	left int64
	x    uint64
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left)]
	for i := range p {
		n.x ^= n.x << 13
		n.x ^= n.x >> 7
		n.x ^= n.x << 17
		p[i] = byte(n.x >> 24)
	}
	n.left -= int64(len(p))
	return len(p), nil
}

// Whatever byte of a bundle changes, no wrong content is ever returned, and nothing is removed because of it.
func TestEveryDamagedByteIsNoticed(t *testing.T) {
	s := newStore(t)
	h := commit(t, s, map[string]string{"a": text(1, 300), "b": ""})
	fixture.NoError(t, s.SetName(context.Background(), "t", h))
	s.Settle()
	path := s.path(bundlesDir, listed(t, s, bundlesDir)[0])
	whole := fixture.Must[[]byte](t)(os.ReadFile(path))
	want := files(t, s, h)
	for i := range whole {
		fixture.NoError(t, os.WriteFile(path, append(append(bytes.Clone(whole[:i]), whole[i]^0x10), whole[i+1:]...), 0o600))
		o := fixture.Must[*Folder](t)(Open(s.dir))
		m, err := o.Manifest(context.Background(), h)
		for _, f := range m.Files {
			data, e := o.Read(context.Background(), f.Hash, 0)
			if e == nil && string(data) != want[f.Path] {
				t.Fatalf("byte %d: %s reads as %q", i, f.Path, data)
			}
			err = errors.Join(err, e)
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d: got %v, want ErrDamaged", i, err)
		}
		if done, err := o.Collect(context.Background(), CollectOptions{}); err == nil && done.Removed > 0 {
			t.Fatalf("byte %d: the collection removed %d contents", i, done.Removed)
		}
		if len(listed(t, s, bundlesDir)) != 1 {
			t.Fatalf("byte %d: the bundle was replaced", i)
		}
	}
	for _, cut := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		fixture.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		if _, err := openStore(t, s.dir).Collect(context.Background(), CollectOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: got %v, want ErrDamaged", cut, err)
		}
	}
}

// A bundle with so many contents that it is searched in its own index.
func TestABundleOfManyContents(t *testing.T) {
	s := newStore(t)
	c := func(i int) string { return fmt.Sprint("content ", i) }
	h := commit(t, s, map[string]string{"small": "bundle"})
	fixture.NoError(t, s.SetName(context.Background(), "t", h))
	write(t, s, func(b Batch) {
		for i := range smallBundle + 1 {
			fixture.Must[Hash](t)(b.Add([]byte(c(i))))
		}
	})
	for name, s := range map[string]*Folder{"writer": s, "other": openStore(t, s.dir)} {
		for i := range smallBundle + 1 {
			if !s.Contains(context.Background(), hashOf(c(i))) {
				t.Fatalf("%s: content %d is missing", name, i)
			}
		}
		if s.Contains(context.Background(), hashOf(c(smallBundle+1))) {
			t.Errorf("%s: there is one too many", name)
		}
		if got := read(t, s, hashOf(c(7))); got != c(7) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	s.Settle()
	if got := collect(t, s); got.Removed != smallBundle+1 || got.Kept != 2 {
		t.Errorf("collected: %+v", got)
	}
	if s.Contains(context.Background(), hashOf(c(7))) || !s.Contains(context.Background(), h) {
		t.Error("the wrong bundle was removed")
	}
}

func TestOwnerNames(t *testing.T) {
	got := map[string]string{}
	for _, in := range []string{"0198-task", "Task 1", "a.b", ".", "x.lock", "", "VSCode-roo.T_1"} {
		got[in] = OwnerName(in)
		if err := CheckOwner(got[in]); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{
		"0198-task": "0198-task", "Task 1": "%54ask%201", "a.b": "a.b", ".": "%2e", "x.lock": "x%2elock", "": "%",
		"VSCode-roo.T_1": "%56%53%43ode-roo%2e%54_1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	long := strings.Repeat("z", 201)
	if got := OwnerName(long[:200]); got != long[:200] {
		t.Errorf("200 letters: got %q", got)
	}
	if a, b := OwnerName(long), OwnerName(long+"x"); len(a) != 142 || a == b || CheckOwner(a) != nil {
		t.Errorf("201 letters: got %q and %q", a, b)
	}
}

// An archive may bring a chain of manifests of any length. A stack that grew with it would end the process.
func TestALongChainIsCopied(t *testing.T) {
	const long = 10_000
	ctx, from, to := t.Context(), newStore(t), newStore(t)
	var last Hash
	write(t, from, func(b Batch) {
		for i := range long {
			m := Manifest{Title: fmt.Sprint(i)}
			if i > 0 {
				m.Parents = []Hash{last}
			}
			last = fixture.Must[Hash](t)(b.AddManifest(m))
		}
	})
	fixture.NoError(t, from.SetName(ctx, "task", last))
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	if n, err := Copy(ctx, from, to, "task"); n != long || err != nil {
		t.Errorf("got %d contents, %v, want %d", n, err, long)
	}
}
