package object

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"
)

// grown is a store with a history whose versions are like each other, so that git
// finds differences to store.
func grown(t testing.TB) (*Store, map[ID]map[string]string, ID) {
	s := made(t)
	states := map[ID]map[string]string{}
	long := strings.Split(text(9, 20_000), "\n")
	var last ID
	for i := range 12 {
		long[i*7] = fmt.Sprint("changed ", i)
		state := map[string]string{"a": strings.Join(long, "\n"), "b": fmt.Sprint(i), "d/c": "same"}
		if last == "" {
			last = commit(t, s, state)
		} else {
			last = commit(t, s, state, last)
		}
		states[last] = state
	}
	ok(t, s.SetRef("refs/roost/t", last))
	return s, states, last
}

func checkStates(t testing.TB, s *Store, states map[ID]map[string]string) {
	t.Helper()
	for id, want := range states {
		if got := files(t, s, id); !maps.Equal(got, want) {
			t.Errorf("the state %s reads as %d files", id, len(got))
		}
	}
}

// A person may run git in the store: then there are packs with differences.
func TestPacksOfGitAreRead(t *testing.T) {
	for name, args := range map[string][]string{
		"gc":              {"gc", "--quiet"},
		"aggressive":      {"gc", "--quiet", "--aggressive"},
		"repack":          {"repack", "-a", "-d", "-f", "-q", "--depth=40"},
		"bases by name":   {"-c", "repack.useDeltaBaseOffset=false", "repack", "-a", "-d", "-f", "-q"},
		"all tables":      {"-c", "core.multiPackIndex=true", "-c", "core.commitGraph=true", "repack", "-a", "-d", "-f", "-q", "-b", "--write-midx"},
		"unpacked, loose": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, states, last := grown(t)
			if args == nil {
				unpackAll(t, s)
			} else {
				git(t, s, "", args...)
			}
			other := opened(t, s.dir)
			checkStates(t, other, states)
			checkStates(t, s, states) // it knew packs that are gone
			for id := range states {
				for _, kind := range []string{"commit", "blob"} {
					id := id
					if kind == "blob" {
						id = blobID([]byte(states[id]["a"]))
					}
					var out bytes.Buffer
					ok(t, other.Copy(context.Background(), id, &out))
					got, size, err := other.Stat(context.Background(), id)
					if string(got) != kind || size != int64(out.Len()) || err != nil {
						t.Errorf("%s is a %s of %d bytes (%v)", id, got, size, err)
					}
				}
			}
			if _, err := other.Read(context.Background(), blobID([]byte(states[last]["a"])), 100); !errors.Is(err, ErrTooLarge) {
				t.Errorf("the limit is not kept: %v", err)
			}
			other.Settle()
			s.Settle()
			done := must[Collected](t)(other.Collect(context.Background(), CollectOptions{}))
			if done.Removed != 0 || done.Kept < 40 {
				t.Errorf("collected: %+v", done)
			}
			checkStates(t, s, states)
			fsck(t, s)
		})
	}
}

// unpackAll makes every object a loose one.
func unpackAll(t testing.TB, s *Store) {
	dir := t.TempDir()
	for _, name := range packsOf(t, s) {
		ok(t, os.Rename(filepath.Join(s.packDir(), name), filepath.Join(dir, name)))
	}
	for _, name := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		if strings.HasSuffix(name.Name(), ".pack") {
			git(t, s, string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, name.Name())))), "unpack-objects", "-q")
		}
	}
}

// entry is one entry of a pack that a test makes by hand.
type entry struct {
	id   sum
	kind byte
	size int64  // what its head says; 0: the length of the content
	base []byte // what stands between head and content
	data []byte
}

// built puts a pack together that says whatever it is told to say.
func built(list []entry) (pack, index []byte) {
	pack = binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(list)))
	var at []indexed
	for _, e := range list {
		start := len(pack)
		size := e.size
		if size == 0 {
			size = int64(len(e.data))
		}
		pack = append(append(pack, entryHead(e.kind, size)...), e.base...)
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		w.Write(e.data)
		w.Close()
		pack = append(pack, z.Bytes()...)
		at = append(at, indexed{e.id, crc32.ChecksumIEEE(pack[start:]), int64(start)})
	}
	check := sha1.Sum(pack)
	return append(pack, check[:]...), encodeIndex(at, check)
}

// put makes a pack visible.
func putPack(t testing.TB, s *Store, pack, index []byte) (base string) {
	t.Helper()
	ok(t, s.make())
	check := sha1.Sum(pack)
	base = filepath.Join(s.packDir(), "pack-"+string(sum(check).ID()))
	ok(t, os.WriteFile(base+".pack", pack, 0o600))
	ok(t, os.WriteFile(base+".idx", index, 0o600))
	return base
}

