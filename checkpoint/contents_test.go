package checkpoint

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint/gitstore"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// testdata/earlier.tar.gz is a store that an earlier version wrote: task-1 with two checkpoints, Other.2 with one, a
// content that no task owns, and the survey of before a command of task-3 during which the program was killed.
const (
	earlierC1 = "b177ba1e92fa1c7f44c341fc0ad89eb7a47e527f"
	earlierC2 = "63f219498bfdaed387333f9141e156a34be87f01"
)

var (
	earlierB     = strings.Repeat("b of c1, with many lines that git stores as a difference\n", 40)
	earlierBlobs = map[string]string{ // content -> its name there
		"a of c1\n":                  "ce1c05b178fabea687856ffaa3fcc12d5ba12d0b",
		earlierB:                     "48e3150572efd46e5cf66cb48f9a932e0ffca0e6",
		earlierB + "and one of c2\n": "3a36d52190e7ee7d20194645e5ef376295672c90",
		"of another task\n":          "96b82dd8f585f149d486c2c2a288a4eec54f6d65",
	}
	earlierUnowned = "of no task\n"
)

// earlierVersion is a version as the journal of an earlier version has it.
func earlierVersion(text string) api.FileVersion {
	return api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: int64(len(text)), Hash: workspace.HashOf([]byte(text)), Blob: blobID([]byte(text))}
}

// newEarlierBench is a workspace whose contents an earlier version kept.
func newEarlierBench(t testing.TB) *bench {
	t.Helper()
	l := newBench(t, Options{Git: "none"})
	f, err := os.Open(filepath.Join("testdata", "earlier.tar.gz"))
	l.must(err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	l.must(err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		l.must(err)
		name := filepath.Join(l.k.dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			l.must(os.MkdirAll(name, 0o700))
			continue
		}
		data, err := io.ReadAll(r)
		l.must(err)
		l.must(os.MkdirAll(filepath.Dir(name), 0o700))
		l.must(os.WriteFile(name, data, 0o600))
		l.must(os.Chtimes(name, h.ModTime, h.ModTime))
	}
	l.k = l.open(Options{Git: "none"})
	return l
}

// wantEarlier checks that everything that tasks own of the earlier version's contents can be read.
func (l *bench) wantEarlier(when string) {
	l.Helper()
	k := l.open(Options{Git: "none"})
	check := NewVerifier(Place{Dir: l.data})
	defer check.Close()
	for text, blob := range earlierBlobs {
		v := earlierVersion(text)
		if v.Blob != blob {
			l.Fatalf("%.20q: got name %s, want %s", text, v.Blob, blob)
		}
		if data, err := k.Content(l.Context(), v, 0); err != nil || string(data) != text {
			l.Errorf("%s: %.20q reads as %.20q, %v", when, text, data, err)
		}
		if err := check.Verify(l.Context(), k.Name(), v); err != nil {
			l.Errorf("%s: %.20q: %v", when, text, err)
		}
	}
}

// carried reports whether the earlier version's store is gone.
func (l *bench) carried() bool { return gitstore.Open(l.k.dir) == nil }

func TestAStoreOfAnEarlierVersionIsRead(t *testing.T) {
	l := newEarlierBench(t)
	before := l.stored()
	l.wantEarlier("before the first write")
	if n, size, err := l.k.Usage(t.Context(), "task-1"); err != nil || n < 3 || size == 0 {
		t.Errorf("usage: %d contents, %d bytes, %v", n, size, err)
	}
	l.write("a", "a of c1\n")
	if got := l.look("a")["a"]; got != earlierVersion("a of c1\n") {
		t.Errorf("look: got %+v", got)
	}
	owners, err := l.k.Owners(t.Context())
	if _, ok := owners[OwnerOf("Other.2")]; err != nil || len(owners) != 2 || !ok {
		t.Errorf("owners: %v, %v", owners, err)
	}
	if _, err := l.k.Collect(t.Context(), true, true); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, l.stored()); d != "" {
		t.Errorf("reading wrote: %s", d)
	}
	// It is restored as any other.
	l.write("a", "changed")
	held := l.hold("a")["a"]
	left, err := l.k.Apply(t.Context(), []task.RestoreFile{{Path: "a", From: held, To: earlierVersion("a of c1\n")}})
	if data, e := os.ReadFile(l.at("a")); err != nil || len(left) != 0 || e != nil || string(data) != "a of c1\n" {
		t.Errorf("restored %q: left %v, %v", data, left, err)
	}
}

