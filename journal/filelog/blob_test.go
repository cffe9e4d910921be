package filelog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// The same payload stored by many at once is one file, under the one name.
func TestSameBlobByMany(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	data := strings.Repeat("payload ", 100_000)
	names := make([]journal.Hash, 12)
	var wait sync.WaitGroup
	for i := range names {
		wait.Go(func() {
			var err error
			if i%2 == 0 {
				names[i], err = o.PutBlob(t.Context(), []byte(data))
			} else {
				names[i], _, err = o.PutBlobFrom(t.Context(), strings.NewReader(data))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, name := range names {
		if name != names[0] {
			t.Fatalf("got %v, want name = names[0]", names)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	left, _ := filepath.Glob(filepath.Join(dir, "blobs", "tmp-*"))
	if err != nil || len(files) != 1 || len(left) != 0 {
		t.Fatalf("got %v %v %v, want no error and len(files) = 1 and len(left) = 0", files, left, err)
	}
}

// A payload that ends in the middle, by its source or by a cancel, is not stored,
// and leaves nothing behind.
func TestBlobThatEndsInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	broken := errors.New("the pipe broke")
	r := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing{broken})
	if _, _, err := o.PutBlobFrom(t.Context(), r); !errors.Is(err, broken) || errors.Is(err, journal.ErrNotSaved) {
		t.Errorf("a source that fails is no trouble of the disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r = io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), cancelling(cancel), strings.NewReader(strings.Repeat("y", 1<<20)))
	if _, _, err := o.PutBlobFrom(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "blobs", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type cancelling context.CancelFunc

func (c cancelling) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// A payload that was damaged on the disk is healed when the same bytes come again, in this
// ownership and in the next.
func TestADamagedBlobIsHealed(t *testing.T) {
	dir := t.TempDir()
	data := []byte(strings.Repeat("payload", 1000))
	for range 2 {
		o := mustOwn(t, dir, filelog.Options{})
		for _, stream := range []bool{false, true} {
			h, err := o.PutBlob(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("blobs", string(h[:2]), string(h))
			rotten := bytes.Clone(data)
			rotten[17] ^= 1
			put(t, dir, path, rotten)
			if stream {
				_, _, err = o.PutBlobFrom(t.Context(), bytes.NewReader(data))
			} else {
				_, err = o.PutBlob(t.Context(), data)
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := o.Blob(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := b.ReadAll(); err != nil || !bytes.Equal(got, data) {
				t.Errorf("stream %v: %v", stream, err)
			}
			b.Close()
			put(t, dir, path, rotten) // for the next owner
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A link in a blob's place could lead anywhere: it is damage, and is not followed.
func TestBlobBehindALink(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	h, err := o.PutBlob(t.Context(), []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "blobs", string(h[:2]), string(h))
	put(t, dir, "elsewhere", []byte("payload"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
		t.Skip(err)
	}
	if _, err := o.Blob(t.Context(), h); !errors.Is(err, journal.ErrBlobDamaged) {
		t.Fatal(err)
	}
}

// A folder that was copied while its owner was at work is a log of its own: what
// the copied record says of the original's length does not count in it.
func TestCopiedFolder(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	add(t, o, 3)
	early := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(early, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	add(t, o, 3)
	log, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, early, "journal.jsonl", log) // a younger log beside an older record
	seqs, lost := found(t, early)
	if got := fmt.Sprint(seqs, lost); got != "[1 2 3 4 5 6 7] []" {
		t.Fatal(got)
	}
	theirs := mustOwn(t, early, filelog.Options{})
	add(t, theirs, 1)
	add(t, o, 1)
	if a, b := checkLog(t, dir), checkLog(t, early); a != 8 || b != 9 {
		t.Fatalf("heads %d and %d", a, b)
	}
}
