package content

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// All stores share one encoder. It makes its channels when it is first used, which may not be in a test with synctest:
// no other test could use them.
func init() { encoder().EncodeAll([]byte{0}, nil) }

// newStore opens a store in a folder that does not exist yet.
func newStore(t testing.TB) *Folder {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "store"))
}

func openStore(t testing.TB, dir string) *Folder {
	t.Helper()
	s := fixture.Must[*Folder](t)(Open(dir))
	t.Cleanup(func() { s.Close() })
	return s
}

// write writes one batch.
func write(t testing.TB, s *Folder, fill func(b Batch)) {
	t.Helper()
	b := fixture.Must[Batch](t)(s.Begin(context.Background()))
	defer b.Discard()
	fill(b)
	fixture.NoError(t, b.Close())
}

// add writes contents, each batch one.
func add(t testing.TB, s *Folder, contents ...string) {
	t.Helper()
	for _, c := range contents {
		write(t, s, func(b Batch) { fixture.Must[Hash](t)(b.Add([]byte(c))) })
	}
}

// commit writes a manifest of files by path and returns its hash.
func commit(t testing.TB, s *Folder, files map[string]string, parents ...Hash) (h Hash) {
	t.Helper()
	write(t, s, func(b Batch) { h = fixture.Must[Hash](t)(commitTo(b, files, parents...)) })
	return h
}

func commitTo(b Batch, files map[string]string, parents ...Hash) (Hash, error) {
	m := Manifest{Title: "state", Parents: parents}
	for path, text := range files {
		h, err := b.Add([]byte(text))
		if err != nil {
			return "", err
		}
		m.Files = append(m.Files, File{Path: path, Hash: h})
	}
	sortFiles(m.Files)
	return b.AddManifest(m)
}

func sortFiles(list []File) {
	for i := range list {
		for j := i; j > 0 && list[j].Path < list[j-1].Path; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// files reads back what commit wrote.
func files(t testing.TB, s *Folder, h Hash) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range fixture.Must[Manifest](t)(s.Manifest(context.Background(), h)).Files {
		out[f.Path] = read(t, s, f.Hash)
	}
	return out
}

func read(t testing.TB, s *Folder, h Hash) string {
	t.Helper()
	return string(fixture.Must[[]byte](t)(s.Read(context.Background(), h, 0)))
}

func hashOf(text string) Hash { return Key(sha256.Sum256([]byte(text))).Hash() }

func collect(t testing.TB, s *Folder) Collected {
	t.Helper()
	return fixture.Must[Collected](t)(s.Collect(context.Background(), CollectOptions{}))
}

// verifyAll reads everything that names reach.
func verifyAll(t testing.TB, s *Folder) {
	t.Helper()
	names := fixture.Must[map[string]Named](t)(s.Names(context.Background()))
	w := walker{s: openStore(t, s.dir), seen: map[Key]bool{}}
	fixture.NoError(t, w.s.refresh(true))
	for _, n := range names {
		k, _ := n.Manifest.Key()
		fixture.NoError(t, w.walk(context.Background(), []Key{k}, true))
	}
	for k := range w.seen {
		read(t, w.s, k.Hash())
	}
}

// text is content that a compressor does not make small, the same for one number.
func text(n, size int) string {
	var b strings.Builder
	for x := uint64(n)*2654435761 + 1; b.Len() < size; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%x\n", x)
	}
	return b.String()[:size]
}

// listed are the names in a folder of the store.
func listed(t testing.TB, s *Folder, dir string) (list []string) {
	t.Helper()
	for _, d := range fixture.Must[[]os.DirEntry](t)(readDir(s.path(dir))) {
		list = append(list, d.Name())
	}
	return list
}

// Damage flips a bit in the frame of a content, in every bundle that has it.
func (s *Folder) Damage(t testing.TB, h Hash) {
	t.Helper()
	for _, p := range s.found(t, h) {
		data := fixture.Must[[]byte](t)(os.ReadFile(p.b.path))
		r := p.b.row(p.i)
		data[r.offset+r.stored/2] ^= 1
		fixture.NoError(t, os.WriteFile(p.b.path, data, 0o600))
	}
}

// Lose removes the bundles that have a content.
func (s *Folder) Lose(t testing.TB, h Hash) {
	t.Helper()
	for _, p := range s.found(t, h) {
		fixture.NoError(t, os.Remove(p.b.path))
	}
}

func (s *Folder) found(t testing.TB, h Hash) []position {
	t.Helper()
	fixture.NoError(t, s.refresh(true))
	k := fixture.Must[Key](t)(h.Key())
	found := s.copies(k)
	if len(found) == 0 {
		t.Fatalf("%s is in no bundle", h)
	}
	return found
}

// QuickDir is a folder in memory where the system has one: syncing is most of what thousands of batches cost.
func QuickDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "roost-content-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
