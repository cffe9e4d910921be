package object

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func collect(t testing.TB, s *Store) Collected {
	t.Helper()
	return must[Collected](t)(s.Collect(context.Background(), CollectOptions{}))
}

// What another process relies on stays, until it lets go or dies.
func TestWhatAnotherProcessHoldsIsNotCollected(t *testing.T) {
	s := made(t)
	old := blobID([]byte("was there"))
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("was there"))) })
	s.Settle()
	c := start(t, s, "")
	has := func(want bool, content ...string) {
		t.Helper()
		o := opened(t, s.dir)
		for _, text := range content {
			if o.Has(blobID([]byte(text))) != want {
				t.Errorf("%q is there: %v", text, !want)
			}
		}
	}
	c.say("begin")
	if c.say("blob was there") != string(old) {
		t.Fatal("the child writes something else")
	}
	collect(t, s)
	has(true, "was there")
	c.say("blob new")
	c.say("close")
	collect(t, s)
	has(true, "was there", "new")
	c.kill()
	if got := collect(t, s); got.Kept != 0 || got.Removed != 2 {
		t.Errorf("after the kill: %+v", got)
	}
	has(false, "was there", "new")
	if left := must[[]os.DirEntry](t)(os.ReadDir(s.path("roost", "leases"))); len(left) != 0 {
		t.Errorf("a dead lease stays: %v", left)
	}
}

func TestWhatHasFoundIsHeldWhenAsked(t *testing.T) {
	s := made(t)
	id := blobID([]byte("x"))
	fill := func() {
		write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("x"))) })
		s.Settle()
	}
	fill()
	c := start(t, s, "")
	if c.say("has "+string(id)) != "true" {
		t.Fatal("the child does not see it")
	}
	if got := collect(t, s); got.Removed != 1 {
		t.Errorf("looking held it: %+v", got)
	}
	if c.say("has "+string(id)) != "false" {
		t.Error("the child sees what is gone")
	}
	fill()
	c.say("keep")
	if c.say("has "+string(id)) != "true" {
		t.Error("the child does not see what came")
	}
	if got := collect(t, s); got.Removed != 0 {
		t.Errorf("what it relies on was removed: %+v", got)
	}
}

// A tree that somebody relies on is nothing without what it names.
func TestWhatIsHeldStaysWhole(t *testing.T) {
	s := made(t)
	var tree ID
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("leaf"))) })
	write(t, s, func(b *Batch) { tree = must[ID](t)(b.Tree([]TreeEntry{{"f", ModeFile, blobID([]byte("leaf"))}})) })
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("garbage"))) })
	s.Settle()
	release := s.Keep()
	if !s.Has(tree) {
		t.Fatal("the tree is not there")
	}
	s.Settle() // does nothing: something is kept
	if got := collect(t, opened(t, s.dir)); got.Kept != 2 || got.Removed != 1 {
		t.Errorf("collected: %+v", got)
	}
	release()
	release()
	s.Settle()
	if got := collect(t, s); got.Kept != 0 || got.Removed != 2 {
		t.Errorf("collected after it: %+v", got)
	}
}

