package object

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
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLookingMakesNothing(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	id := blobID([]byte("x"))
	if s.Has(id) {
		t.Error("an empty store has an object")
	}
	if _, err := s.Read(ctx, id, 0); !errors.Is(err, ErrMissing) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.Ref("refs/roost/x"); !errors.Is(err, ErrMissing) {
		t.Errorf("ref: %v", err)
	}
	if err := s.SetRef("refs/roost/x", id); !errors.Is(err, ErrMissing) {
		t.Errorf("set ref: %v", err)
	}
	if refs, err := s.Refs(); err != nil || len(refs) != 0 {
		t.Errorf("refs: %v, %v", refs, err)
	}
	if got, err := s.Collect(ctx, CollectOptions{}); err != nil || got != (Collected{}) {
		t.Errorf("collect: %v, %v", got, err)
	}
	if n, err := s.Size(); n != 0 || err != nil {
		t.Errorf("size: %d, %v", n, err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made a folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(file); err == nil {
		t.Error("a file was opened as a store")
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	contents := []string{"", "a", "hello\n", strings.Repeat("line\r\n", 100_000), text(1, 300<<10), text(2, streamed+1), strings.Repeat("\x00", 6<<20)}
	ids := map[ID]string{}
	var last ID
	write(t, s, func(b *Batch) {
		var list []TreeEntry
		for i, c := range contents {
			id := must[ID](t)(b.BlobFrom(strings.NewReader(c), int64(len(c))))
			again := must[ID](t)(b.Blob([]byte(c)))
			if id != blobID([]byte(c)) || again != id {
				t.Errorf("content %d: %s, again %s, want %s", i, id, again, blobID([]byte(c)))
			}
			ids[id] = c
			list = append(list, TreeEntry{fmt.Sprint("f", i), ModeFile, id})
		}
		last = must[ID](t)(b.Commit(Commit{Tree: must[ID](t)(b.Tree(list)), Message: "all"}))
		if s.Has(last) {
			t.Error("a batch that is open is visible")
		}
	})
	ok(t, s.SetRef("refs/roost/t", last))
	for name, s := range map[string]*Store{"same": s, "other": opened(t, s.dir)} {
		for id, want := range ids {
			got := must[[]byte](t)(s.Read(ctx, id, int64(len(want))))
			var out bytes.Buffer
			ok(t, s.Copy(ctx, id, &out))
			kind, size, err := s.Stat(ctx, id)
			if string(got) != want || out.String() != want || kind != KindBlob || size != int64(len(want)) || err != nil || !s.Has(id) {
				t.Errorf("%s: %s reads as %d and %d bytes of %d (%s, %d, %v)", name, id, len(got), out.Len(), len(want), kind, size, err)
			}
			if len(want) > 1 {
				if _, err := s.Read(ctx, id, int64(len(want)-1)); !errors.Is(err, ErrTooLarge) {
					t.Errorf("%s: a limit below the size: %v", name, err)
				}
			}
		}
	}
	fsck(t, s)
	for id, want := range ids {
		if got := git(t, s, "", "cat-file", "blob", string(id)); got != want {
			t.Errorf("git reads %d bytes of %s, not %d", len(got), id, len(want))
		}
	}
}

func TestGitReadsTheHistory(t *testing.T) {
	s := made(t)
	var last ID
	for i := range 5 {
		var parents []ID
		if i > 0 {
			parents = []ID{last}
		}
		last = commit(t, s, map[string]string{"a.go": fmt.Sprint(i), "dir/b": "same", "dir.x": "sorts before dir/", "dir0": "after"}, parents...)
	}
	ok(t, s.SetRef("refs/roost/t", last))
	fsck(t, s)
	if got := git(t, s, "", "log", "--format=%an <%ae> %at %s", "refs/roost/t"); got != strings.Repeat("Roost <roost@localhost> 1700000000 state\n", 5) {
		t.Errorf("git log: %q", got)
	}
	objects, size, err := s.Reaches(context.Background(), "refs/roost/t")
	listed := strings.Count(git(t, s, "", "rev-list", "--objects", "--all"), "\n")
	if objects != listed || size <= 0 || err != nil {
		t.Errorf("the ref reaches %d objects of %d bytes (%v); git lists %d", objects, size, err, listed)
	}
	if got := git(t, s, "", "ls-tree", "-r", "--name-only", string(last)); got != "a.go\ndir.x\ndir/b\ndir0\n" {
		t.Errorf("git ls-tree: %q", got)
	}
	want := map[string]string{"a.go": "4", "dir/b": "same", "dir.x": "sorts before dir/", "dir0": "after"}
	if diff := cmp.Diff(want, files(t, s, last)); diff != "" {
		t.Error(diff)
	}
}

func TestABatchIsOnePackOrNothing(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	count := func(want int) {
		t.Helper()
		if got := packsOf(t, s); len(got) != 2*want {
			t.Errorf("%d packs are wanted, there are %q", want, got)
		}
		if left := must[[]os.DirEntry](t)(readDir(s.path("roost", "tmp"))); len(left) != 0 {
			t.Errorf("temporary files are left: %v", left)
		}
	}
	first := commit(t, s, map[string]string{"a": "1", "b": "2"})
	count(1)
	if commit(t, s, map[string]string{"a": "1", "b": "2"}) != first {
		t.Error("the same content has another id")
	}
	count(1)
	b := must[*Batch](t)(s.Begin(ctx))
	must[ID](t)(b.Blob([]byte("dropped")))
	must[ID](t)(b.BlobFrom(strings.NewReader(text(1, 5<<20)), 5<<20))
	b.Discard()
	b.Discard()
	count(1)
	if _, err := b.Blob(nil); err == nil || b.Close() == nil {
		t.Error("a batch that is discarded takes more")
	}
	// The same batch in two processes that do not see each other.
	x, y := opened(t, s.dir), opened(t, s.dir)
	bx, by := must[*Batch](t)(x.Begin(ctx)), must[*Batch](t)(y.Begin(ctx))
	for _, b := range []*Batch{bx, by} {
		must[ID](t)(b.Blob([]byte("twice")))
	}
	ok(t, bx.Close())
	ok(t, by.Close())
	count(2)
	if s.Has(blobID([]byte("dropped"))) || !s.Has(blobID([]byte("twice"))) {
		t.Error("the wrong batches are there")
	}
	fsck(t, s)
}

func TestAStreamHasTheLengthItSays(t *testing.T) {
	s := made(t)
	large := text(3, streamed+100)
	for _, c := range []struct {
		content string
		size    int64
	}{{"abc", 4}, {"abc", 2}, {"abc", -1}, {"", 1}, {large, streamed + 101}, {large, streamed + 99}} {
		write(t, s, func(b *Batch) {
			if _, err := b.BlobFrom(strings.NewReader(c.content), c.size); !errors.Is(err, ErrLength) {
				t.Errorf("%d bytes said to be %d: %v", len(c.content), c.size, err)
			}
			must[ID](t)(b.Blob(fmt.Appendf(nil, "after %d %d", len(c.content), c.size)))
		})
	}
	trouble := errors.New("a bad disk")
	write(t, s, func(b *Batch) {
		_, err := b.BlobFrom(io.MultiReader(strings.NewReader(large), failing{trouble}), streamed*2)
		if !errors.Is(err, trouble) {
			t.Errorf("a stream that fails: %v", err)
		}
		must[ID](t)(b.Blob([]byte("after it")))
	})
	for _, want := range []string{"after it", "after 3 4", fmt.Sprintf("after %d %d", len(large), streamed+99)} {
		if got := must[[]byte](t)(s.Read(context.Background(), blobID([]byte(want)), 0)); string(got) != want {
			t.Errorf("what came after a bad stream reads as %q", got)
		}
	}
	fsck(t, s)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestALargeFileNeedsLittleMemory(t *testing.T) {
	size := int64(48 << 20)
	if testing.Short() {
		size = 6 << 20
	}
	if os.Getenv("ROOST_OBJECT_LARGE") != "" {
		size = 200 << 20
	}
	s := made(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	var id ID
	write(t, s, func(b *Batch) { id = must[ID](t)(b.BlobFrom(&noise{left: size, x: 7}, size)) })
	wrote := time.Since(start)
	var n outlet
	n.w = io.Discard
	ok(t, s.Copy(context.Background(), id, &n))
	runtime.ReadMemStats(&after)
	// All that was allocated on the way, not what was there at one time.
	if all := int64(after.TotalAlloc - before.TotalAlloc); all > 40<<20 || n.n != size {
		t.Errorf("%d MB were allocated for a file of %d MB (%d read)", all>>20, size>>20, n.n)
	} else {
		t.Logf("%d MB: %v to write, %v in all, %d MB allocated", size>>20, wrote, time.Since(start), all>>20)
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
	s := made(t)
	id := commit(t, s, map[string]string{"a": text(1, 3<<20)})
	ctx, cancel := context.WithCancel(context.Background())
	b := must[*Batch](t)(s.Begin(ctx))
	cancel()
	if _, err := b.BlobFrom(&noise{left: 1 << 40, x: 1}, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	if err := b.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	if _, err := s.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("begin: %v", err)
	}
	if err := s.Copy(ctx, blobID([]byte(text(1, 3<<20))), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("copy: %v", err)
	}
	trouble := errors.New("nobody listens")
	if err := s.Copy(context.Background(), id, refusing{trouble}); !errors.Is(err, trouble) || errors.Is(err, ErrDamaged) {
		t.Errorf("a taker that fails: %v", err)
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }
