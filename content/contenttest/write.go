package contenttest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// large is a size of a content that no store reads or writes in one piece.
const large = 5 << 20

func testEmpty(b *bench) {
	ctx, s := b.Context(), b.open()
	h := HashOf("x")
	if s.Has(ctx, h) || s.Contains(ctx, h) || s.Contains(ctx, "no hash") {
		b.Error("an empty store has a content")
	}
	if _, err := s.Read(ctx, h, 0); !errors.Is(err, content.ErrMissing) {
		b.Errorf("read: got %v, want ErrMissing", err)
	}
	if _, err := s.Read(ctx, "no hash", 0); !errors.Is(err, content.ErrMissing) {
		b.Errorf("read what has no name: got %v, want ErrMissing", err)
	}
	if _, err := s.Name(ctx, "x"); !errors.Is(err, content.ErrMissing) {
		b.Errorf("name: got %v, want ErrMissing", err)
	}
	if names, err := s.Names(ctx); err != nil || len(names) != 0 {
		b.Errorf("names: got %v, %v, want none", names, err)
	}
	fixture.NoError(b, s.RemoveName(ctx, "x"))
	if got, err := s.Collect(ctx, content.CollectOptions{}); err != nil || got != (content.Collected{}) {
		b.Errorf("collect: got %v, %v, want nothing", got, err)
	}
	if n, err := s.Size(ctx); n != 0 || err != nil {
		b.Errorf("size: got %d, %v, want 0", n, err)
	}
}

func testRoundTrip(b *bench) {
	ctx, s := b.Context(), b.open()
	contents := []string{
		"", "a", "hello\n", strings.Repeat("line\r\n", 100_000), text(1, 256<<10), text(1, 300<<10),
		text(2, 4<<20), text(2, 4<<20+1), strings.Repeat("\x00", 6<<20),
	}
	hashes := map[content.Hash]string{}
	write(b, s, func(w content.Batch) {
		for i, c := range contents {
			h := fixture.Must[content.Hash](b)(w.Add([]byte(c)))
			if again := fixture.Must[content.Hash](b)(w.Add([]byte(c))); h != HashOf(c) || again != h {
				b.Errorf("content %d: got %s and %s, want %s", i, h, again, HashOf(c))
			}
			hashes[h] = c
		}
		if b.open().Has(ctx, HashOf("a")) {
			b.Error("an open batch is visible")
		}
	})
	for name, s := range map[string]content.Store{"same": s, "other": b.open()} {
		for h, want := range hashes {
			got := fixture.Must[[]byte](b)(s.Read(ctx, h, int64(len(want))))
			fixture.NoError(b, s.Verify(ctx, h))
			if string(got) != want || !s.Has(ctx, h) || !s.Contains(ctx, h) {
				b.Errorf("%s: %s reads as %d bytes, want %d", name, h, len(got), len(want))
			}
			if len(want) > 1 {
				if _, err := s.Read(ctx, h, int64(len(want)-1)); !errors.Is(err, content.ErrTooLarge) {
					b.Errorf("%s: a limit one below the size: got %v, want ErrTooLarge", name, err)
				}
			}
		}
	}
	if size := fixture.Must[int64](b)(s.Size(ctx)); size > 10<<20 || size < 2<<20 {
		b.Errorf("the store takes %d bytes, want them compressed", size)
	}
}

