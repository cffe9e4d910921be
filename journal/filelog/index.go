package filelog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/roost-dev/roost/api"
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
	seq, epoch uint64 // of the commit; no commit of a newer epoch precedes it
	off        int64
}

// index holds what is known about the offsets of commits.
type index struct {
	spots  []spot // by ascending seq
	off    int64  // all lines before it were judged
	order  order
	chain  *journal.Chain     // verifies commits; nil = they are not verified
	atSpot journal.ChainState // the chain before the commit at the last spot
}

// take notes a commit of the log.
func (x *index) take(it item) {
	before := x.chain.State()
	x.chain.Take(it.seq, it.raw.text)
	if n := len(x.spots); n > 0 && it.seq-x.spots[n-1].seq < spotCommits && it.raw.off-x.spots[n-1].off < spotBytes {
		return
	}
	x.spots = append(x.spots, spot{it.seq, x.order.epoch, it.raw.off})
	x.atSpot = before
}

// proof returns which commits are not proven. The chain does not show that the last commits are missing; the record
// does, which is written after each sync. A signed log always has a record: it is made durable before the first
// commit. After commits of a program that does not sign, the record carries no MAC either.
func (x *index) proof(rec record, s *journal.Seal) journal.Proof {
	if x.chain == nil {
		return journal.Proof{}
	}
	p := x.chain.Proof
	p.Cut = x.chain.Proven > 0 && (rec.Head > x.order.last || x.chain.Proven == x.order.last && !rec.proven(s))
	return p
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
//	ino 8 | headLen 4 | headCRC 4 | count 4 | snapSeq 8 | snapLine 4 | snapLen 8 | snapSum 32
//	chain before the last spot: unsigned 8, unknown 8, altered 8, proven 8, link 32
//	key 8 | mac 32 of all header bytes between the checksum and here, and the spots
//	count * (seq 8, epoch 8, off 8) | snapshot
//
// headCRC sums the first headLen bytes of the log, snapLine is the checksum of the commit at snapSeq: they tie the
// file to this log and no other. A reader that verifies commits accepts the file only with a valid MAC: otherwise the
// file would be a way around the MACs of the log.
const (
	idxMagic  = "roostix2"
	idxSealed = 148 // the offset of the key
	idxHeader = idxSealed + journal.KeyIDLen + sha256.Size
	idxSpot   = 24
	idxSpots  = 16 << 20
)

type idxFile struct {
	ino              uint64
	headLen, headCRC uint32
	snapSeq          uint64
	snapLine         uint32
	snapLen          int64
	snapSum          [sha256.Size]byte
	chain            journal.ChainState
	spots            []spot
	proven           bool // its MAC is valid
}

func (x idxFile) encode(seal *journal.Seal) []byte {
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
	b = append(b, x.snapSum[:]...)
	for _, n := range []uint64{x.chain.Proof.Unsigned, x.chain.Proof.Unknown, x.chain.Proof.Altered, x.chain.Proven} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, x.chain.Link[:]...)
	b = b[:idxHeader]
	for _, s := range x.spots {
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, s.seq), s.epoch), uint64(s.off))
	}
	id, mac := seal.MAC("index", b[12:idxSealed], b[idxHeader:])
	copy(b[idxSealed+copy(b[idxSealed:], id):idxHeader], mac)
	le.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

var errNoIndex = errors.New("no usable index")

// readIdx reads everything but the snapshot. A file with any flaw counts as absent.
func readIdx(f io.ReaderAt, seal *journal.Seal) (x idxFile, err error) {
	var h [idxHeader]byte
	if n, _ := f.ReadAt(h[:], 0); n < len(h) || string(h[:8]) != idxMagic {
		return x, errNoIndex
	}
	le := binary.LittleEndian
	x.ino, x.headLen, x.headCRC = le.Uint64(h[12:]), le.Uint32(h[20:]), le.Uint32(h[24:])
	count := int(le.Uint32(h[28:]))
	x.snapSeq, x.snapLine, x.snapLen = le.Uint64(h[32:]), le.Uint32(h[40:]), int64(le.Uint64(h[44:]))
	rest := h[52+copy(x.snapSum[:], h[52:]):]
	for i, n := range []*uint64{&x.chain.Proof.Unsigned, &x.chain.Proof.Unknown, &x.chain.Proof.Altered, &x.chain.Proven} {
		*n = le.Uint64(rest[8*i:])
	}
	copy(x.chain.Link[:], rest[32:])
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
	x.proven = seal.Proves(string(h[idxSealed:idxSealed+journal.KeyIDLen]), h[idxHeader-sha256.Size:], "index", h[12:idxSealed], b)
	for ; len(b) > 0; b = b[idxSpot:] {
		x.spots = append(x.spots, spot{le.Uint64(b), le.Uint64(b[8:]), int64(le.Uint64(b[16:]))})
	}
	return x, nil
}