// While somebody collects without end, others write and name what they wrote: all
// that a ref reaches is there at any time.
func TestCollectingBesideWriters(t *testing.T) {
	s := made(t)
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("first"))) })
	ctx, cancel := context.WithCancel(context.Background())
	var collectors sync.WaitGroup
	for range 2 {
		c := opened(t, s.dir)
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
		s := opened(t, s.dir)
		reader := opened(t, s.dir)
		writers.Go(func() {
			ref := RefName(fmt.Sprint("w", w))
			for i := range rounds {
				// Old states come again, so that batches find what is there and about to go.
				want := map[string]string{"a": fmt.Sprint(i % 3), "b/c": fmt.Sprint("both ", i%5), "d": fmt.Sprint(w, i)}
				var id ID
				b, err := s.Begin(ctx)
				if err == nil {
					id = commitTo(t, b, want)
					err = b.Close()
				}
				if err == nil {
					err = s.SetRef(ref, id)
				}
				s.Settle()
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range []*Store{s, reader} {
					if got := files(t, r, id); fmt.Sprint(got) != fmt.Sprint(want) {
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
	fsck(t, s)
}

// One collection that is held up at its most dangerous moment: between the mark and the
// removal somebody finds what is about to go, names it and lets go.
func TestARefThatComesAfterTheMark(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1", "b/c": "2"})
	keep := commit(t, s, map[string]string{"x": "y"})
	ok(t, s.SetRef("refs/roost/keep", keep))
	s.Settle()
	other := opened(t, s.dir)
	asked := 0
	got, err := s.Collect(context.Background(), CollectOptions{Keep: func() ([]ID, error) {
		if asked++; asked == 1 { // the first mark is nearly done
			write(t, other, func(b *Batch) { commitTo(t, b, map[string]string{"a": "1", "b/c": "2"}) })
			ok(t, other.SetRef("refs/roost/late", id))
			other.Settle()
		}
		return nil, nil
	}})
	if err != nil || asked != 2 || got.Removed != 0 {
		t.Errorf("collected: %+v, %v, asked %d times", got, err, asked)
	}
	for _, c := range []ID{id, keep} {
		files(t, opened(t, s.dir), c)
	}
	fsck(t, s)
}

func TestKeepHoldsMore(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1"})
	commit(t, s, map[string]string{"b": "2"})
	s.Settle()
	keep := func() ([]ID, error) { return []ID{id, blobID([]byte("nowhere"))}, nil }
	before := must[int64](t)(s.Size())
	dry := must[Collected](t)(s.Collect(context.Background(), CollectOptions{Keep: keep, DryRun: true}))
	if after := must[int64](t)(s.Size()); dry.Kept != 3 || dry.Removed != 3 || dry.Before != before || after != before || dry.After >= before {
		t.Errorf("dry run: %+v, %d bytes became %d", dry, before, after)
	}
	done := must[Collected](t)(s.Collect(context.Background(), CollectOptions{Keep: keep}))
	if done.Kept != 3 || done.Removed != 3 || done.After >= done.Before {
		t.Errorf("collected: %+v", done)
	}
	files(t, s, id)
	trouble := errors.New("cannot say")
	if _, err := s.Collect(context.Background(), CollectOptions{Keep: func() ([]ID, error) { return nil, trouble }}); !errors.Is(err, trouble) || !s.Has(id) {
		t.Errorf("who cannot say what stays: %v", err)
	}
}

func TestNothingIsRemovedWhenSomethingIsMissing(t *testing.T) {
	for _, how := range []string{"missing", "damaged"} {
		s := made(t)
		var tree ID
		write(t, s, func(b *Batch) { tree = must[ID](t)(b.Tree(nil)) })
		gone := packsOf(t, s)
		id := must[ID](t)(func() (id ID, err error) {
			write(t, s, func(b *Batch) { id = must[ID](t)(b.Commit(Commit{Tree: tree})) })
			return id, nil
		}())
		write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("garbage"))) })
		ok(t, s.SetRef("refs/roost/t", id))
		s.Settle()
		for _, name := range gone {
			path := filepath.Join(s.packDir(), name)
			if how == "missing" {
				ok(t, os.Remove(path))
			} else if filepath.Ext(name) == ".pack" {
				ok(t, os.WriteFile(path, []byte("no pack at all, no pack at all"), 0o600))
			}
		}
		o := opened(t, s.dir)
		if _, err := o.Collect(context.Background(), CollectOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", how, err)
		}
		if !o.Has(blobID([]byte("garbage"))) {
			t.Errorf("%s: something was removed", how)
		}
	}
}

// Thousands of batches leave few packs, and what one of them holds stays held
// when its pack is merged.
func TestSmallPacksAreMerged(t *testing.T) {
	s := made(t)
	holder := opened(t, s.dir)
	write(t, holder, func(b *Batch) { must[ID](t)(b.Blob([]byte("held"))) })
	n := 2*crowd + 10
	for i := range n {
		write(t, s, func(b *Batch) { must[ID](t)(b.Blob(fmt.Append(nil, i))) })
	}
	if got := len(packsOf(t, s)); got > 2*(crowd+3) {
		t.Errorf("there are %d files of packs", got)
	}
	s.Settle()
	reader := opened(t, s.dir)
	for i := range n {
		read(t, reader, blobID(fmt.Append(nil, i)), fmt.Append(nil, i))
	}
	if got := collect(t, s); got.Removed == 0 {
		t.Errorf("what is held in a merged pack keeps all else: %+v", got)
	}
	if !reader.Has(blobID([]byte("held"))) {
		t.Error("what is held went with a merge")
	}
	fsck(t, s)
	holder.Settle()
	if got := collect(t, s); got.Kept != 0 {
		t.Errorf("collected: %+v", got)
	}
}

// A pack that a person told git to keep is left alone, and so is what it needs.
func TestAGuardedPackStays(t *testing.T) {
	s := made(t)
	write(t, s, func(b *Batch) { must[ID](t)(b.Blob([]byte("leaf"))) })
	write(t, s, func(b *Batch) {
		tree := must[ID](t)(b.Tree([]TreeEntry{{"f", ModeFile, blobID([]byte("leaf"))}}))
		must[ID](t)(b.Commit(Commit{Tree: tree}))
	})
	for name, p := range s.known.packs {
		if p.idx.n == 2 {
			ok(t, os.WriteFile(filepath.Join(s.packDir(), name+".keep"), nil, 0o600))
		}
	}
	s.Settle()
	if got := collect(t, s); got.Kept != 3 || got.Removed != 0 {
		t.Errorf("collected: %+v", got)
	}
}

func TestAWaitForALockEnds(t *testing.T) {
	s := made(t)
	commit(t, s, map[string]string{"a": "1"})
	free := must[func()](t)(s.lock(context.Background(), lockRemove, true))
	defer free()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := opened(t, s.dir).Collect(ctx, CollectOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("collect: %v", err)
	}
	if _, err := opened(t, s.dir).Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begin: %v", err)
	}
	read(t, s, blobID([]byte("1")), []byte("1")) // readers never wait
}