func testBatch(b *bench) {
	ctx, s := b.Context(), b.open()
	first := commit(b, s, map[string]string{"a": "1", "b": "2"})
	size := fixture.Must[int64](b)(s.Size(ctx))
	if again := commit(b, s, map[string]string{"a": "1", "b": "2"}); again != first {
		b.Errorf("the same state: got %s, want %s", again, first)
	}
	w := fixture.Must[content.Batch](b)(s.Begin(ctx))
	fixture.Must[content.Hash](b)(w.Add([]byte("dropped")))
	fixture.Must[content.Hash](b)(w.Add([]byte(text(1, large))))
	w.Discard()
	w.Discard()
	if got := fixture.Must[int64](b)(s.Size(ctx)); got != size {
		b.Errorf("what was there and what was dropped: the size is %d, want %d", got, size)
	}
	if _, err := w.Add(nil); err == nil || w.Close() == nil {
		b.Error("a discarded batch accepts more")
	}
	// The same content from two processes that do not see each other: one collection makes it one again.
	x, y := b.open(), b.open()
	wx, wy := fixture.Must[content.Batch](b)(x.Begin(ctx)), fixture.Must[content.Batch](b)(y.Begin(ctx))
	for _, w := range []content.Batch{wx, wy} {
		fixture.Must[content.Hash](b)(w.Add([]byte("twice")))
	}
	fixture.NoError(b, wx.Close())
	fixture.NoError(b, wy.Close())
	if s.Has(ctx, HashOf("dropped")) || !s.Has(ctx, HashOf("twice")) {
		b.Error("the wrong batches are present")
	}
	for _, s := range []content.Store{s, x, y} {
		s.Settle()
	}
	if got := collect(b, s); got.Removed != 4 || got.Kept != 0 {
		b.Errorf("collected: got %+v, want 4 removed", got)
	}
}

func testContext(b *bench) {
	s := b.open()
	big := text(1, large)
	write(b, s, func(w content.Batch) { fixture.Must[content.Hash](b)(w.Add([]byte(big))) })
	ctx, cancel := context.WithCancel(b.Context())
	w := fixture.Must[content.Batch](b)(s.Begin(ctx))
	cancel()
	if _, err := w.Add([]byte(big)); !errors.Is(err, context.Canceled) {
		b.Errorf("add: got %v, want that it was cancelled", err)
	}
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		b.Errorf("close: got %v, want that it was cancelled", err)
	}
	if _, err := s.Begin(ctx); !errors.Is(err, context.Canceled) {
		b.Errorf("begin: got %v, want that it was cancelled", err)
	}
	if err := s.Verify(ctx, HashOf(big)); !errors.Is(err, context.Canceled) {
		b.Errorf("verify: got %v, want that it was cancelled", err)
	}
}

// A store notices a damaged content, and treats it as absent from then on. The next batch with that content writes it
// again.
func testDamaged(b *bench) {
	ctx := b.Context()
	for i, size := range []int{5000, large} {
		s := b.open()
		c := text(9+i, size)
		put := func(s content.Store) {
			write(b, s, func(w content.Batch) { fixture.Must[content.Hash](b)(w.Add([]byte(c))) })
		}
		put(s)
		s.Settle()
		b.Damage(b, HashOf(c))
		o := b.open()
		if !o.Contains(ctx, HashOf(c)) {
			b.Error("a content whose damage was not seen yet counts as absent")
		}
		if err := o.Verify(ctx, HashOf(c)); !errors.Is(err, content.ErrDamaged) {
			b.Errorf("verify: got %v, want ErrDamaged", err)
		}
		if o.Contains(ctx, HashOf(c)) || o.Has(ctx, HashOf(c)) {
			b.Error("a content seen as damaged counts as present: no batch would write it again")
		}
		put(o)
		if got := read(b, o, HashOf(c)); got != c || !o.Contains(ctx, HashOf(c)) {
			b.Error("the content that was written again cannot be read")
		}
		// Which copy comes first may be chance. Another process reads the good one; of a large content, at the second try.
		for range 3 {
			o := b.open()
			if size == large {
				_ = o.Verify(ctx, HashOf(c))
			}
			if got := read(b, o, HashOf(c)); got != c {
				b.Error("another process reads the damaged copy")
			}
		}
	}
}

func testManifest(b *bench) {
	ctx, s := b.Context(), b.open()
	write(b, s, func(w content.Batch) {
		for _, m := range []content.Manifest{
			{Files: []content.File{{Path: "f", Hash: HashOf("absent")}}},
			{Parents: []content.Hash{HashOf("absent")}},
			{Parents: []content.Hash{"no hash"}},
		} {
			if _, err := w.AddManifest(m); err == nil {
				b.Errorf("%+v was added", m)
			}
		}
		fixture.Must[content.Hash](b)(w.Add([]byte("a file")))
	})
	if err := s.SetName(ctx, "t", HashOf("a file")); !errors.Is(err, content.ErrMissing) {
		b.Errorf("a file as a manifest: got %v, want ErrMissing", err)
	}
	if err := s.SetName(ctx, "t", HashOf("absent")); !errors.Is(err, content.ErrMissing) {
		b.Errorf("an absent manifest: got %v, want ErrMissing", err)
	}
	for _, name := range []string{"", "a/b", "..", ".x", "A", strings.Repeat("a", 201)} {
		if _, err := s.Name(ctx, name); err == nil || errors.Is(err, content.ErrMissing) {
			b.Errorf("%q was accepted as an owner", name)
		}
	}
}