const headMax = 4096

// headSum computes the checksum of the first n bytes of a log.
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

// loadIndex reads journal.idx and verifies it against the log up to limit. A
// missing, foreign or damaged file gives an empty index, and so does one without a MAC where
// commits are verified.
func (r *reader) loadIndex(limit int64) index {
	none := index{chain: journal.NewChain(r.seal)}
	f, err := r.fs.OpenFile(filepath.Join(r.dir, idxName), os.O_RDONLY, 0)
	if err != nil {
		return none
	}
	defer f.Close()
	x, err := readIdx(f, r.seal)
	if err != nil || x.ino != r.ino || int64(x.headLen) > limit || len(x.spots) == 0 || r.seal != nil && !x.proven {
		return none
	}
	if sum, err := headSum(r.log, int64(x.headLen)); err != nil || sum != x.headCRC {
		return none
	}
	end := x.spots[len(x.spots)-1]
	if _, err := lineAt(r.log, end.off, limit, end.seq); err != nil {
		return none
	}
	none.chain.Resume(x.chain)
	return index{
		spots: x.spots, off: end.off, chain: none.chain, atSpot: x.chain,
		order: order{last: end.seq - 1, reported: end.seq - 1, epoch: end.epoch},
	}
}

// saveIndex replaces journal.idx. It does not sync the file: after a power cut the file may be old or broken. Its
// checksums show that, and the reader then scans the log once.
func saveIndex(fs FS, path string, x idxFile, seal *journal.Seal, snap []byte) (err error) {
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
	head := x.encode(seal)
	_, err = f.WriteAt(head, 0)
	if err == nil && len(snap) > 0 {
		_, err = f.WriteAt(snap, int64(len(head)))
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = fs.Rename(tmp, path)
	}
	return api.Failed(err, "save index %s", path)
}

// snapMax bounds the snapshot that is read into memory.
const snapMax = 1 << 30

// Snapshot implements journal.Reader.
func (r *reader) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	limit, _, err := r.visible(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	s, err := r.snapshot(limit)
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot of %s: %v: %w", r.dir, err, journal.ErrNoSnapshot)
	}
	head, err := r.Head(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	if head == s.Seq && r.touched() {
		return journal.Snapshot{}, fmt.Errorf("snapshot of %s: the log changed after it, but holds no further commit: "+
			"%w", r.dir, journal.ErrNoSnapshot)
	}
	return s, nil
}

// touched reports whether the log was written to after journal.idx. When the log has no new commit behind the
// snapshot, damage or a user's editor is the cause, and the whole log is read. A kill leaves commits behind the
// snapshot.
func (r *reader) touched() bool {
	log, err := r.fs.Lstat(filepath.Join(r.dir, logName))
	if err != nil {
		return false
	}
	idx, err := r.fs.Lstat(filepath.Join(r.dir, idxName))
	return err == nil && log.ModTime().After(idx.ModTime())
}

func (r *reader) snapshot(limit int64) (s journal.Snapshot, err error) {
	f, err := r.fs.OpenFile(filepath.Join(r.dir, idxName), os.O_RDONLY, 0)
	if err != nil {
		return s, err
	}
	defer f.Close()
	x, err := readIdx(f, r.seal)
	if err != nil {
		return s, err
	}
	if x.snapSeq == 0 || x.snapLen > snapMax || x.ino != r.ino || int64(x.headLen) > limit || r.seal != nil && !x.proven {
		return s, errNoIndex
	}
	if sum, err := headSum(r.log, int64(x.headLen)); err != nil || sum != x.headCRC {
		return s, errNoIndex
	}
	if sum, ok := r.commitSum(index{spots: x.spots}, x.snapSeq, limit); !ok || sum != x.snapLine {
		return s, errNoIndex
	}
	s = journal.Snapshot{Seq: x.snapSeq, Data: make([]byte, x.snapLen)}
	at := int64(idxHeader + idxSpot*len(x.spots))
	if _, err := io.ReadFull(io.NewSectionReader(f, at, x.snapLen), s.Data); err != nil {
		return journal.Snapshot{}, err
	}
	if sha256.Sum256(s.Data) != x.snapSum {
		return journal.Snapshot{}, errNoIndex
	}
	return s, nil
}

