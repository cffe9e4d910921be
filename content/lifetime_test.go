package content

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// What another process relies on stays until that process ends its hold or dies.
func TestWhatAnotherProcessHoldsIsNotCollected(t *testing.T) {
	s := newStore(t)
	add(t, s, "was there")
	s.Settle()
	c := start(t, s, "")
	has := func(want bool, contents ...string) {
		t.Helper()
		o := openStore(t, s.dir)
		for _, text := range contents {
			if got := o.Has(hashOf(text)); got != want {
				t.Errorf("%q is present: got %v, want %v", text, got, want)
			}
		}
	}
	c.say("begin")
	if got := c.say("add was there"); got != string(hashOf("was there")) {
		t.Fatalf("the child writes %s", got)
	}
	collect(t, s)
	has(true, "was there")
	c.say("add new")
	c.say("close")
	collect(t, s)
	has(true, "was there", "new")
	c.kill()
	if got := collect(t, s); got.Kept != 0 || got.Removed != 2 {
		t.Errorf("after the kill: %+v", got)
	}
	has(false, "was there", "new")
	if left := listed(t, s, leasesDir); len(left) != 0 {
		t.Errorf("a dead lease stays: %v", left)
	}
}

func TestHasHoldsWhenAsked(t *testing.T) {
	s := newStore(t)
	h := hashOf("x")
	fill := func() {
		add(t, s, "x")
		s.Settle()
	}
	fill()
	c := start(t, s, "")
	if c.say("has "+string(h)) != "true" {
		t.Fatal("the child does not see it")
	}
	if got := collect(t, s); got.Removed != 1 {
		t.Errorf("a look held it: %+v", got)
	}
	if c.say("has "+string(h)) != "false" {
		t.Error("the child sees what was removed")
	}
	fill()
	c.say("keep")
	if c.say("has "+string(h)) != "true" {
		t.Error("the child does not see what came")
	}
	if got := collect(t, s); got.Removed != 0 {
		t.Errorf("what it relies on was removed: %+v", got)
	}
}

// A manifest that a Store relies on stays with what it names.
func TestWhatIsHeldStaysWhole(t *testing.T) {
	s := newStore(t)
	add(t, s, "leaf")
	h := commit(t, s, map[string]string{"f": "leaf"})
	add(t, s, "garbage")
	s.Settle()
	release := s.Keep()
	if !s.Has(h) {
		t.Fatal("the manifest is missing")
	}
	s.Settle() // does nothing: something is kept
	if got := collect(t, openStore(t, s.dir)); got.Kept != 2 || got.Removed != 1 {
		t.Errorf("collected: %+v", got)
	}
	release()
	release()
	s.Settle()
	if got := collect(t, s); got.Kept != 0 || got.Removed != 2 {
		t.Errorf("collected after it: %+v", got)
	}
}