func TestHostilePacksAreDamaged(t *testing.T) {
	base := []byte(strings.Repeat("base ", 20))
	whole := hashOf(KindBlob, base)
	at := func(n byte) sum { return sum{19: n} }
	size := func(n int) []byte {
		var b []byte
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	delta := func(from, to int, ops ...byte) []byte { return slices.Concat(size(from), size(to), ops) }
	for _, c := range []struct {
		name string
		bad  []entry // the object at(1) is read
	}{
		{"content of another id", []entry{{id: at(1), kind: packBlob, data: base}}},
		{"an unknown kind", []entry{{id: at(1), kind: 5, data: base}}},
		{"kind nought", []entry{{id: at(1), kind: 0, data: base}}},
		{"a size beyond all memory", []entry{{id: at(1), kind: packBlob, size: 1 << 55, data: base}}},
		{"a size that is too small", []entry{{id: at(1), kind: packBlob, size: 3, data: base}}},
		{"a base before the pack", []entry{{id: at(1), kind: packOffset, base: []byte{0x7f}, data: delta(1, 1)}}},
		{"a base at itself", []entry{{id: at(1), kind: packOffset, base: []byte{0}, data: delta(1, 1)}}},
		{"a base in the middle of nothing", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packOffset, base: []byte{3}, data: delta(1, 1)}}},
		{"a base whose place has no end", []entry{{id: at(1), kind: packOffset, base: bytes.Repeat([]byte{0xff}, 20), data: base}}},
		{"its own base by name", []entry{{id: at(1), kind: packRef, base: bytesOf(at(1)), data: delta(1, 1)}}},
		{"two that are each other's base", []entry{{id: at(1), kind: packRef, base: bytesOf(at(2)), data: delta(1, 1)}, {id: at(2), kind: packRef, base: bytesOf(at(1)), data: delta(1, 1)}}},
		{"a base that nobody has", []entry{{id: at(1), kind: packRef, base: bytesOf(at(9)), data: delta(1, 1)}}},
		{"a copy from behind the end", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 10, 0x91, 95, 10)}}},
		{"a copy of 16 MB", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 10, 0xf0, 0xff, 0xff, 0xff)}}},
		{"more than it says", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 3, 0x90, 10)}}},
		{"less than it says", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 1000, 0x90, 10)}}},
		{"an insert that is cut off", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 50, 50, 1)}}},
		{"a copy that is cut off", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 50, 0xff)}}},
		{"the instruction nought", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(100, 50, 0)}}},
		{"to a base of another size", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole), data: delta(99, 1, 0x90, 1)}}},
		{"nothing at all", []entry{{id: whole, kind: packBlob, data: base}, {id: at(1), kind: packRef, base: bytesOf(whole)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := made(t)
			putPack(t, s, must2(built(c.bad)), nil2(built(c.bad)))
			read(t, s, at(1).ID(), nil)
		})
	}
	// The same tools make what is right, so that the cases above are wrong only where they say.
	want := append([]byte("new "), base[:50]...)
	s := made(t)
	good := []entry{{id: whole, kind: packBlob, data: base}, {id: hashOf(KindBlob, want), kind: packRef, base: bytesOf(whole), data: delta(100, 54, append([]byte{4}, "new \x90\x32"...)...)}}
	putPack(t, s, must2(built(good)), nil2(built(good)))
	read(t, s, hashOf(KindBlob, want).ID(), want)
}

func bytesOf(s sum) []byte { return s[:] }

func must2(pack, _ []byte) []byte { return pack }

func nil2(_, index []byte) []byte { return index }

// read reads an object in every way: each gives the content, or an error that says
// that something is wrong.
func read(t testing.TB, s *Store, id ID, want []byte) {
	t.Helper()
	ctx := context.Background()
	wrong := func(err error) bool {
		return errors.Is(err, ErrDamaged) || errors.Is(err, ErrMissing) || errors.Is(err, ErrTooLarge)
	}
	got, err := s.Read(ctx, id, 0)
	if want == nil && !wrong(err) || want != nil && (err != nil || !bytes.Equal(got, want)) {
		t.Errorf("read: %d bytes, %v", len(got), err)
	}
	var out bytes.Buffer
	err = s.Copy(ctx, id, &out)
	if want == nil && !wrong(err) || want != nil && (err != nil || !bytes.Equal(out.Bytes(), want)) {
		t.Errorf("copy: %d bytes, %v", out.Len(), err)
	}
	if _, _, err := s.Stat(ctx, id); err != nil && !wrong(err) {
		t.Errorf("stat: %v", err)
	}
}

