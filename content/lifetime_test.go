package content

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestNothingIsRemovedWhenSomethingIsMissing(t *testing.T) {
	for _, how := range []string{"a content is missing", "a manifest is damaged", "a bundle is damaged", "a name is damaged"} {
		s := newStore(t)
		add(t, s, "leaf")
		gone := listed(t, s, bundlesDir)[0]
		h := commit(t, s, map[string]string{"f": "leaf"})
		add(t, s, "garbage")
		fixture.NoError(t, s.SetName(context.Background(), "t", h))
		s.Settle()
		switch how {
		case "a content is missing":
			fixture.NoError(t, os.Remove(s.path(bundlesDir, gone)))
		case "a manifest is damaged":
			s.Damage(t, h)
		case "a bundle is damaged":
			fixture.NoError(t, os.WriteFile(s.path(bundlesDir, gone), []byte("no bundle at all, and long enough to be taken for one"), 0o600))
		case "a name is damaged":
			fixture.NoError(t, os.WriteFile(s.path(namesDir, "t"), []byte("no hash"), 0o600))
		}
		o := openStore(t, s.dir)
		if _, err := o.Collect(context.Background(), CollectOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", how, err)
		}
		if !o.Has(context.Background(), hashOf("garbage")) {
			t.Errorf("%s: something was removed", how)
		}
	}
}

// A content that cannot be read stops no collection of others, and its own bundle stays as it is.
func TestADamagedBundleStays(t *testing.T) {
	s := newStore(t)
	bad, good := text(1, 20_000), text(2, 20_000)
	var h Hash
	write(t, s, func(b Batch) {
		h = fixture.Must[Hash](t)(commitTo(b, map[string]string{"bad": bad, "good": good}))
		fixture.Must[Hash](t)(b.Add([]byte("garbage beside it")))
	})
	add(t, s, "garbage")
	fixture.NoError(t, s.SetName(context.Background(), "t", h))
	s.Settle()
	s.Damage(t, hashOf(bad))
	got := collect(t, openStore(t, s.dir))
	after := openStore(t, s.dir)
	if after.Has(context.Background(), hashOf("garbage")) || !after.Has(context.Background(), hashOf(bad)) || !after.Has(context.Background(), hashOf("garbage beside it")) {
		t.Errorf("collected: %+v", got)
	}
	if read(t, after, hashOf(good)) != good {
		t.Error("the good content of the damaged bundle is lost")
	}
}

// Thousands of batches leave few bundles, and what a Store holds stays held when others are merged.
func TestSmallBundlesAreMerged(t *testing.T) {
	s := openStore(t, filepath.Join(QuickDir(t), "store"))
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
	if !reader.Has(context.Background(), hashOf("held")) {
		t.Error("a merge removed what is held")
	}
	holder.Settle()
	if got := collect(t, s); got.Kept != 0 {
		t.Errorf("collected: %+v", got)
	}
}

// Merging takes all small bundles that no Store holds, and waits for no process.
func TestMergingWaitsForNoProcess(t *testing.T) {
	s := openStore(t, filepath.Join(QuickDir(t), "store"))
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
	fixture.NoError(t, s.SetName(context.Background(), "t", h))
	reader := openStore(t, s.dir)
	files(t, reader, h)
	read(t, reader, hashOf("dropped"))
	s.Settle()
	collect(t, s)
	files(t, reader, h)
	if _, err := reader.Read(context.Background(), hashOf("dropped"), 0); !errors.Is(err, ErrMissing) || reader.Has(context.Background(), hashOf("dropped")) {
		t.Errorf("what was collected: got %v", err)
	}
	fixture.NoError(t, os.RemoveAll(s.dir))
	if _, err := reader.Manifest(context.Background(), h); !errors.Is(err, ErrMissing) {
		t.Errorf("without a store: got %v", err)
	}
	commit(t, reader, map[string]string{"a": "again"})
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
				_, err := s.Find(context.Background(), hashOf("x"))
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
	b := fixture.Must[Batch](t)(s.Begin(context.Background()))
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

// A content whose copy in a large bundle is damaged was written again. A collection by a process that does not know of
// the damage keeps the good copy.
func TestCollectKeepsTheGoodCopy(t *testing.T) {
	s := openStore(t, filepath.Join(QuickDir(t), "store"))
	ctx := context.Background()
	const mended, name = "written twice", "task"
	random := make([]byte, largeBundle)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // it never fails
	b := fixture.Must[Batch](t)(s.Begin(ctx))
	large := fixture.Must[Hash](t)(b.Add(random))
	small := fixture.Must[Hash](t)(b.Add([]byte(mended)))
	m := fixture.Must[Hash](t)(b.AddManifest(Manifest{Files: []File{{Hash: large}, {Hash: small}}}))
	fixture.NoError(t, b.Close())
	fixture.NoError(t, s.SetName(ctx, name, m))
	s.Damage(t, small)
	if err := s.Verify(ctx, small); !errors.Is(err, ErrDamaged) {
		t.Fatalf("got %v, want that the content is damaged", err)
	}
	add(t, s, mended)
	b = fixture.Must[Batch](t)(s.Begin(ctx))
	other := fixture.Must[Hash](t)(b.AddManifest(Manifest{Title: "a second small bundle"}))
	fixture.NoError(t, b.Close())
	fixture.NoError(t, s.SetName(ctx, "other", other))
	s.Settle()
	collect(t, openStore(t, s.dir))
	if got := read(t, openStore(t, s.dir), small); got != mended {
		t.Errorf("got %q after a collection, want %q", got, mended)
	}
}