// commitSum returns the checksum of the surviving commit seq.
func (r *reader) commitSum(x index, seq uint64, limit int64) (sum uint32, ok bool) {
	sp, i := x.before(seq)
	if i >= 0 {
		if _, err := lineAt(r.log, sp.off, limit, sp.seq); err != nil {
			return 0, false
		}
	}
	c := cursorAt(sp, i, seq)
	err := r.walk(context.Background(), &c.off, &c.order, limit, func(it item) bool {
		if it.commit && it.seq == seq {
			sum, ok = crc32.Checksum(bytes.TrimSuffix(it.raw.text, []byte("\n")), castagnoli), true
		}
		return !it.commit || it.seq < seq
	})
	return sum, ok && err == nil
}

// chunk is how much of the log one read takes.
const chunk = 256 << 10

// rawLine is a part of the log up to and including a newline.
type rawLine struct {
	off    int64
	length int64
	text   []byte // valid until the next call; nil if longer than journal.MaxLine
	whole  bool   // ends with a newline
}

// lines splits [off, limit) of a file into lines.
type lines struct {
	f     io.ReaderAt
	off   int64 // file offset of buf[0]
	limit int64
	size  int // bytes per read
	buf   []byte
	store []byte
	eof   bool
}

func newLines(f io.ReaderAt, off, limit int64) *lines {
	return &lines{f: f, off: off, limit: limit, size: int(min(chunk, max(0, limit-off)))}
}

// fill reads more behind buf. It reports false at the end.
func (s *lines) fill() (bool, error) {
	at := s.off + int64(len(s.buf))
	n := min(int64(s.size), s.limit-at)
	if s.eof || n <= 0 {
		return false, nil
	}
	if cap(s.store)-len(s.buf) < int(n) || cap(s.buf)-len(s.buf) < int(n) {
		if cap(s.store) < len(s.buf)+int(n) {
			s.store = make([]byte, max(2*len(s.buf), len(s.buf)+int(n)))
		}
		copy(s.store[:cap(s.store)], s.buf) // copy is memmove: overlap is fine
		s.buf = s.store[:len(s.buf)]
	}
	got, err := s.f.ReadAt(s.buf[len(s.buf):len(s.buf)+int(n)], at)
	s.buf = s.buf[:len(s.buf)+got]
	if errors.Is(err, io.EOF) {
		s.eof, err = true, nil // the file became shorter
	}
	return got > 0, err
}

// next returns the next line, or io.EOF. The last one may not be whole.
func (s *lines) next() (rawLine, error) {
	searched := 0
	var dropped int64
	for {
		if i := bytes.IndexByte(s.buf[searched:], '\n'); i >= 0 {
			return s.take(searched+i+1, dropped, true), nil
		}
		searched = len(s.buf)
		if int64(len(s.buf)) > journal.MaxLine { // no commit: let go of it
			dropped += int64(len(s.buf))
			s.off += int64(len(s.buf))
			s.buf, searched = s.buf[:0], 0
		}
		more, err := s.fill()
		if err != nil {
			return rawLine{}, err
		}
		if !more {
			if len(s.buf) == 0 && dropped == 0 {
				return rawLine{}, io.EOF
			}
			return s.take(len(s.buf), dropped, false), nil
		}
	}
}

func (s *lines) take(n int, dropped int64, whole bool) rawLine {
	l := rawLine{off: s.off - dropped, length: int64(n) + dropped, whole: whole}
	if dropped == 0 {
		l.text = s.buf[:n]
	}
	s.off += int64(n)
	s.buf = s.buf[n:]
	return l
}

// maxLost bounds how many lost commits one jump of the sequence may claim. A
// bigger jump is not a loss but a line that does not belong here.
const maxLost = 1 << 20

// A report of lost commits takes memory in proportion to the bytes of the log, not to the numbers that the log
// claims: a hundred bytes can claim maxLost commits.
const (
	mostNamed = 64   // missing numbers in a row that are named, before the last one stands for the rest
	mostBad   = 4096 // bad lines in a row that are kept, before further ones are only counted
)

// zeros is what a file system leaves when it recorded a length but not the content. Sixteen zero bytes in a row do
// not come from a flipped bit.
var zeros = make([]byte, 16)

// order decides which lines of a log are its commits. It is pure: it takes lines by increasing offset, and returns
// verdicts.
type order struct {
	last     uint64           // newest surviving commit
	epoch    uint64           // highest epoch so far
	reported uint64           // highest sequence reported as lost
	bad      []journal.Damage // whole lines that are no commits, since the last commit
	zero     bool             // the line bad[zeAt] begins a run of zero bytes
	zeAt     int
	more     uint64 // lines like those in bad, before the zero bytes, that are only counted
	until    int64  // the end of the last line that was only counted, 0 = there is none
}

