package contenttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Contents that another process relies on stay until that process ends its hold or dies.
func testHeld(b *bench) {
	ctx, s := b.Context(), b.open()
	add(b, s, "was there")
	s.Settle()
	c := b.Start(b, "")
	has := func(want bool, contents ...string) {
		b.Helper()
		o := b.open()
		for _, text := range contents {
			if got := o.Has(ctx, HashOf(text)); got != want {
				b.Errorf("%q is present: got %v, want %v", text, got, want)
			}
		}
	}
	c.say("begin")
	if got := c.say("add was there"); got != string(HashOf("was there")) {
		b.Fatalf("the child writes %s", got)
	}
	c.say("close")
	collect(b, s)
	has(true, "was there")
	c.say("begin")
	c.say("add new")
	c.say("close")
	collect(b, s)
	has(true, "was there", "new")
	c.kill()
	removed := 0
	fixture.Eventually(b, "a dead process holds nothing", func() bool {
		got := collect(b, s)
		removed += got.Removed
		return got.Kept == 0
	})
	if removed != 2 {
		b.Errorf("after the kill: %d contents were removed, want 2", removed)
	}
	has(false, "was there", "new")
}

func testHasHolds(b *bench) {
	s := b.open()
	h := HashOf("x")
	fill := func() {
		add(b, s, "x")
		s.Settle()
	}
	fill()
	c := b.Start(b, "")
	if c.say("has "+string(h)) != "true" {
		b.Fatal("the child does not see it")
	}
	if got := collect(b, s); got.Removed != 1 {
		b.Errorf("a look held it: %+v", got)
	}
	if c.say("has "+string(h)) != "false" {
		b.Error("the child sees what was removed")
	}
	fill()
	c.say("keep")
	if c.say("has "+string(h)) != "true" {
		b.Error("the child does not see what came")
	}
	if got := collect(b, s); got.Removed != 0 {
		b.Errorf("what it relies on was removed: %+v", got)
	}
}

// A manifest that a Store relies on stays, with everything that it names.
func testHeldWhole(b *bench) {
	s := b.open()
	add(b, s, "leaf")
	h := commit(b, s, map[string]string{"f": "leaf"})
	add(b, s, "garbage")
	s.Settle()
	release := s.Keep()
	if !s.Has(b.Context(), h) {
		b.Fatal("the manifest is missing")
	}
	s.Settle() // does nothing: something is kept
	if got := collect(b, b.open()); got.Kept != 2 || got.Removed != 1 {
		b.Errorf("collected: got %+v, want 2 kept and 1 removed", got)
	}
	release()
	release()
	s.Settle()
	if got := collect(b, s); got.Kept != 0 || got.Removed != 2 {
		b.Errorf("collected after it: got %+v, want 2 removed", got)
	}
}

// While two processes collect without a pause, others write contents and name them: all contents that a name reaches
// are present at any time.
func testBesideWriters(b *bench) {
	s := b.open()
	add(b, s, "first")
	ctx, cancel := context.WithCancel(context.Background())
	var collectors sync.WaitGroup
	for range 2 {
		c := b.open()
		collectors.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Collect(ctx, content.CollectOptions{}); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
			}
		})
	}
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	var writers sync.WaitGroup
	for w := range 2 {
		s, reader := b.open(), b.open()
		writers.Go(func() {
			for i := range rounds {
				// Old states come again, so that batches find what is present and about to be removed.
				want := map[string]string{"a": fmt.Sprint(i % 3), "b/c": fmt.Sprint("both ", i%5), "d": fmt.Sprint(w, i)}
				var h content.Hash
				batch, err := s.Begin(ctx)
				if err == nil {
					if h, err = commitTo(batch, want); err == nil {
						err = batch.Close()
					}
					batch.Discard()
				}
				if err == nil {
					err = s.SetName(ctx, fmt.Sprint("w", w), h)
				}
				s.Settle()
				if err != nil {
					b.Error(err)
					return
				}
				for _, r := range []content.Store{s, reader} {
					if got := files(b, r, h); !maps.Equal(got, want) {
						b.Errorf("state %d reads as %v, want %v", i, got, want)
					}
				}
			}
		})
	}
	writers.Wait()
	cancel()
	collectors.Wait()
	s.Settle()
	collect(b, s)
	b.verifyAll()
}

// A collection at its most dangerous moment: between mark and removal, another process finds a content that is about
// to be removed, names it and ends its hold.
func testLateName(b *bench) {
	ctx, s := b.Context(), b.open()
	state := map[string]string{"a": "1", "b/c": "2"}
	h := commit(b, s, state)
	keep := commit(b, s, map[string]string{"x": "y"})
	fixture.NoError(b, s.SetName(ctx, "keep", keep))
	s.Settle()
	other := b.open()
	asked := 0
	got, err := s.Collect(ctx, content.CollectOptions{Keep: func() ([]content.Hash, error) {
		if asked++; asked == 1 { // the first mark is nearly done
			commit(b, other, state)
			fixture.NoError(b, other.SetName(ctx, "late", h))
			other.Settle()
		}
		return nil, nil
	}})
	if err != nil || asked == 0 || got.Removed != 0 {
		b.Errorf("collected: got %+v, %v, asked %d times; want nothing removed", got, err, asked)
	}
	for _, h := range []content.Hash{h, keep} {
		files(b, b.open(), h)
	}
	b.verifyAll()
}

func testKeep(b *bench) {
	ctx, s := b.Context(), b.open()
	h := commit(b, s, map[string]string{"a": "1"})
	commit(b, s, map[string]string{"b": "2"})
	s.Settle()
	keep := func() ([]content.Hash, error) { return []content.Hash{h, HashOf("nowhere")}, nil }
	before := fixture.Must[int64](b)(s.Size(ctx))
	dry := fixture.Must[content.Collected](b)(s.Collect(ctx, content.CollectOptions{Keep: keep, DryRun: true}))
	if after := fixture.Must[int64](b)(s.Size(ctx)); dry.Kept != 2 || dry.Removed != 2 || dry.Before != before || after != before || dry.After >= before {
		b.Errorf("dry run: got %+v, %d bytes became %d", dry, before, after)
	}
	done := fixture.Must[content.Collected](b)(s.Collect(ctx, content.CollectOptions{Keep: keep}))
	if done.Kept != 2 || done.Removed != 2 || done.After >= done.Before {
		b.Errorf("collected: got %+v, want 2 kept and 2 removed", done)
	}
	files(b, s, h)
	trouble := errors.New("cannot read the survey")
	_, err := s.Collect(ctx, content.CollectOptions{Keep: func() ([]content.Hash, error) { return nil, trouble }})
	if !errors.Is(err, trouble) || !s.Has(ctx, h) {
		b.Errorf("Keep fails: got %v, want its error and nothing removed", err)
	}
}

// The report of a dry run matches the later collection, also for a batch that is half unused and for a name that is
// removed. A dry run changes nothing.
func testDryRun(b *bench) {
	ctx, s := b.Context(), b.open()
	var h content.Hash
	write(b, s, func(w content.Batch) {
		h = fixture.Must[content.Hash](b)(commitTo(w, map[string]string{"f": text(1, 20_000)}))
		fixture.Must[content.Hash](b)(w.Add([]byte(text(2, 20_000))))
	})
	fixture.NoError(b, s.SetName(ctx, "t", h))
	fixture.NoError(b, s.SetName(ctx, "gone", commit(b, s, map[string]string{"g": text(3, 20_000)})))
	s.Settle()
	dry := fixture.Must[content.Collected](b)(s.Collect(ctx, content.CollectOptions{DryRun: true, Without: []string{"gone"}}))
	if !s.Contains(ctx, HashOf(text(2, 20_000))) || !s.Contains(ctx, HashOf(text(3, 20_000))) {
		b.Error("a dry run changed something")
	}
	fixture.NoError(b, s.RemoveName(ctx, "gone"))
	done := collect(b, s)
	if dry.Kept != done.Kept || dry.Removed != done.Removed || dry.Before != done.Before || dry.Removed != 3 || dry.Kept != 2 {
		b.Errorf("reported %+v, did %+v; want 2 kept and 3 removed", dry, done)
	}
	if off := dry.After - done.After; off < -1000 || off > 1000 {
		b.Errorf("reported %d bytes after, there are %d", dry.After, done.After)
	}
	if s.Contains(ctx, HashOf(text(2, 20_000))) {
		b.Error("unused bytes are still there")
	}
}