// The first write carries everything over; what no task owns goes with the next collection.
func TestAStoreOfAnEarlierVersionIsCarriedOver(t *testing.T) {
	l := newEarlierBench(t)
	l.write("new", "new")
	files := l.hold("new")
	if !l.carried() {
		t.Fatal("the first write left the store of the earlier version")
	}
	l.wantEarlier("after the first write")
	if info, err := os.Stat(filepath.Join(l.k.dir, "roost")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("an earlier version would write to it: %v, %v", info, err)
	}
	owned, err := l.k.store.Name(t.Context(), OwnerOf("task-1"))
	l.must(err)
	c3 := l.save(Snapshot{Task: "task-1", Number: 3, Parent: earlierC2, Files: files})
	if got := l.manifest(c3).Parents; !slices.Equal(got, []content.Hash{owned}) {
		t.Errorf("parents: got %q, want %q", got, owned)
	}
	if _, err := l.k.Collect(t.Context(), false, true); err != nil {
		t.Error(err)
	}
	if _, err := l.k.Content(t.Context(), earlierVersion(earlierUnowned), 0); err != nil {
		t.Errorf("a content that only the earlier version's newest survey relies on: %v", err)
	}
	l.must(os.Remove(filepath.Join(l.k.dir, cacheName)))
	ForgetCalls(l.k.dir, OwnerOf("task-3"))
	if _, err := l.k.Collect(t.Context(), false, true); err != nil {
		t.Error(err)
	}
	l.wantEarlier("after a collection")
	if _, err := l.k.Content(t.Context(), earlierVersion(earlierUnowned), 0); !errors.Is(err, ErrUnkept) {
		t.Errorf("a content that no task owns, after a collection: %v", err)
	}
	l.must(l.k.Forget(t.Context(), OwnerOf("Other.2")))
	if _, err := l.k.Collect(t.Context(), false, true); err != nil {
		t.Error(err)
	}
	if _, err := l.k.Content(t.Context(), earlierVersion("of another task\n"), 0); !errors.Is(err, ErrUnkept) {
		t.Errorf("a content of a forgotten task: %v", err)
	}
}

// A command during which the earlier version was killed: what it changed is found, and can be undone.
func TestACommandOfAnEarlierVersion(t *testing.T) {
	l := newEarlierBench(t)
	for _, p := range []string{"a", "d/b", "x", "loose"} {
		l.write(p, "whatever is there now")
	}
	l.write("cmd", "after the command\n")
	s, err := l.k.Interrupted(t.Context(), "task-3", "call")
	l.must(err)
	if s == nil {
		t.Fatal("the survey of the earlier version was not found")
	}
	got := l.changes(s)
	if f := got["cmd"]; f.Was == nil || l.content(*f.Was) != "before the command\n" {
		t.Errorf("what the command changed: %+v", f)
	}
}

