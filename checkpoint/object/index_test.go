package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnIndexFindsWhatItHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few first bytes, so that many ids share one; offsets on both sides of 31 bits.
		want := map[sum]indexed{}
		for i, b := range rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 7, 0xfe, 0xff}), 0, 60).Draw(t, "first bytes") {
			id := sum(sha1.Sum([]byte{byte(i)}))
			id[0] = b
			off := rapid.SampledFrom([]int64{packHead, 1<<31 - 1, 1 << 31, 1<<31 + 5, 1 << 40}).Draw(t, "offset")
			want[id] = indexed{id, uint32(i) * 77, off + int64(i)}
		}
		var list []indexed
		for _, e := range want {
			list = append(list, e)
		}
		x, err := parseIndex(encodeIndex(list, sum{1, 2, 3}))
		if err != nil {
			t.Fatal(err)
		}
		if x.n != len(want) || x.check != (sum{1, 2, 3}) {
			t.Fatalf("%d of %d, %v", x.n, len(want), x.check)
		}
		for id, e := range want {
			i, ok := x.find(id)
			if !ok || (indexed{x.id(i), x.crc(i), x.offset(i)}) != e {
				t.Fatalf("%s: found %v", id.ID(), ok)
			}
			id[19] ^= 1
			if _, ok := x.find(id); ok {
				t.Fatal("found what is not there")
			}
		}
	})
}

func TestGitReadsTheIndex(t *testing.T) {
	s := made(t)
	commit(t, s, map[string]string{"a": "1", "b/c": text(2, 5000)})
	p := packsOf(t, s)
	data := must[[]byte](t)(os.ReadFile(filepath.Join(s.packDir(), p[0])))
	x := must[*index](t)(parseIndex(data))
	var want []string
	for i := range x.n {
		want = append(want, fmt.Sprintf("%d %s (%08x)", x.offset(i), x.id(i).ID(), x.crc(i)))
	}
	got := strings.Split(strings.TrimSpace(git(t, s, string(data), "show-index")), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("git shows %q, want %q", got, want)
	}
	// git gives the same pack the same index, to the byte.
	again := filepath.Join(t.TempDir(), "again.idx")
	git(t, s, "", "index-pack", "-o", again, filepath.Join(s.packDir(), strings.TrimSuffix(p[0], ".idx")+".pack"))
	if made := must[[]byte](t)(os.ReadFile(again)); !bytes.Equal(made, data) {
		t.Errorf("git makes another index: %d bytes, not %d", len(made), len(data))
	}
}

// resealed gives an index whose checksum is right again.
func resealed(b []byte) []byte {
	h := sha1.Sum(b[:len(b)-sha1.Size])
	return append(b[:len(b)-sha1.Size:len(b)-sha1.Size], h[:]...)
}

func TestADamagedIndexIsRefused(t *testing.T) {
	good := encodeIndex([]indexed{{id: sum{1}, off: 12}, {id: sum{2}, off: 50}}, sum{})
	count := func(at int, n uint32) func(b []byte) []byte {
		return func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[len(idxMagic)+4*at:], n)
			return resealed(b)
		}
	}
	for name, change := range map[string]func(b []byte) []byte{
		"no bytes":                 func([]byte) []byte { return nil },
		"the old version":          func(b []byte) []byte { b[7] = 1; return resealed(b) },
		"another beginning":        func(b []byte) []byte { b[0] = 'x'; return resealed(b) },
		"one byte changed":         func(b []byte) []byte { b[idxHead+3]++; return b },
		"more ids than bytes":      count(255, 1<<31),
		"fewer ids than bytes":     count(255, 1),
		"counts that go down":      count(100, 9),
		"counts of other ids":      count(1, 2),
		"ids in the wrong order":   func(b []byte) []byte { b[idxHead] = 2; b[idxHead+20] = 1; return resealed(b) },
		"an id twice":              func(b []byte) []byte { b[idxHead+20] = 1; return resealed(b) },
		"an entry before the pack": func(b []byte) []byte { b[idxHead+2*24+3] = 3; return resealed(b) },
		"an offset that is not":    func(b []byte) []byte { b[idxHead+2*24] = 0x80; return resealed(b) },
		"bytes too many":           func(b []byte) []byte { return resealed(append(b, 1, 2, 3)) },
	} {
		if _, err := parseIndex(change(bytes.Clone(good))); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	if _, err := parseIndex(good); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0, 1, 255}, 30), byte(3), uint32(2))
	f.Add(encodeIndex([]indexed{{id: sum{1}, off: 12}, {id: sum{1, 1}, off: 1 << 40}, {id: sum{255}, off: 99}}, sum{})[idxHead:], byte(0), uint32(0))
	// The body is what stands behind the counts, which fit it but for one.
	f.Fuzz(func(t *testing.T, body []byte, at byte, count uint32) {
		data := []byte(idxMagic)
		var counts [256]uint32
		for i := range len(body) / 28 {
			for b := int(body[20*i]); b < 256; b++ {
				counts[b]++
			}
		}
		if count != 0 {
			counts[at] = count
		}
		for _, c := range counts {
			data = binary.BigEndian.AppendUint32(data, c)
		}
		data = resealed(append(append(data, body...), make([]byte, idxTail)...))
		x, err := parseIndex(data)
		if err != nil {
			return
		}
		for i := range x.n {
			if at, ok := x.find(x.id(i)); !ok || at != i || x.offset(i) < packHead {
				t.Fatalf("entry %d of %d is found at %d", i, x.n, at)
			}
		}
	})
}