// A git that a person runs moves what no ref reaches to other places: whoever relies
// on it does not lose it to a collection.
func TestWhatGitMovedStaysHeld(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "1"})
	ok(t, s.SetRef("refs/roost/t", commit(t, s, map[string]string{"b": "2"})))
	git(t, s, "", "gc", "--quiet")
	if must[os.FileInfo](t)(os.Stat(s.loose(must[sum](t)(id.sum())).path)) == nil {
		t.Fatal("git moved nothing")
	}
	if got := collect(t, opened(t, s.dir)); got.Removed != 0 {
		t.Errorf("collected: %+v", got)
	}
	files(t, s, id)
	s.Settle()
	if got := collect(t, s); got.Removed != 3 || got.Kept != 3 {
		t.Errorf("collected after it: %+v", got)
	}
	fsck(t, s)
}

// A batch that could not be named keeps nobody from collecting: that may be what
// makes room for it.
func TestAFailedBatchKeepsNobodyFromCollecting(t *testing.T) {
	s := made(t)
	commit(t, s, map[string]string{"a": "1"})
	s.Settle()
	b := must[*Batch](t)(s.Begin(context.Background()))
	must[ID](t)(b.Blob([]byte("x")))
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
	if got := collect(t, opened(t, s.dir)); got.Removed != 3 {
		t.Errorf("collected: %+v", got)
	}
}

// A pack without its index is somebody's who is about to give it one, or was killed.
func TestAPackWithoutItsIndex(t *testing.T) {
	s := made(t)
	commit(t, s, map[string]string{"a": "1"})
	names := packsOf(t, s)
	name := names[0][:len(names[0])-len(".idx")]
	ok(t, os.Remove(filepath.Join(s.packDir(), name+".idx")))
	collect(t, opened(t, s.dir))
	if got := packsOf(t, s); len(got) != 1 {
		t.Errorf("of one that is being named is left: %q", got)
	}
	s.Settle()
	collect(t, opened(t, s.dir))
	if got := packsOf(t, s); len(got) != 0 {
		t.Errorf("of one that nobody names is left: %q", got)
	}
}