func TestEveryDamagedByteIsSeen(t *testing.T) {
	s := made(t)
	id := commit(t, s, map[string]string{"a": text(1, 300), "d/b": "two"})
	name := strings.TrimSuffix(packsOf(t, s)[0], ".idx")
	for _, end := range []string{".pack", ".idx"} {
		path := filepath.Join(s.packDir(), name+end)
		good := must[[]byte](t)(os.ReadFile(path))
		damage := map[string][]byte{"empty": {}, "half": good[:len(good)/2], "one byte less": good[:len(good)-1]}
		for i := range good {
			if end == ".pack" && (!testing.Short() || i%5 == 0) || i%13 == 0 {
				b := bytes.Clone(good)
				b[i] ^= 1 << (i % 8)
				damage[fmt.Sprint("byte ", i)] = b
			}
		}
		for what, data := range damage {
			ok(t, os.WriteFile(path, data, 0o600))
			o := opened(t, s.dir)
			whole := true
			for _, content := range []string{text(1, 300), "two"} {
				got, err := o.Read(context.Background(), blobID([]byte(content)), 0)
				if err == nil && string(got) != content || err != nil && !errors.Is(err, ErrDamaged) {
					t.Errorf("%s, %s: %q, %v", end, what, got, err)
				}
				whole = whole && err == nil
			}
			_, err := o.Commit(context.Background(), id)
			if whole = whole && err == nil; whole && end == ".idx" {
				t.Errorf("%s, %s: nobody sees it", end, what)
			}
		}
		ok(t, os.WriteFile(path, good, 0o600))
	}
	fsck(t, s)
}

// What is damaged is written again by the next who has it, and then is there.
func TestADamagedObjectIsReplaced(t *testing.T) {
	for _, same := range []bool{true, false} {
		s := made(t)
		fill := func(more ...string) {
			write(t, s, func(b *Batch) {
				for _, c := range append(more, text(1, 2000)) {
					must[ID](t)(b.Blob([]byte(c)))
				}
			})
		}
		fill()
		path := filepath.Join(s.packDir(), strings.TrimSuffix(packsOf(t, s)[0], ".idx")+".pack")
		good := must[[]byte](t)(os.ReadFile(path))
		bad := bytes.Clone(good)
		bad[len(bad)/2] ^= 1
		ok(t, os.WriteFile(path, bad, 0o600))
		id := blobID([]byte(text(1, 2000)))
		if _, err := s.Read(context.Background(), id, 0); !errors.Is(err, ErrDamaged) {
			t.Fatalf("damage is not seen: %v", err)
		}
		if s.Has(id) {
			t.Error("what is damaged is said to be there")
		}
		if same {
			fill() // gives a pack of the same name
		} else {
			fill("more")
		}
		for _, s := range []*Store{s, opened(t, s.dir)} {
			read(t, s, id, []byte(text(1, 2000)))
		}
	}
}

func FuzzPack(f *testing.F) {
	base := []byte("some content, some content")
	id := hashOf(KindBlob, base)
	made, _ := built([]entry{{id: id, kind: packBlob, data: base}, {id: id, kind: packRef, base: id[:], data: []byte{26, 3, 0x90, 3}}, {id: id, kind: packOffset, base: []byte{20}, data: []byte{26, 3, 0x90, 3}}})
	f.Add(made, uint16(packHead))
	f.Add(made, uint16(len(made)/2))
	f.Fuzz(func(t *testing.T, data []byte, off uint16) {
		p := &pack{name: "pack", size: int64(len(data)), idx: must[*index](t)(parseIndex(encodeIndex([]indexed{{id: id, off: packHead}}, sum{})))}
		r := bytes.NewReader(data)
		list, err := p.chain(context.Background(), r, int64(off))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		_, got, err := p.put(context.Background(), r, list, 1<<20, func(sum) (Kind, []byte, error) { return KindBlob, base, nil })
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		if len(got) > 1<<20 {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("0123456789"), []byte{10, 5, 0x91, 2, 3, 2, 'a', 'b'})
	f.Add([]byte{}, []byte{0, 1, 1, 'x'})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		out, err := applyDelta(base, delta)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if size, rest, ok := deltaSize(delta); err == nil && ok {
			if want, _, _ := deltaSize(rest); size != int64(len(base)) || want != int64(len(out)) {
				t.Fatalf("%d bytes, %d were said", len(out), want)
			}
		}
	})
}

func FuzzLoose(f *testing.F) {
	for _, text := range []string{"blob 3\x00abc", "tree 0\x00", "blob 9999999999\x00a", "blob", "blob -1\x00"} {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		io.WriteString(w, text)
		w.Close()
		f.Add(z.Bytes())
	}
	path := filepath.Join(f.TempDir(), "object")
	f.Fuzz(func(t *testing.T, data []byte) {
		ok(t, os.WriteFile(path, data, 0o600))
		kind, got, err := loose{path}.content(context.Background(), 1<<20)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		if err == nil && (packKinds[kind] == 0 || len(got) > 1<<20) {
			t.Fatalf("%q of %d bytes", kind, len(got))
		}
	})
}
