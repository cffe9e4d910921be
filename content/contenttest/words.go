package contenttest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func (b *bench) open() content.Store {
	b.Helper()
	s := b.Open(b.T)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// write writes one batch.
func write(t testing.TB, s content.Store, fill func(b content.Batch)) {
	t.Helper()
	b := fixture.Must[content.Batch](t)(s.Begin(context.Background()))
	defer b.Discard()
	fill(b)
	fixture.NoError(t, b.Close())
}

// add writes contents, each in a batch of its own.
func add(t testing.TB, s content.Store, contents ...string) {
	t.Helper()
	for _, c := range contents {
		write(t, s, func(b content.Batch) { fixture.Must[content.Hash](t)(b.Add([]byte(c))) })
	}
}

// commit writes a manifest of files by path and returns its hash.
func commit(t testing.TB, s content.Store, files map[string]string, parents ...content.Hash) (h content.Hash) {
	t.Helper()
	write(t, s, func(b content.Batch) { h = fixture.Must[content.Hash](t)(commitTo(b, files, parents...)) })
	return h
}

func commitTo(b content.Batch, files map[string]string, parents ...content.Hash) (content.Hash, error) {
	m := content.Manifest{Title: "state", Parents: parents}
	for path, text := range files {
		h, err := b.Add([]byte(text))
		if err != nil {
			return "", err
		}
		m.Files = append(m.Files, content.File{Path: path, Hash: h})
	}
	slices.SortFunc(m.Files, func(a, b content.File) int { return cmp.Compare(a.Path, b.Path) })
	return b.AddManifest(m)
}

// files reads back what commit wrote.
func files(t testing.TB, s content.Store, h content.Hash) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range fixture.Must[content.Manifest](t)(s.Manifest(context.Background(), h)).Files {
		out[f.Path] = read(t, s, f.Hash)
	}
	return out
}

func read(t testing.TB, s content.Store, h content.Hash) string {
	t.Helper()
	return string(fixture.Must[[]byte](t)(s.Read(context.Background(), h, 0)))
}

// HashOf returns the hash of a text.
func HashOf(text string) content.Hash { return content.Key(sha256.Sum256([]byte(text))).Hash() }

func collect(t testing.TB, s content.Store) content.Collected {
	t.Helper()
	return fixture.Must[content.Collected](t)(s.Collect(context.Background(), content.CollectOptions{}))
}

// verifyAll reads everything that names reach.
func (b *bench) verifyAll() {
	b.Helper()
	s := b.open()
	seen := map[content.Hash]bool{}
	var walk func(h content.Hash)
	walk = func(h content.Hash) {
		if seen[h] {
			return
		}
		seen[h] = true
		m := fixture.Must[content.Manifest](b)(s.Manifest(b.Context(), h))
		for _, f := range m.Files {
			read(b, s, f.Hash)
		}
		for _, p := range m.Parents {
			walk(p)
		}
	}
	for _, n := range fixture.Must[map[string]content.Named](b)(s.Names(b.Context())) {
		walk(n.Manifest)
	}
}

// text returns a content that does not compress well; the same number gives the same content.
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