// A file with the bytes of a manifest does not replace the manifest: a collection still follows the names in the
// manifest.
func testSameBytes(b *bench) {
	ctx, s := b.Context(), b.open()
	h := commit(b, s, map[string]string{"f": "needed"})
	manifest := read(b, s, h)
	s.Settle()
	for _, first := range []bool{true, false} {
		collect(b, s)
		add(b, s, "needed")
		if first {
			add(b, s, manifest) // an earlier batch has it as a file
		}
		write(b, s, func(w content.Batch) {
			fixture.Must[content.Hash](b)(w.Add([]byte(manifest)))
			if got := fixture.Must[content.Hash](b)(commitTo(w, map[string]string{"f": "needed"})); got != h {
				b.Fatalf("got manifest %s, want %s", got, h)
			}
		})
		fixture.NoError(b, s.SetName(ctx, "t", h))
		s.Settle()
		collect(b, s)
		collect(b, s)
		if got := files(b, b.open(), h); got["f"] != "needed" {
			b.Errorf("first %v: got %v, want the file", first, got)
		}
		fixture.NoError(b, s.RemoveName(ctx, "t"))
		if got := collect(b, s); got.Kept != 0 {
			b.Errorf("first %v: the collection kept %d contents, want none", first, got.Kept)
		}
	}
}

func testReaches(b *bench) {
	ctx, s := b.Context(), b.open()
	shared := text(1, 10_000)
	x := commit(b, s, map[string]string{"s": shared, "a": text(2, 1000)})
	y := commit(b, s, map[string]string{"s": shared, "b": text(3, 1000)}, x)
	fixture.NoError(b, s.SetName(ctx, "a", x))
	fixture.NoError(b, s.SetName(ctx, "b", y))
	nx, bytesX, err := s.Reaches(ctx, "a")
	fixture.NoError(b, err)
	ny, bytesY, err := s.Reaches(ctx, "b")
	fixture.NoError(b, err)
	if nx != 3 || ny != 5 || bytesX < 4000 || bytesY <= bytesX || bytesY > 2*bytesX || bytesY > fixture.Must[int64](b)(s.Size(ctx)) {
		b.Errorf("a reaches %d contents of %d bytes, b %d of %d; want 3 and 5, shared ones in both", nx, bytesX, ny, bytesY)
	}
	if _, _, err := s.Reaches(ctx, "c"); !errors.Is(err, content.ErrMissing) {
		b.Errorf("a name that does not exist: got %v, want ErrMissing", err)
	}
}

// Every process sees a name at once, and the time at which it was set.
func testNames(b *bench) {
	ctx, s, other := b.Context(), b.open(), b.open()
	x, y := commit(b, s, map[string]string{"a": "1"}), commit(b, s, map[string]string{"a": "2"})
	for _, h := range []content.Hash{x, y} {
		began := time.Now()
		fixture.NoError(b, s.SetName(ctx, "t", h))
		if got := fixture.Must[content.Hash](b)(other.Name(ctx, "t")); got != h {
			b.Errorf("got %s, want %s", got, h)
		}
		names := fixture.Must[map[string]content.Named](b)(other.Names(ctx))
		if at := names["t"].At; len(names) != 1 || names["t"].Manifest != h || at.Before(began.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
			b.Errorf("got %v, want t with %s, set now", names, h)
		}
	}
	fixture.NoError(b, other.RemoveName(ctx, "t"))
	if _, err := s.Name(ctx, "t"); !errors.Is(err, content.ErrMissing) {
		b.Errorf("after its removal: got %v, want ErrMissing", err)
	}
	if got := files(b, s, y); !maps.Equal(got, map[string]string{"a": "2"}) {
		b.Errorf("got %v, want what was written", got)
	}
}
