package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zlib"
)

// Goroutines that share a Store: each keeps what it works on, so that nobody's Settle
// is at another's cost.
func TestOneStoreOfMany(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 6 {
				release := s.Keep()
				write := func(fill func(b *Batch) (ID, error)) (id ID) {
					b, err := s.Begin(ctx)
					if err == nil {
						id, err = fill(b)
						err = errors.Join(err, b.Close())
					}
					if err != nil {
						t.Error(err)
					}
					return id
				}
				blob := write(func(b *Batch) (ID, error) { return b.Blob(fmt.Append(nil, "shared ", i)) })
				if w == 0 {
					if _, err := s.Collect(ctx, CollectOptions{}); err != nil {
						t.Error(err)
					}
				}
				id := write(func(b *Batch) (ID, error) {
					tree, err := b.Tree([]TreeEntry{{fmt.Sprint(w), ModeFile, blob}})
					if err != nil {
						return "", err
					}
					return b.Commit(Commit{Tree: tree})
				})
				if err := s.SetRef(fmt.Sprint("refs/roost/", w), id); err != nil {
					t.Error(err)
				}
				release()
				s.Settle()
				if got, err := s.Read(ctx, blob, 0); err != nil || string(got) != fmt.Sprint("shared ", i) {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if got := collect(t, s); got.Kept != 9 { // four commits, four trees, one blob
		t.Errorf("collected: %+v", got)
	}
	fsck(t, s)
}

// A reader that looked at the packs before they were merged or collected goes on
// reading what stayed, and says of the rest that it is missing.
func TestAReaderOutlivesPacks(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": "kept", "b/c": text(1, 3000)})
	commit(t, s, map[string]string{"a": "dropped"})
	ok(t, s.SetRef("refs/roost/t", id))
	reader := opened(t, s.dir)
	files(t, reader, id)
	dropped := blobID([]byte("dropped"))
	read(t, reader, dropped, []byte("dropped"))
	s.Settle()
	collect(t, s)
	files(t, reader, id)
	if _, err := reader.Read(context.Background(), dropped, 0); !errors.Is(err, ErrMissing) || reader.Has(dropped) {
		t.Errorf("what was collected: %v", err)
	}
	// The whole store may come back as an older copy, or go.
	ok(t, os.RemoveAll(s.dir))
	if _, err := reader.Commit(context.Background(), id); !errors.Is(err, ErrMissing) {
		t.Errorf("without a store: %v", err)
	}
	commit(t, reader, map[string]string{"a": "again"})
	fsck(t, reader)
}

func TestCopiesOfOneObject(t *testing.T) {
	ctx := context.Background()
	content := []byte(text(5, 4000))
	id := hashOf(KindBlob, content)
	bad := func(s *Store) {
		pack, index := built([]entry{{id: id, kind: packBlob, data: []byte("something else")}})
		putPack(t, s, pack, index)
	}
	for name, good := range map[string]func(s *Store){
		"another pack": func(s *Store) {
			pack, index := built([]entry{{id: id, kind: packBlob, data: content}})
			putPack(t, s, pack, index)
		},
		"a loose file": func(s *Store) {
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			w.Write(prefix(KindBlob, int64(len(content))))
			w.Write(content)
			ok(t, w.Close())
			path := s.loose(id).path
			ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
			ok(t, os.WriteFile(path, z.Bytes(), 0o600))
		},
		"a difference to a base elsewhere": func(s *Store) {
			base := content[:3900]
			write(t, s, func(b *Batch) { must[ID](t)(b.Blob(base)) })
			delta := append([]byte{0xbc, 0x1e, 0xa0, 0x1f, 0xb0, 0x3c, 0x0f, 100}, content[3900:]...)
			pack, index := built([]entry{{id: id, kind: packRef, base: bytesOf(hashOf(KindBlob, base)), data: delta}})
			putPack(t, s, pack, index)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(t)
			bad(s)
			good(s)
			for range 3 { // which copy comes first is chance
				read(t, opened(t, s.dir), id.ID(), content)
			}
			ok(t, s.SetRef("refs/roost/t", id.ID()))
			s.Settle()
			collect(t, s)
			read(t, opened(t, s.dir), id.ID(), content)
			if _, err := s.Tree(ctx, id.ID()); err == nil || !strings.Contains(err.Error(), "is a blob") {
				t.Errorf("a blob is read as a tree: %v", err)
			}
		})
	}
}

// Of a file that does not fit in memory some bytes are out before the damage is seen: the
// error says so, and who gets it has nothing.
func TestDamageInALargeFile(t *testing.T) {
	s := made(t)
	const size = spill + 4096
	var id ID
	write(t, s, func(b *Batch) { id = must[ID](t)(b.BlobFrom(&noise{left: size, x: 9}, size)) })
	for _, name := range packsOf(t, s) {
		if path := filepath.Join(s.packDir(), name); filepath.Ext(name) == ".pack" {
			data := must[[]byte](t)(os.ReadFile(path))
			data[len(data)-200] ^= 0x40
			ok(t, os.WriteFile(path, data, 0o600))
		}
	}
	o := opened(t, s.dir)
	if err := o.Copy(context.Background(), id, io.Discard); !errors.Is(err, ErrDamaged) {
		t.Errorf("copy: %v", err)
	}
	write(t, o, func(b *Batch) {
		if again := must[ID](t)(b.BlobFrom(&noise{left: size, x: 9}, size)); again != id {
			t.Errorf("%s became %s", id, again)
		}
	})
	if err := o.Copy(context.Background(), id, io.Discard); err != nil {
		t.Errorf("copy of what was written anew: %v", err)
	}
}

func TestWhatRefsReachIsCounted(t *testing.T) {
	ctx := context.Background()
	s := made(t)
	shared := text(1, 10_000)
	a := commit(t, s, map[string]string{"s": shared, "a": text(2, 1000)})
	b := commit(t, s, map[string]string{"s": shared, "b": text(3, 1000)}, a)
	ok(t, s.SetRef("refs/roost/a", a))
	ok(t, s.SetRef("refs/roost/b", b))
	na, bytesA, err := s.Reaches(ctx, "refs/roost/a")
	ok(t, err)
	nb, bytesB, err := s.Reaches(ctx, "refs/roost/b")
	ok(t, err)
	if na != 4 || nb != 7 || bytesA < 4000 || bytesB <= bytesA || bytesB > 2*bytesA || bytesB > must[int64](t)(s.Size()) {
		t.Errorf("a reaches %d of %d bytes, b %d of %d", na, bytesA, nb, bytesB)
	}
	if _, _, err := s.Reaches(ctx, "refs/roost/c"); !errors.Is(err, ErrMissing) {
		t.Errorf("a ref that is not there: %v", err)
	}
	unpackAll(t, s)
	if n, size, err := opened(t, s.dir).Reaches(ctx, "refs/roost/b"); n != nb || size < bytesB || err != nil {
		t.Errorf("as loose objects: %d of %d bytes, %v", n, size, err)
	}
}

// Packs of the next size are merged as well, and those that are large are not.
func TestMergingHasSizes(t *testing.T) {
	s := made(t)
	s.dir = filepath.Join(quickDir(t), "store")
	want := map[ID]int{}
	add := func(n, size int) {
		write(t, s, func(b *Batch) { want[must[ID](t)(b.Blob([]byte(text(n, size))))] = size })
	}
	add(1000, 600<<10) // more than the first size when it is packed
	for i := range crowd - 1 {
		add(i, 100)
	}
	if got := len(packsOf(t, s)) / 2; got != crowd {
		t.Errorf("%d packs, merged too early", got)
	}
	add(crowd, 100)
	if got := len(packsOf(t, s)) / 2; got != 2 {
		t.Errorf("%d packs after a crowd of small ones", got)
	}
	for id, size := range maps.All(want) {
		if _, got, err := s.Stat(context.Background(), id); got != int64(size) || err != nil {
			t.Errorf("%s has %d bytes of %d, %v", id, got, size, err)
		}
	}
	// A merge waits for nobody: while somebody collects there is none.
	free := must[func()](t)(s.lock(context.Background(), lockCollect, true))
	start := time.Now()
	for i := range crowd + 5 {
		add(2000+i, 100)
	}
	free()
	if got := len(packsOf(t, s)) / 2; got != crowd+7 || time.Since(start) > 30*time.Second {
		t.Errorf("%d packs while somebody collects", got)
	}
	add(3000, 100)
	if got := len(packsOf(t, s)) / 2; got != 2 {
		t.Errorf("%d packs after it", got)
	}
	fsck(t, s)
}

// A file's content that went bad on the disk keeps nobody from collecting, and is not
// thrown away: somebody may read more of it one day.
func TestADamagedBlobStays(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": text(1, 5000)})
	ok(t, s.SetRef("refs/roost/t", id))
	name := packsOf(t, s)[1]
	path := filepath.Join(s.packDir(), name)
	data := must[[]byte](t)(os.ReadFile(path))
	i, _ := s.known.packs[strings.TrimSuffix(name, ".pack")].idx.find(must[sum](t)(blobID([]byte(text(1, 5000))).sum()))
	data[s.known.packs[strings.TrimSuffix(name, ".pack")].idx.offset(i)+1000] ^= 1
	ok(t, os.WriteFile(path, data, 0o600))
	commit(t, s, map[string]string{"b": "garbage"})
	s.Settle()
	o := opened(t, s.dir)
	if got := collect(t, o); got.Removed != 3 || got.Kept != 3 {
		t.Errorf("collected: %+v", got)
	}
	if !bytes.Equal(must[[]byte](t)(os.ReadFile(path)), data) {
		t.Error("what is damaged was changed")
	}
	must[Commit](t)(o.Commit(context.Background(), id))
}