// A git that a user ran in the store has made differences, packed refs and loose objects of it.
func TestAStoreThatGitRepacked(t *testing.T) {
	l := newEarlierBench(t)
	git := func(args ...string) {
		l.Helper()
		gitIn(t, l.k.dir, append([]string{"--git-dir=" + l.k.dir}, args...)...)
	}
	git("gc", "--aggressive", "--quiet")
	git("pack-refs", "--all")
	packs, err := filepath.Glob(filepath.Join(l.k.dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs: %q, %v", packs, err)
	}
	l.k = l.open(Options{Git: "none"})
	l.wantEarlier("after git gc")
	l.hold("nothing")
	if !l.carried() {
		t.Error("it was not carried over")
	}
	if _, err := l.k.Collect(t.Context(), false, true); err != nil {
		t.Error(err)
	}
	l.wantEarlier("carried over after git gc")

	l = newEarlierBench(t)
	git("pack-refs", "--all")
	l.must(l.k.Forget(t.Context(), OwnerOf("Other.2")))
	if owners, err := l.k.Owners(t.Context()); err != nil || len(owners) != 1 {
		t.Errorf("owners after one of the packed refs was removed: %v, %v", owners, err)
	}
}

// While a process of an earlier version works with the store, nothing is written beside it; reading works.
func TestAStoreThatAnEarlierVersionUses(t *testing.T) {
	l := newEarlierBench(t)
	leases, err := filepath.Glob(filepath.Join(l.k.dir, "roost", "leases", "*"))
	if err != nil || len(leases) != 1 {
		t.Fatalf("leases: %q, %v", leases, err)
	}
	f, err := os.OpenFile(leases[0], os.O_RDWR, 0)
	l.must(err)
	if ok, err := filelock.Try(f, filelock.Exclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := l.k.Hold(t.Context(), []string{"a"}); !errors.Is(err, ErrInUse) {
		t.Errorf("hold: got %v, want ErrInUse", err)
	}
	if _, err := l.k.Collect(t.Context(), false, true); !errors.Is(err, ErrInUse) {
		t.Errorf("collect: got %v, want ErrInUse", err)
	}
	if used, err := l.k.UsedByEarlier(); !used || err != nil {
		t.Errorf("in use: got %v, %v", used, err)
	}
	l.wantEarlier("while it is in use")
	l.must(filelock.Release(f))
	l.hold("a")
	if used, err := l.k.UsedByEarlier(); used || err != nil || !l.carried() {
		t.Errorf("afterwards: in use %v, %v", used, err)
	}
	l.wantEarlier("after it was in use")
}

// What cannot be read of the earlier version's store stays where it is; everything else is carried over.
func TestADamagedStoreOfAnEarlierVersion(t *testing.T) {
	l := newEarlierBench(t)
	l.must(os.Remove(filepath.Join(l.k.dir, cacheName))) // no survey keeps anything
	packs, err := filepath.Glob(filepath.Join(l.k.dir, "objects", "pack", "*.pack"))
	l.must(err)
	bad := ""
	for _, name := range packs {
		data, err := os.ReadFile(name)
		l.must(err)
		data[20] ^= 0x55
		l.must(os.WriteFile(name, data, 0o600))
		for text := range earlierBlobs {
			if _, err := l.k.Content(t.Context(), earlierVersion(text), 0); errors.Is(err, ErrDamaged) {
				bad = text
			} else if err != nil {
				t.Error(err)
			}
		}
		if bad != "" {
			break
		}
		data[20] ^= 0x55
		l.must(os.WriteFile(name, data, 0o600))
	}
	if bad == "" {
		t.Fatal("nothing is damaged")
	}
	l.hold("nothing")
	for range 2 {
		l.k = l.open(Options{Git: "none"})
		for text := range earlierBlobs {
			_, err := l.k.Content(t.Context(), earlierVersion(text), 0)
			if text == bad && !errors.Is(err, ErrDamaged) || text != bad && err != nil {
				t.Errorf("%.20q: %v", text, err)
			}
		}
		if _, err := l.k.Collect(t.Context(), false, true); err != nil {
			t.Error(err)
		}
	}
	// When no task owns any of it, it goes.
	l.must(l.k.Forget(t.Context(), OwnerOf("task-1")))
	l.must(l.k.Forget(t.Context(), OwnerOf("Other.2")))
	l.k = l.open(Options{Git: "none"})
	if _, err := l.k.Collect(t.Context(), false, true); err != nil || !l.carried() {
		t.Errorf("without owners: it is still there, %v", err)
	}
}

// A pack whose index cannot be read may hold contents that no other pack has: it stays, and can be mended.
func TestAnEarlierStoreWithADamagedIndexStays(t *testing.T) {
	for n := 0; ; n++ {
		l := newEarlierBench(t)
		l.must(os.Remove(filepath.Join(l.k.dir, cacheName))) // no survey keeps anything
		indexes, err := filepath.Glob(filepath.Join(l.k.dir, "objects", "pack", "*.idx"))
		l.must(err)
		if n == len(indexes) {
			break
		}
		whole, err := os.ReadFile(indexes[n])
		l.must(err)
		l.must(os.WriteFile(indexes[n], whole[:len(whole)-1], 0o600))
		l.hold("nothing")
		if err := os.WriteFile(indexes[n], whole, 0o600); err != nil {
			t.Errorf("got no earlier store, want the one with a pack that could not be read: %v", err)
			continue
		}
		l.wantEarlier("after the index was mended")
	}
}

// A fork shares what an earlier version saved, and keeps it when the other task goes.
func TestAForkOfAnEarlierVersionsTask(t *testing.T) {
	l := newEarlierBench(t)
	l.must(l.k.Share(t.Context(), earlierC1, OwnerOf("task-1"), OwnerOf("fork")))
	l.must(l.k.Share(t.Context(), earlierC1, OwnerOf("nothing"), OwnerOf("fork-2")))
	l.must(l.k.Forget(t.Context(), OwnerOf("task-1")))
	l.must(l.k.Close())
	l.k = l.open(Options{Git: "none"})
	if _, err := l.k.Collect(t.Context(), false, true); err != nil {
		t.Fatal(err)
	}
	l.wantEarlier("of a fork")
}

// Whatever byte of an earlier version's store is damaged, no wrong content is returned.
func TestEveryDamagedByteOfAnEarlierStoreIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	l := newEarlierBench(t)
	names, err := filepath.Glob(filepath.Join(l.k.dir, "objects", "pack", "*"))
	l.must(err)
	for _, name := range names {
		whole, err := os.ReadFile(name)
		l.must(err)
		for i := range whole {
			if strings.HasSuffix(name, ".idx") && i%13 > 0 {
				continue // most of an index is counts that are all the same
			}
			data := slices.Clone(whole)
			data[i] ^= 0x41
			l.must(os.WriteFile(name, data, 0o600))
			s := gitstore.Open(l.k.dir)
			for text, blob := range earlierBlobs {
				got, err := s.Read(t.Context(), blob, 0)
				if err == nil && string(got) != text {
					t.Fatalf("byte %d of %s: %.20q reads as %.20q", i, name, text, got)
				}
				if err != nil && !errors.Is(err, content.ErrDamaged) {
					t.Fatalf("byte %d of %s: %v, want ErrDamaged", i, name, err)
				}
			}
			if _, _, err := s.Reaches(t.Context(), earlierC2); err != nil {
				t.Fatalf("byte %d of %s: %v", i, name, err)
			}
		}
		l.must(os.WriteFile(name, whole, 0o600))
	}
}
