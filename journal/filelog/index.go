package filelog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"
	"strconv"

	"github.com/roost-dev/roost/journal"
)

// A spot is remembered every spotCommits commits or spotBytes bytes, whichever
// comes first: a page of the log is then a few hundred KB of reading at most,
// and the index of a 500 MB log about 50 KB.
const (
	spotCommits = 64
	spotBytes   = 256 << 10
)

// spot is a place to start reading: the offset of a surviving commit.
type spot struct {
	seq, epoch uint64 // the commit's; no newer epoch stands before it
	off        int64
}

// index is what is known about where commits stand.
type index struct {
	spots []spot // by rising seq
	off   int64  // everything before was judged
	order order
}

func (x *index) note(seq, epoch uint64, off int64) {
	if n := len(x.spots); n > 0 && seq-x.spots[n-1].seq < spotCommits && off-x.spots[n-1].off < spotBytes {
		return
	}
	x.spots = append(x.spots, spot{seq, epoch, off})
}

// before returns the last spot at or before seq; the log's start if none is.
func (x *index) before(seq uint64) (spot, int) {
	i := sort.Search(len(x.spots), func(i int) bool { return x.spots[i].seq > seq }) - 1
	if i < 0 {
		return spot{seq: 1}, -1
	}
	return x.spots[i], i
}

// The file: header, spots, snapshot. All numbers are little-endian.
//
//	magic 8 | crc32c 4 of all header bytes behind it and the spots
//	ino 8 | headLen 4 | headCRC 4 | count 4 | snapSeq 8 | snapLine 4 | snapLen 8 | snapCRC 4
//	count * (seq 8, epoch 8, off 8) | snapshot
//
// headCRC sums the first headLen bytes of the log, snapLine is the checksum of
// the commit at snapSeq: they tie the file to this log and no other.
const (
	idxMagic  = "roostix1"
	idxHeader = 56
	idxSpot   = 24
	idxSpots  = 16 << 20
)

type idxFile struct {
	ino              uint64
	headLen, headCRC uint32
	snapSeq          uint64
	snapLine         uint32
	snapLen          int64
	snapCRC          uint32
	spots            []spot
}

func (x idxFile) encode() []byte {
	b := make([]byte, 12, idxHeader+idxSpot*len(x.spots))
	copy(b, idxMagic)
	le := binary.LittleEndian
	b = le.AppendUint64(b, x.ino)
	b = le.AppendUint32(b, x.headLen)
	b = le.AppendUint32(b, x.headCRC)
	b = le.AppendUint32(b, uint32(len(x.spots)))
	b = le.AppendUint64(b, x.snapSeq)
	b = le.AppendUint32(b, x.snapLine)
	b = le.AppendUint64(b, uint64(x.snapLen))
	b = le.AppendUint32(b, x.snapCRC)
	for _, s := range x.spots {
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, s.seq), s.epoch), uint64(s.off))
	}
	le.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

var errNoIndex = errors.New("no usable index")

// readIdx reads all but the snapshot. Any flaw makes it as good as absent.
func readIdx(f io.ReaderAt) (x idxFile, err error) {
	var h [idxHeader]byte
	if n, _ := f.ReadAt(h[:], 0); n < len(h) || string(h[:8]) != idxMagic {
		return x, errNoIndex
	}
	le := binary.LittleEndian
	x.ino, x.headLen, x.headCRC = le.Uint64(h[12:]), le.Uint32(h[20:]), le.Uint32(h[24:])
	count := int(le.Uint32(h[28:]))
	x.snapSeq, x.snapLine, x.snapLen, x.snapCRC = le.Uint64(h[32:]), le.Uint32(h[40:]), int64(le.Uint64(h[44:])), le.Uint32(h[52:])
	if count > idxSpots || x.headLen > headMax || x.snapLen < 0 {
		return x, errNoIndex
	}
	if count > 0 { // before room is made for what a hostile file claims to hold
		var last [1]byte
		if n, _ := f.ReadAt(last[:], idxHeader+int64(count)*idxSpot-1); n == 0 {
			return x, errNoIndex
		}
	}
	b := make([]byte, count*idxSpot)
	if n, _ := f.ReadAt(b, idxHeader); n < len(b) {
		return x, errNoIndex
	}
	if crc32.Update(crc32.Checksum(h[12:], castagnoli), castagnoli, b) != le.Uint32(h[8:]) {
		return x, errNoIndex
	}
	for ; len(b) > 0; b = b[idxSpot:] {
		x.spots = append(x.spots, spot{le.Uint64(b), le.Uint64(b[8:]), int64(le.Uint64(b[16:]))})
	}
	return x, nil
}

const headMax = 4096

// headSum is the checksum of the first n bytes of a log.
func headSum(f io.ReaderAt, n int64) (uint32, error) {
	b := make([]byte, min(n, headMax))
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(len(b))), b); err != nil {
		return 0, err
	}
	return crc32.Checksum(b, castagnoli), nil
}

// lineAt reads the line that starts at off and checks that it is the commit seq.
func lineAt(f io.ReaderAt, off, limit int64, seq uint64) ([]byte, error) {
	if off < 0 || off >= limit {
		return nil, errNoIndex
	}
	s := newLines(f, off, limit)
	s.size = 16 << 10
	l, err := s.next()
	if err != nil {
		return nil, err
	}
	if !l.whole || l.text == nil {
		return nil, errNoIndex
	}
	if got, _, err := journal.CheckCommit(l.text); err != nil || got != seq {
		return nil, errNoIndex
	}
	return l.text, nil
}

// lineSum is the checksum in a checked commit line.
func lineSum(line []byte) uint32 {
	return crc32.Checksum(bytes.TrimSuffix(line, []byte("\n")), castagnoli)
}

// loadIndex reads journal.idx and verifies it against the log up to limit. A
// missing, foreign or damaged file gives an empty index.
func loadIndex(fs FS, path string, log io.ReaderAt, ino uint64, limit int64) index {
	f, err := fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return index{}
	}
	defer f.Close()
	x, err := readIdx(f)
	if err != nil || x.ino != ino || int64(x.headLen) > limit || len(x.spots) == 0 {
		return index{}
	}
	if sum, err := headSum(log, int64(x.headLen)); err != nil || sum != x.headCRC {
		return index{}
	}
	end := x.spots[len(x.spots)-1]
	if _, err := lineAt(log, end.off, limit, end.seq); err != nil {
		return index{}
	}
	return index{spots: x.spots, off: end.off, order: order{last: end.seq - 1, told: end.seq - 1, epoch: end.epoch}}
}

// saveIndex replaces journal.idx. It is not synced: after a power cut it may be
// old or broken, which its checksums tell, and costs one scan.
func saveIndex(fs FS, path string, x idxFile, snap []byte) (err error) {
	tmp := path + ".tmp" + strconv.Itoa(os.Getpid())
	f, err := fs.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("save index: %w", err)
	}
	defer func() {
		if err != nil {
			_ = fs.Remove(tmp) // best effort: the next save overwrites it
		}
	}()
	head := x.encode()
	_, err = f.WriteAt(head, 0)
	if err == nil && len(snap) > 0 {
		_, err = f.WriteAt(snap, int64(len(head)))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("save index %s: %w", path, err)
	}
	return nil
}