// verdict is the meaning of one line.
type verdict struct {
	commit   bool             // the line is the commit seq
	seq      uint64           //
	lost     []journal.Damage // sequences found lost before this line
	rejected []journal.Damage // lines that do not count
}

// line judges one whole line.
func (o *order) line(l rawLine) verdict {
	seq, epoch, err := uint64(0), uint64(0), error(nil)
	if l.text == nil {
		err = &journal.DamageError{Damage: journal.Damage{Reason: "line is too long for a commit"}}
	} else {
		seq, epoch, err = journal.CheckCommit(l.text)
	}
	at := journal.Damage{Seq: seq, Offset: l.off, Length: l.length}
	if err != nil {
		if d, ok := errors.AsType[*journal.DamageError](err); ok {
			at.Reason = d.Reason
		}
		switch {
		case !o.zero && bytes.Contains(l.text, zeros):
			o.zero, o.zeAt = true, len(o.bad)
			at.Reason = "zero bytes where a commit should be"
		case len(o.bad) >= mostBad:
			if o.until = l.off + l.length; !o.zero {
				o.more++
			}
			return verdict{}
		}
		o.bad = append(o.bad, at)
		return verdict{}
	}
	return o.place(epoch, at)
}

// place judges a whole commit by its number and epoch.
func (o *order) place(epoch uint64, at journal.Damage) verdict {
	seq := at.Seq
	switch {
	case epoch < o.epoch:
		at.Reason = "written by an owner that had been replaced"
		return verdict{rejected: []journal.Damage{at}}
	case seq <= o.last:
		at.Reason = "its sequence number was already taken"
		return verdict{rejected: []journal.Damage{at}}
	case seq-o.last > maxLost:
		at.Reason = "its sequence number does not follow"
		return verdict{rejected: []journal.Damage{at}}
	}
	v := verdict{commit: true, seq: seq}
	v.lost, v.rejected = o.settle(seq, at.Offset)
	o.last, o.epoch = seq, epoch
	return v
}

// settle assigns the bad lines so far to the sequences that are missing before next. off is the offset of next.
func (o *order) settle(next uint64, off int64) (lost, rejected []journal.Damage) {
	bad, until := o.bad, o.until
	o.bad, o.zero, o.zeAt, o.more, o.until = nil, false, 0, 0, 0
	first := max(o.last, o.reported) + 1
	if next <= first {
		if o.reported <= o.last { // else these very lines were reported before
			for _, d := range bad {
				d.Reason = "not a commit, although no commit is missing here: " + d.Reason
				rejected = append(rejected, d)
			}
		}
		return nil, rejected
	}
	n := next - first
	o.reported = next - 1
	span := journal.Damage{Offset: off, Reason: "the line is missing"}
	if len(bad) > 0 {
		end := bad[len(bad)-1]
		span = journal.Damage{Offset: bad[0].Offset, Length: max(until, end.Offset+end.Length) - bad[0].Offset, Reason: bad[0].Reason}
	}
	named, each := n, until == 0 && uint64(len(bad)) == n
	if !each {
		named = min(n, mostNamed)
	}
	for i := range named {
		d := span
		if each {
			d = bad[i]
		}
		d.Seq = first + i
		lost = append(lost, d)
	}
	if named < n {
		span.Seq, span.Reason = next-1, fmt.Sprintf("%s, and %d before it", span.Reason, n-named-1)
		lost = append(lost, span)
	}
	return lost, nil
}

// end counts the bad lines behind the last commit as lost commits, one each. It does not count the lines from a run
// of zero bytes on: they were never written. recorded is the last sequence known to have been synced, 0 if unknown.
func (o *order) end(off int64, recorded uint64) (lost []journal.Damage) {
	if o.zero {
		o.bad, o.zero = o.bad[:o.zeAt], false
		if o.more == 0 {
			o.until = 0
		}
	}
	known := max(o.last, o.reported)
	next := known + uint64(len(o.bad)) + o.more + 1
	if recorded >= next {
		next = recorded + 1
	}
	// The next owner's commit takes this number; readers must not find it out of reason.
	next = max(min(next, o.last+maxLost), known+1)
	if next == known+1 {
		o.bad, o.more, o.until = nil, 0, 0
		return nil
	}
	lost, _ = o.settle(next, off)
	return lost
}
