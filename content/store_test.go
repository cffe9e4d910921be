package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestReadingCreatesNothing(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	h := hashOf("x")
	if s.Has(h) || s.Contains(h) || s.Contains("no hash") {
		t.Error("an empty store has a content")
	}
	if _, err := s.Read(ctx, h, 0); !errors.Is(err, ErrMissing) {
		t.Errorf("read: got %v, want ErrMissing", err)
	}
	if _, err := s.Name("x"); !errors.Is(err, ErrMissing) {
		t.Errorf("name: got %v, want ErrMissing", err)
	}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("names: %v, %v", names, err)
	}
	fixture.NoError(t, s.RemoveName("x"))
	if got, err := s.Collect(ctx, CollectOptions{}); err != nil || got != (Collected{}) {
		t.Errorf("collect: %v, %v", got, err)
	}
	if n, err := s.Size(); n != 0 || err != nil {
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

func TestWhatIsWrittenIsRead(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	contents := []string{
		"", "a", "hello\n", strings.Repeat("line\r\n", 100_000), text(1, 300<<10),
		text(2, inMemory), text(2, inMemory+1), strings.Repeat("\x00", 6<<20),
	}
	hashes := map[Hash]string{}
	write(t, s, func(b *Batch) {
		for i, c := range contents {
			h := fixture.Must[Hash](t)(b.AddFrom(strings.NewReader(c), int64(len(c))))
			if again := fixture.Must[Hash](t)(b.Add([]byte(c))); h != hashOf(c) || again != h {
				t.Errorf("content %d: got %s and %s, want %s", i, h, again, hashOf(c))
			}
			hashes[h] = c
		}
		if s.Has(hashOf("a")) {
			t.Error("an open batch is visible")
		}
	})
	for name, s := range map[string]*Store{"same": s, "other": openStore(t, s.dir)} {
		for h, want := range hashes {
			got := fixture.Must[[]byte](t)(s.Read(ctx, h, int64(len(want))))
			fixture.NoError(t, s.Verify(ctx, h))
			if string(got) != want || !s.Has(h) || !s.Contains(h) {
				t.Errorf("%s: %s reads as %d bytes, want %d", name, h, len(got), len(want))
			}
			if len(want) > 1 {
				if _, err := s.Read(ctx, h, int64(len(want)-1)); !errors.Is(err, ErrTooLarge) {
					t.Errorf("%s: a limit one below the size: got %v", name, err)
				}
			}
		}
	}
	if size := fixture.Must[int64](t)(s.Size()); size > 8<<20 {
		t.Errorf("the store takes %d bytes", size)
	}
}

func TestABatchIsOneBundleOrNothing(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	count := func(want int) {
		t.Helper()
		if got := listed(t, s, bundlesDir); len(got) != want {
			t.Errorf("got bundles %q, want %d", got, want)
		}
		if left := listed(t, s, tempDir); len(left) != 0 {
			t.Errorf("temporary files are left: %v", left)
		}
	}
	first := commit(t, s, map[string]string{"a": "1", "b": "2"})
	count(1)
	if again := commit(t, s, map[string]string{"a": "1", "b": "2"}); again != first {
		t.Errorf("the same state: got %s, want %s", again, first)
	}
	count(1)
	b := fixture.Must[*Batch](t)(s.Begin(ctx))
	fixture.Must[Hash](t)(b.Add([]byte("dropped")))
	fixture.Must[Hash](t)(b.AddFrom(strings.NewReader(text(1, 5<<20)), 5<<20))
	b.Discard()
	b.Discard()
	count(1)
	if _, err := b.Add(nil); err == nil || b.Close() == nil {
		t.Error("a discarded batch accepts more")
	}
	// The same content from two processes that do not see each other: one collection makes it one again.
	x, y := openStore(t, s.dir), openStore(t, s.dir)
	bx, by := fixture.Must[*Batch](t)(x.Begin(ctx)), fixture.Must[*Batch](t)(y.Begin(ctx))
	for _, b := range []*Batch{bx, by} {
		fixture.Must[Hash](t)(b.Add([]byte("twice")))
	}
	fixture.NoError(t, bx.Close())
	fixture.NoError(t, by.Close())
	count(3)
	if s.Has(hashOf("dropped")) || !s.Has(hashOf("twice")) {
		t.Error("the wrong batches are present")
	}
}

func TestAStreamHasTheAnnouncedLength(t *testing.T) {
	s := newStore(t)
	large := text(3, inMemory+100)
	for _, c := range []struct {
		content string
		size    int64
	}{{"abc", 4}, {"abc", 2}, {"abc", -1}, {"", 1}, {large, inMemory + 101}, {large, inMemory + 99}} {
		write(t, s, func(b *Batch) {
			if _, err := b.AddFrom(strings.NewReader(c.content), c.size); !errors.Is(err, ErrLength) {
				t.Errorf("%d bytes announced as %d: got %v", len(c.content), c.size, err)
			}
			fixture.Must[Hash](t)(b.Add(fmt.Appendf(nil, "after %d %d", len(c.content), c.size)))
		})
	}
	trouble := errors.New("a bad disk")
	write(t, s, func(b *Batch) {
		if _, err := b.AddFrom(io.MultiReader(strings.NewReader(large), failing{trouble}), inMemory*2); !errors.Is(err, trouble) {
			t.Errorf("a failing stream: got %v", err)
		}
		fixture.Must[Hash](t)(b.Add([]byte("after it")))
	})
	for _, want := range []string{"after it", "after 3 4", fmt.Sprintf("after %d %d", len(large), inMemory+99)} {
		if got := read(t, s, hashOf(want)); got != want {
			t.Errorf("after a bad stream: got %q, want %q", got, want)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestALargeFileNeedsLittleMemory(t *testing.T) {
	size := int64(64 << 20)
	if testing.Short() {
		size = 8 << 20
	}
	s := newStore(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var h Hash
	write(t, s, func(b *Batch) { h = fixture.Must[Hash](t)(b.AddFrom(&noise{left: size, x: 7}, size)) })
	fixture.NoError(t, s.Verify(context.Background(), h))
	runtime.ReadMemStats(&after)
	// Everything that was allocated on the way, not what was in use at one time.
	if all := int64(after.TotalAlloc - before.TotalAlloc); all > 60<<20 {
		t.Errorf("%d MB were allocated for a file of %d MB", all>>20, size>>20)
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

func TestAContextEndsTheWork(t *testing.T) {
	s := newStore(t)
	large := text(1, inMemory+1)
	write(t, s, func(b *Batch) { fixture.Must[Hash](t)(b.AddFrom(strings.NewReader(large), int64(len(large)))) })
	add(t, s, "small")
	ctx, cancel := context.WithCancel(context.Background())
	b := fixture.Must[*Batch](t)(s.Begin(ctx))
	cancel()
	if _, err := b.AddFrom(&noise{left: 1 << 40, x: 1}, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("add: got %v", err)
	}
	if err := b.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: got %v", err)
	}
	if _, err := s.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("begin: got %v", err)
	}
	if err := s.Verify(ctx, hashOf(large)); !errors.Is(err, context.Canceled) {
		t.Errorf("copy: got %v", err)
	}
}

// A damaged content is noticed, counts as absent from then on, and the next batch that has it writes it again.
func TestADamagedContentIsWrittenAgain(t *testing.T) {
	ctx := context.Background()
	for _, size := range []int{5000, inMemory + 4096} {
		s := newStore(t)
		c := text(9, size)
		put := func(s *Store) {
			write(t, s, func(b *Batch) { fixture.Must[Hash](t)(b.AddFrom(strings.NewReader(c), int64(size))) })
		}
		put(s)
		s.Settle()
		damage(t, s, hashOf(c))
		o := openStore(t, s.dir)
		if !o.Contains(hashOf(c)) {
			t.Error("a content whose damage was not seen yet counts as absent")
		}
		if err := o.Verify(ctx, hashOf(c)); !errors.Is(err, ErrDamaged) {
			t.Errorf("copy: got %v, want ErrDamaged", err)
		}
		if o.Contains(hashOf(c)) || o.Has(hashOf(c)) {
			t.Error("a content seen as damaged counts as present: no batch would write it again")
		}
		put(o)
		if got := read(t, o, hashOf(c)); got != c || !o.Contains(hashOf(c)) {
			t.Error("the content that was written again cannot be read")
		}
		// Which copy comes first is chance. Another process reads the good one; of a large content, at the second try.
		for range 3 {
			o := openStore(t, s.dir)
			if size > inMemory {
				_ = o.Verify(ctx, hashOf(c))
			}
			if got := read(t, o, hashOf(c)); got != c {
				t.Error("another process reads the damaged copy")
			}
		}
	}
}

// Whatever byte of a bundle changes, no wrong content is ever returned, and nothing is removed because of it.
func TestEveryDamagedByteIsNoticed(t *testing.T) {
	s := newStore(t)
	h := commit(t, s, map[string]string{"a": text(1, 300), "b": ""})
	fixture.NoError(t, s.SetName("t", h))
	s.Settle()
	path := s.path(bundlesDir, listed(t, s, bundlesDir)[0])
	whole := fixture.Must[[]byte](t)(os.ReadFile(path))
	want := files(t, s, h)
	for i := range whole {
		fixture.NoError(t, os.WriteFile(path, append(append(bytes.Clone(whole[:i]), whole[i]^0x10), whole[i+1:]...), 0o600))
		o := fixture.Must[*Store](t)(Open(s.dir))
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

func TestAManifestNeedsItsContents(t *testing.T) {
	s := newStore(t)
	write(t, s, func(b *Batch) {
		for _, m := range []Manifest{
			{Files: []File{{Path: "f", Hash: hashOf("absent")}}}, {Parents: []Hash{hashOf("absent")}}, {Parents: []Hash{"no hash"}},
		} {
			if _, err := b.AddManifest(m); err == nil {
				t.Errorf("%+v was added", m)
			}
		}
		fixture.Must[Hash](t)(b.Add([]byte("a file")))
	})
	if err := s.SetName("t", hashOf("a file")); !errors.Is(err, ErrMissing) {
		t.Errorf("a file as a manifest: got %v", err)
	}
	if err := s.SetName("t", hashOf("absent")); !errors.Is(err, ErrMissing) {
		t.Errorf("an absent manifest: got %v", err)
	}
	for _, name := range []string{"", "a/b", "..", ".x", "A", strings.Repeat("a", 201)} {
		if _, err := s.Name(name); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%q was accepted as an owner", name)
		}
	}
}

// A file with the bytes of a manifest does not take the manifest's place: a collection follows what a manifest names.
func TestAFileWithTheBytesOfAManifest(t *testing.T) {
	s := newStore(t)
	var manifest string
	write(t, s, func(b *Batch) { fixture.Must[Hash](t)(b.Add([]byte("needed"))) })
	probe := newStore(t)
	h := commit(t, probe, map[string]string{"f": "needed"})
	manifest = read(t, probe, h)
	for name, first := range map[string]func(){
		"an earlier batch": func() { add(t, s, manifest) },
		"the same batch":   func() {},
	} {
		first()
		write(t, s, func(b *Batch) {
			fixture.Must[Hash](t)(b.Add([]byte(manifest)))
			if got := fixture.Must[Hash](t)(commitTo(b, map[string]string{"f": "needed"})); got != h {
				t.Fatalf("got manifest %s, want %s", got, h)
			}
		})
		fixture.NoError(t, s.SetName("t", h))
		s.Settle()
		collect(t, s)
		collect(t, s)
		if got := files(t, openStore(t, s.dir), h); got["f"] != "needed" {
			t.Errorf("%s: got %v", name, got)
		}
		fixture.NoError(t, s.RemoveName("t"))
		if got := collect(t, s); got.Kept != 0 {
			t.Errorf("%s: the collection kept %d contents", name, got.Kept)
		}
	}
}

// A bundle with so many contents that it is searched in its own index.
func TestABundleOfManyContents(t *testing.T) {
	s := newStore(t)
	c := func(i int) string { return fmt.Sprint("content ", i) }
	h := commit(t, s, map[string]string{"small": "bundle"})
	fixture.NoError(t, s.SetName("t", h))
	write(t, s, func(b *Batch) {
		for i := range smallBundle + 1 {
			fixture.Must[Hash](t)(b.Add([]byte(c(i))))
		}
	})
	for name, s := range map[string]*Store{"writer": s, "other": openStore(t, s.dir)} {
		for i := range smallBundle + 1 {
			if !s.Contains(hashOf(c(i))) {
				t.Fatalf("%s: content %d is missing", name, i)
			}
		}
		if s.Contains(hashOf(c(smallBundle + 1))) {
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
	if s.Contains(hashOf(c(7))) || !s.Contains(h) {
		t.Error("the wrong bundle was removed")
	}
}

func TestWhatNamesReachIsCounted(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	shared := text(1, 10_000)
	a := commit(t, s, map[string]string{"s": shared, "a": text(2, 1000)})
	b := commit(t, s, map[string]string{"s": shared, "b": text(3, 1000)}, a)
	fixture.NoError(t, s.SetName("a", a))
	fixture.NoError(t, s.SetName("b", b))
	na, bytesA, err := s.Reaches(ctx, "a")
	fixture.NoError(t, err)
	nb, bytesB, err := s.Reaches(ctx, "b")
	fixture.NoError(t, err)
	if na != 3 || nb != 5 || bytesA < 4000 || bytesB <= bytesA || bytesB > 2*bytesA || bytesB > fixture.Must[int64](t)(s.Size()) {
		t.Errorf("a reaches %d contents of %d bytes, b %d of %d", na, bytesA, nb, bytesB)
	}
	if _, _, err := s.Reaches(ctx, "c"); !errors.Is(err, ErrMissing) {
		t.Errorf("a name that does not exist: got %v", err)
	}
}

func TestOwnerNames(t *testing.T) {
	got := map[string]string{}
	for _, in := range []string{"0198-task", "Task 1", "a.b", ".", "x.lock", "", "VSCode-roo.T_1"} {
		got[in] = OwnerName(in)
		if err := checkOwner(got[in]); err != nil {
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
	if a, b := OwnerName(long), OwnerName(long+"x"); len(a) != 142 || a == b || checkOwner(a) != nil {
		t.Errorf("201 letters: got %q and %q", a, b)
	}
}
