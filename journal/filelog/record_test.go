package filelog

import (
	"bytes"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
)

func TestRecordComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record{
			Synced: rapid.Int64Range(0, math.MaxInt64).Draw(t, "synced"), Head: rapid.Uint64().Draw(t, "head"),
			Epoch: rapid.Uint64().Draw(t, "epoch"), Ino: rapid.Uint64().Draw(t, "ino"),
		}
		b := r.encode(nil)
		if len(b) != recordLen {
			t.Fatalf("%d bytes, want %d always", len(b), recordLen)
		}
		got, ok := readRecord(bytes.NewReader(append(b, "behind it"...)))
		got.CRC = ""
		if !ok || got != r {
			t.Fatalf("%+v %v, want %+v", got, ok, r)
		}
	})
}

// A record that is half old and half new, cut or touched is no record.
func TestRecordIsWholeOrNothing(t *testing.T) {
	a, b := record{Synced: 1111, Head: 7, Epoch: 2, Ino: 99}.encode(nil), record{Synced: 2222, Head: 8, Epoch: 2, Ino: 99}.encode(nil)
	for i := range a {
		if mixed := append(bytes.Clone(b[:i]), a[i:]...); !bytes.Equal(mixed, a) && !bytes.Equal(mixed, b) {
			if _, ok := readRecord(bytes.NewReader(mixed)); ok {
				t.Fatalf("torn at %d, and taken", i)
			}
		}
		if _, ok := readRecord(bytes.NewReader(a[:i])); ok {
			t.Fatalf("cut at %d, and taken", i)
		}
		bad := bytes.Clone(a)
		bad[i] ^= 4
		if _, ok := readRecord(bytes.NewReader(bad)); ok {
			t.Fatalf("changed at %d, and taken", i)
		}
	}
}

// settling is a record that is being rewritten while it is read.
type settling struct {
	io.ReaderAt
	bad int
	b   []byte
}

func (s *settling) ReadAt(p []byte, off int64) (int, error) {
	b := bytes.Clone(s.b)
	if s.bad > 0 {
		s.bad--
		b[20] = '#'
	}
	return bytes.NewReader(b).ReadAt(p, off)
}

func TestRecordIsReadAgainWhenCaughtHalfWritten(t *testing.T) {
	want := record{Synced: 5, Head: 1, Epoch: 1, Ino: 3}
	got, ok := readRecord(&settling{bad: 2, b: want.encode(nil)})
	if got.CRC = ""; !ok || got != want {
		t.Fatalf("got %+v %v, want ok and got = %v", got, ok, want)
	}
	if _, ok := readRecord(&settling{bad: 1000, b: want.encode(nil)}); ok {
		t.Fatal("a record that never holds was taken")
	}
}

func TestOwnerLine(t *testing.T) {
	want := journal.OwnerInfo{PID: 12, Started: time.UnixMilli(1700000000000).UTC(), Boot: "b", Host: "h\n\"", Address: "http://x", Program: "roost run"}
	at := func(line string) io.ReaderAt { return strings.NewReader(strings.Repeat("r", recordLen) + line) }
	if diff := cmp.Diff(want, readOwner(at(string(encodeOwner(want))+"rest of a longer one before"))); diff != "" {
		t.Fatal(diff)
	}
	for _, bad := range []string{"", "\n", "{", "[]\n", "{\"pid\":\"x\"}\n", "\x00\x00", strings.Repeat("x", ownerMax+10)} {
		if got := readOwner(at(bad)); got != (journal.OwnerInfo{}) {
			t.Errorf("%.20q: %+v", bad, got)
		}
	}
}