func testMissing(b *bench) {
	s := b.open()
	add(b, s, "leaf")
	h := commit(b, s, map[string]string{"f": "leaf"})
	add(b, s, "garbage")
	fixture.NoError(b, s.SetName(b.Context(), "t", h))
	s.Settle()
	b.Lose(b, HashOf("leaf"))
	o := b.open()
	if _, err := o.Collect(b.Context(), content.CollectOptions{}); !errors.Is(err, content.ErrDamaged) {
		b.Errorf("got %v, want ErrDamaged", err)
	}
	if !o.Has(b.Context(), HashOf("garbage")) {
		b.Error("something was removed")
	}
}

// A reader that was opened before a collection still reads the contents that stay.
func testReader(b *bench) {
	ctx, s := b.Context(), b.open()
	h := commit(b, s, map[string]string{"a": "kept", "b/c": text(1, 3000)})
	add(b, s, "dropped")
	fixture.NoError(b, s.SetName(ctx, "t", h))
	reader := b.open()
	files(b, reader, h)
	read(b, reader, HashOf("dropped"))
	s.Settle()
	collect(b, s)
	files(b, reader, h)
	if _, err := reader.Read(ctx, HashOf("dropped"), 0); !errors.Is(err, content.ErrMissing) || reader.Has(ctx, HashOf("dropped")) {
		b.Errorf("what was collected: got %v, want ErrMissing", err)
	}
}

// Goroutines share a Store: each keeps the contents that it works on, so that no Settle of another goroutine releases
// them.
func testGoroutines(b *bench) {
	ctx, s := b.Context(), b.open()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 6 {
				release := s.Keep()
				write := func(fill func(content.Batch) (content.Hash, error)) (h content.Hash) {
					batch, err := s.Begin(ctx)
					if err == nil {
						h, err = fill(batch)
						err = errors.Join(err, batch.Close())
					}
					if err != nil {
						b.Error(err)
					}
					return h
				}
				h := write(func(w content.Batch) (content.Hash, error) { return w.Add(fmt.Append(nil, "shared ", i)) })
				if w == 0 {
					if _, err := s.Collect(ctx, content.CollectOptions{}); err != nil {
						b.Error(err)
					}
				}
				m := write(func(batch content.Batch) (content.Hash, error) {
					return batch.AddManifest(content.Manifest{Files: []content.File{{Path: fmt.Sprint(w), Hash: h}}})
				})
				if err := s.SetName(ctx, fmt.Sprint(w), m); err != nil {
					b.Error(err)
				}
				release()
				s.Settle()
				if got, err := s.Read(ctx, h, 0); err != nil || string(got) != fmt.Sprint("shared ", i) {
					b.Errorf("got %q, %v, want what was written", got, err)
				}
			}
		})
	}
	all.Wait()
	if got := collect(b, s); got.Kept != 5 { // four manifests, one file
		b.Errorf("collected: got %+v, want 5 kept", got)
	}
	b.verifyAll()
}

// A process that is killed anywhere in its work leaves a store that other processes can use: named contents stay
// whole, and others are collected.
func testKills(b *bench) {
	for _, place := range b.Commits {
		b.Run(place, func(t *testing.T) { (&bench{t, b.fresh(), b.fresh}).kill(place, "commit new") })
	}
	for _, place := range b.Collects {
		b.Run(place, func(t *testing.T) { (&bench{t, b.fresh(), b.fresh}).kill(place, "collect") })
	}
}

func (b *bench) kill(place, line string) {
	ctx, s := b.Context(), b.open()
	other := commit(b, s, map[string]string{"f": "other", "g": "x"})
	fixture.NoError(b, s.SetName(ctx, "other", other))
	old := commit(b, s, map[string]string{"f": "old"})
	fixture.NoError(b, s.SetName(ctx, "child", old))
	add(b, s, "unused")
	s.Settle()
	b.Start(b, place).Killed(line)
	o := b.open()
	h := fixture.Must[content.Hash](b)(o.Name(ctx, "child"))
	if got := files(b, o, h); got["f"] != "new" && (h != old || got["f"] != "old") {
		b.Errorf("after the kill: got %s, %v, want the old state or the new one", h, got)
	}
	b.verifyAll()
	// The same again, by another process, at once.
	h = commit(b, o, map[string]string{"f": "new"})
	fixture.NoError(b, o.SetName(ctx, "child", h))
	o.Settle()
	fixture.Eventually(b, "the dead process holds nothing", func() bool { return collect(b, o).Kept == 5 })
	b.verifyAll()
}