// While two processes collect without end, others write and name what they wrote: all that a name reaches is present at
// any time.
func TestCollectingBesideWriters(t *testing.T) {
	s := newStore(t)
	add(t, s, "first")
	ctx, cancel := context.WithCancel(context.Background())
	var collectors sync.WaitGroup
	for range 2 {
		c := openStore(t, s.dir)
		collectors.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Collect(ctx, CollectOptions{}); err != nil && ctx.Err() == nil {
					t.Error(err)
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
		s, reader := openStore(t, s.dir), openStore(t, s.dir)
		writers.Go(func() {
			for i := range rounds {
				// Old states come again, so that batches find what is present and about to be removed.
				want := map[string]string{"a": fmt.Sprint(i % 3), "b/c": fmt.Sprint("both ", i%5), "d": fmt.Sprint(w, i)}
				var h Hash
				b, err := s.Begin(ctx)
				if err == nil {
					if h, err = commitTo(b, want); err == nil {
						err = b.Close()
					}
					b.Discard()
				}
				if err == nil {
					err = s.SetName(fmt.Sprint("w", w), h)
				}
				s.Settle()
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range []*Store{s, reader} {
					if got := files(t, r, h); !maps.Equal(got, want) {
						t.Errorf("state %d reads as %v", i, got)
					}
				}
			}
		})
	}
	writers.Wait()
	cancel()
	collectors.Wait()
	s.Settle()
	collect(t, s)
	verifyAll(t, s)
}

// A collection at its most dangerous moment: between mark and removal another process finds what is about to be
// removed, names it and ends its hold.
func TestANameThatComesAfterTheMark(t *testing.T) {
	s := newStore(t)
	state := map[string]string{"a": "1", "b/c": "2"}
	h := commit(t, s, state)
	keep := commit(t, s, map[string]string{"x": "y"})
	fixture.NoError(t, s.SetName("keep", keep))
	s.Settle()
	other := openStore(t, s.dir)
	asked := 0
	got, err := s.Collect(context.Background(), CollectOptions{Keep: func() ([]Hash, error) {
		if asked++; asked == 1 { // the first mark is nearly done
			commit(t, other, state)
			fixture.NoError(t, other.SetName("late", h))
			other.Settle()
		}
		return nil, nil
	}})
	if err != nil || asked != 2 || got.Removed != 0 {
		t.Errorf("collected: %+v, %v, asked %d times", got, err, asked)
	}
	for _, h := range []Hash{h, keep} {
		files(t, openStore(t, s.dir), h)
	}
	verifyAll(t, s)
}

func TestKeepAddsToWhatStays(t *testing.T) {
	s := newStore(t)
	h := commit(t, s, map[string]string{"a": "1"})
	commit(t, s, map[string]string{"b": "2"})
	s.Settle()
	keep := func() ([]Hash, error) { return []Hash{h, hashOf("nowhere")}, nil }
	before := fixture.Must[int64](t)(s.Size())
	dry := fixture.Must[Collected](t)(s.Collect(context.Background(), CollectOptions{Keep: keep, DryRun: true}))
	if after := fixture.Must[int64](t)(s.Size()); dry.Kept != 2 || dry.Removed != 2 || dry.Before != before || after != before || dry.After >= before {
		t.Errorf("dry run: %+v, %d bytes became %d", dry, before, after)
	}
	done := fixture.Must[Collected](t)(s.Collect(context.Background(), CollectOptions{Keep: keep}))
	if done.Kept != 2 || done.Removed != 2 || done.After >= done.Before {
		t.Errorf("collected: %+v", done)
	}
	files(t, s, h)
	trouble := errors.New("cannot read the survey")
	if _, err := s.Collect(context.Background(), CollectOptions{Keep: func() ([]Hash, error) { return nil, trouble }}); !errors.Is(err, trouble) || !s.Has(h) {
		t.Errorf("Keep fails: got %v", err)
	}
}

// What a dry run reports becomes true, also for a bundle that is half unused and for a name that goes. It changes nothing.
func TestADryRunReportsWhatWillBe(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	var h Hash
	write(t, s, func(b *Batch) {
		h = fixture.Must[Hash](t)(commitTo(b, map[string]string{"f": text(1, 20_000)}))
		fixture.Must[Hash](t)(b.Add([]byte(text(2, 20_000))))
	})
	fixture.NoError(t, s.SetName("t", h))
	fixture.NoError(t, s.SetName("gone", commit(t, s, map[string]string{"g": text(3, 20_000)})))
	s.Settle()
	before := listed(t, s, bundlesDir)
	dry := fixture.Must[Collected](t)(s.Collect(ctx, CollectOptions{DryRun: true, Without: []string{"gone"}}))
	if fmt.Sprint(listed(t, s, bundlesDir)) != fmt.Sprint(before) || !s.Contains(hashOf(text(3, 20_000))) {
		t.Error("a dry run changed something")
	}
	fixture.NoError(t, s.RemoveName("gone"))
	done := collect(t, s)
	if dry.Kept != done.Kept || dry.Removed != done.Removed || dry.Before != done.Before || dry.Removed != 3 || dry.Kept != 2 {
		t.Errorf("reported %+v, did %+v", dry, done)
	}
	if off := dry.After - done.After; off < -1000 || off > 1000 {
		t.Errorf("reported %d bytes after, there are %d", dry.After, done.After)
	}
	if _, err := os.Stat(s.path(bundlesDir, before[0])); err == nil && s.Contains(hashOf(text(2, 20_000))) {
		t.Error("unused bytes are still on disk")
	}
}

func TestNothingIsRemovedWhenSomethingIsMissing(t *testing.T) {
	for _, how := range []string{"a content is missing", "a manifest is damaged", "a bundle is damaged", "a name is damaged"} {
		s := newStore(t)
		add(t, s, "leaf")
		gone := listed(t, s, bundlesDir)[0]
		h := commit(t, s, map[string]string{"f": "leaf"})
		add(t, s, "garbage")
		fixture.NoError(t, s.SetName("t", h))
		s.Settle()
		switch how {
		case "a content is missing":
			fixture.NoError(t, os.Remove(s.path(bundlesDir, gone)))
		case "a manifest is damaged":
			damage(t, s, h)
		case "a bundle is damaged":
			fixture.NoError(t, os.WriteFile(s.path(bundlesDir, gone), []byte("no bundle at all, and long enough to be taken for one"), 0o600))
		case "a name is damaged":
			fixture.NoError(t, os.WriteFile(s.path(namesDir, "t"), []byte("no hash"), 0o600))
		}
		o := openStore(t, s.dir)
		if _, err := o.Collect(context.Background(), CollectOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", how, err)
		}
		if !o.Has(hashOf("garbage")) {
			t.Errorf("%s: something was removed", how)
		}
	}
}

// A content that cannot be read stops no collection of others, and its own bundle stays as it is.
func TestADamagedBundleStays(t *testing.T) {
	s := newStore(t)
	bad, good := text(1, 20_000), text(2, 20_000)
	var h Hash
	write(t, s, func(b *Batch) {
		h = fixture.Must[Hash](t)(commitTo(b, map[string]string{"bad": bad, "good": good}))
		fixture.Must[Hash](t)(b.Add([]byte("garbage beside it")))
	})
	add(t, s, "garbage")
	fixture.NoError(t, s.SetName("t", h))
	s.Settle()
	damage(t, s, hashOf(bad))
	got := collect(t, openStore(t, s.dir))
	after := openStore(t, s.dir)
	if after.Has(hashOf("garbage")) || !after.Has(hashOf(bad)) || !after.Has(hashOf("garbage beside it")) {
		t.Errorf("collected: %+v", got)
	}
	if read(t, after, hashOf(good)) != good {
		t.Error("the good content of the damaged bundle is lost")
	}
}

// Thousands of batches leave few bundles, and what a Store holds stays held when others are merged.
func TestSmallBundlesAreMerged(t *testing.T) {
	s := openStore(t, filepath.Join(quickDir(t), "store"))
	holder := openStore(t, s.dir)
	add(t, holder, "held")
	n := 2*mergeCount + 10
	for i := range n {
		add(t, s, fmt.Sprint(i))
		s.Settle()
	}
	if got := len(listed(t, s, bundlesDir)); got > mergeCount+3 {
		t.Errorf("there are %d bundles", got)
	}
	reader := openStore(t, s.dir)
	for i := range n {
		if got := read(t, reader, hashOf(fmt.Sprint(i))); got != fmt.Sprint(i) {
			t.Errorf("content %d reads as %q", i, got)
		}
	}
	if got := collect(t, s); got.Removed != n || got.Kept != 1 {
		t.Errorf("collected: %+v", got)
	}
	if !reader.Has(hashOf("held")) {
		t.Error("a merge removed what is held")
	}
	holder.Settle()
	if got := collect(t, s); got.Kept != 0 {
		t.Errorf("collected: %+v", got)
	}
}

// Merging takes all small bundles that no Store holds, and waits for no process.
func TestMergingWaitsForNoProcess(t *testing.T) {
	s := openStore(t, filepath.Join(quickDir(t), "store"))
	want := map[Hash]string{}
	put := func(n, size int) {
		c := text(n, size)
		want[hashOf(c)] = c
		add(t, s, c)
		s.Settle()
	}
	count := func(want int) {
		t.Helper()
		if got := len(listed(t, s, bundlesDir)); got != want {
			t.Errorf("got %d bundles, want %d", got, want)
		}
	}
	put(1000, 600<<10)
	for i := range mergeCount - 2 {
		put(i, 100)
	}
	count(mergeCount - 1)
	put(mergeCount, 100) // its own bundle is held while it merges the others
	count(2)
	free := fixture.Must[func()](t)(s.lock(context.Background(), lockCollect, filelock.Exclusive))
	for i := range mergeCount + 5 {
		put(2000+i, 100)
	}
	free()
	count(mergeCount + 5 + 2)
	put(3000, 100)
	count(2)
	for h, c := range want {
		if read(t, s, h) != c {
			t.Errorf("content %s changed", h)
		}
	}
}

// A reader that read the folder before bundles were merged or collected continues with what stayed.
func TestAReaderOutlivesBundles(t *testing.T) {
	s := newStore(t)
	h := commit(t, s, map[string]string{"a": "kept", "b/c": text(1, 3000)})
	add(t, s, "dropped")
	fixture.NoError(t, s.SetName("t", h))
	reader := openStore(t, s.dir)
	files(t, reader, h)
	read(t, reader, hashOf("dropped"))
	s.Settle()
	collect(t, s)
	files(t, reader, h)
	if _, err := reader.Read(context.Background(), hashOf("dropped"), 0); !errors.Is(err, ErrMissing) || reader.Has(hashOf("dropped")) {
		t.Errorf("what was collected: got %v", err)
	}
	fixture.NoError(t, os.RemoveAll(s.dir))
	if _, err := reader.Manifest(context.Background(), h); !errors.Is(err, ErrMissing) {
		t.Errorf("without a store: got %v", err)
	}
	commit(t, reader, map[string]string{"a": "again"})
}

// Goroutines that share a Store: each keeps what it works on, so that no Settle of another releases it.
func TestOneStoreOfManyGoroutines(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 6 {
				release := s.Keep()
				write := func(fill func(b *Batch) (Hash, error)) (h Hash) {
					b, err := s.Begin(ctx)
					if err == nil {
						h, err = fill(b)
						err = errors.Join(err, b.Close())
					}
					if err != nil {
						t.Error(err)
					}
					return h
				}
				h := write(func(b *Batch) (Hash, error) { return b.Add(fmt.Append(nil, "shared ", i)) })
				if w == 0 {
					if _, err := s.Collect(ctx, CollectOptions{}); err != nil {
						t.Error(err)
					}
				}
				m := write(func(b *Batch) (Hash, error) {
					return b.AddManifest(Manifest{Files: []File{{Path: fmt.Sprint(w), Hash: h}}})
				})
				if err := s.SetName(fmt.Sprint(w), m); err != nil {
					t.Error(err)
				}
				release()
				s.Settle()
				if got, err := s.Read(ctx, h, 0); err != nil || string(got) != fmt.Sprint("shared ", i) {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if got := collect(t, s); got.Kept != 5 { // four manifests, one file
		t.Errorf("collected: %+v", got)
	}
	verifyAll(t, s)
}

func TestAWaitForALockEnds(t *testing.T) {
	s := newStore(t)
	commit(t, s, map[string]string{"a": "1"})
	free := fixture.Must[func()](t)(s.lock(context.Background(), lockRemove, filelock.Exclusive))
	defer free()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := openStore(t, s.dir).Collect(ctx, CollectOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("collect: got %v", err)
	}
	if _, err := openStore(t, s.dir).Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begin: got %v", err)
	}
	read(t, s, hashOf("1")) // readers never wait
}

// On a very slow disk a Store waits long for its turn; the error names the lock.
func TestHoldingWaitsForItsTurn(t *testing.T) {
	for held, fails := range map[time.Duration]bool{50 * time.Second: false, 70 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			commit(t, s, map[string]string{"f": "x"})
			s.Settle()
			free := fixture.Must[func()](t)(s.lock(context.Background(), lockRemove, filelock.Exclusive))
			done := make(chan error)
			go func() {
				defer s.Keep()()
				_, err := s.Find(hashOf("x"))
				done <- err
			}()
			time.Sleep(held)
			free()
			err := <-done
			if (err != nil) != fails {
				t.Fatalf("held for %s: got %v", held, err)
			}
			if fails && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), s.path(lockRemove))) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A batch that failed stops no collection: that may be what makes room for it.
func TestAFailedBatchStopsNoCollection(t *testing.T) {
	s := newStore(t)
	commit(t, s, map[string]string{"a": "1"})
	s.Settle()
	b := fixture.Must[*Batch](t)(s.Begin(context.Background()))
	fixture.Must[Hash](t)(b.Add([]byte("x")))
	full := errors.New("no space")
	s.fault = func(op string) error {
		if op == "rename" {
			return full
		}
		return nil
	}
	if err := b.Close(); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if got := collect(t, openStore(t, s.dir)); got.Removed != 2 {
		t.Errorf("collected: %+v", got)
	}
}