func TestIndexComesBack(t *testing.T) {
	seal := sealOf("root/task", "00000001")
	rapid.Check(t, func(t *rapid.T) {
		x := idxFile{
			Ino: rapid.Uint64().Draw(t, "ino"), HeadLen: rapid.Int64Range(0, headMax).Draw(t, "headLen"), HeadCRC: rapid.Uint32().Draw(t, "headCRC"),
			SnapSeq: rapid.Uint64().Draw(t, "snapSeq"), SnapLine: rapid.Uint32().Draw(t, "snapLine"),
			SnapLen: rapid.Int64Range(0, math.MaxInt64).Draw(t, "snapLen"), proven: true,
		}
		copy(x.SnapSum[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "snapSum"))
		copy(x.Chain.Link[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "link"))
		x.Chain.Proof.Unknown, x.Chain.Proven = rapid.Uint64().Draw(t, "unknown"), rapid.Uint64().Draw(t, "proven")
		for range rapid.IntRange(0, 5).Draw(t, "spots") {
			x.Spots = append(x.Spots, spot{rapid.Uint64().Draw(t, "seq"), rapid.Uint64().Draw(t, "epoch"), rapid.Int64().Draw(t, "off")})
		}
		b := x.encode(seal)
		x.snapAt = int64(len(b))
		got, err := readIdx(bytes.NewReader(append(bytes.Clone(b), "snapshot"...)), seal)
		if diff := cmp.Diff(x, got, cmp.AllowUnexported(idxFile{})); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		if got, err := readIdx(bytes.NewReader(b), sealOf("root/other", "00000001")); err != nil || got.proven {
			t.Fatalf("the index of another log: proven %v, %v", got.proven, err)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := readIdx(bytes.NewReader(b[:cut]), seal); err == nil {
			t.Fatalf("cut at %d, and taken", cut)
		}
		bad := bytes.Clone(b)
		bad[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "mask"))
		if _, err := readIdx(bytes.NewReader(bad), seal); err == nil {
			t.Fatal("changed, and taken")
		}
	})
}

// FuzzReadIdx: an index is derived, but anybody may have written it. It must not
// make us allocate what it claims to hold.
func FuzzReadIdx(f *testing.F) {
	f.Add(idxFile{Ino: 1, Spots: []spot{{1, 1, 0}, {65, 1, 9000}}, SnapSeq: 3, SnapLen: 4}.encode(nil))
	f.Add([]byte(idxMagic + strings.Repeat("\xff", idxHeader)))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readIdx(bytes.NewReader(b), nil)
		if err == nil && len(x.Spots)+idxHeader > len(b) {
			t.Fatalf("%d spots out of %d bytes", len(x.Spots), len(b))
		}
	})
}

// An index that claims to have far more spots than it holds takes no memory.
func TestIndexIsNotBelieved(t *testing.T) {
	b := idxFile{Ino: 1, Spots: []spot{{1, 1, 0}}}.encode(nil)
	size := b[len(idxMagic)+4:]
	size[0], size[1], size[2] = 0xff, 0xff, 0xff
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readIdx(bytes.NewReader(b), nil); err == nil {
		t.Fatal("taken")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Fatalf("%d bytes were taken for a file of %d", got, len(b))
	}
}

// sparseFile has zeros after its head, without an end.
type sparseFile struct{ head []byte }

func (z sparseFile) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(z.head)) {
		copy(p, z.head[off:])
	}
	return len(p), nil
}

// An index that has gigabytes, as a sparse file may, takes no memory either.
func TestSparseIndexTakesNoMemory(t *testing.T) {
	head := make([]byte, idxHeader)
	copy(head, idxMagic)
	copy(head[len(idxMagic)+4:], []byte{0, 0, 0, 0x40}) // 1 GB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readIdx(sparseFile{head}, nil); err == nil {
		t.Fatal("an index of zeros was taken")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Fatalf("got %d bytes for a file that claims 1 GB, want none", got)
	}
}

func TestSpotsAreFound(t *testing.T) {
	at := func(seq uint64, off int64) item {
		return item{verdict{commit: true, seq: seq}, rawLine{off: off}}
	}
	var x index
	for seq := uint64(1); seq <= 1000; seq++ {
		x.take(at(seq, int64(seq)*100))
	}
	if n := len(x.spots); n < 10 || n > 20 {
		t.Fatalf("%d spots for 1000 small commits", n)
	}
	for seq := uint64(1); seq <= 1000; seq++ {
		sp, i := x.before(seq)
		if i < 0 || sp.Seq > seq || seq-sp.Seq >= spotCommits {
			t.Fatalf("for %d: spot of %d", seq, sp.Seq)
		}
	}
	if _, i := x.before(0); i != -1 {
		t.Fatal("a spot before the first commit")
	}
	var big index
	for seq := uint64(1); seq <= 10; seq++ {
		big.take(at(seq, int64(seq)*spotBytes))
	}
	if len(big.spots) != 10 {
		t.Fatalf("%d spots for 10 large commits", len(big.spots))
	}
}
