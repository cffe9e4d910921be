package filelog

import (
	"bufio"
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
	"github.com/roost-dev/roost/task/codec"
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
	Seq, Epoch uint64 // of the commit; no commit of a newer epoch precedes it
	Off        int64
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
	if n := len(x.spots); n > 0 && it.seq-x.spots[n-1].Seq < spotCommits && it.raw.off-x.spots[n-1].Off < spotBytes {
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
	i := sort.Search(len(x.spots), func(i int) bool { return x.spots[i].Seq > seq }) - 1
	if i < 0 {
		return spot{Seq: 1}, -1
	}
	return x.spots[i], i
}

// The file, with little-endian numbers:
//
//	magic 8 | crc32c 4 of what is behind it up to the snapshot | size 4 of the body | key 8 | mac 32 of the body
//	body: an idxFile, as package task/codec writes it | snapshot
//
// HeadCRC sums the first HeadLen bytes of the log, SnapLine is the checksum of the commit at SnapSeq: they tie the
// file to this log and no other. A reader that verifies commits accepts the file only with a valid MAC: otherwise the
// file would be a way around the MACs of the log.
const (
	idxMagic  = "roostix3"
	idxKey    = len(idxMagic) + 4 + 4
	idxMAC    = idxKey + journal.KeyIDLen
	idxHeader = idxMAC + sha256.Size
)

type idxFile struct {
	Ino      uint64
	HeadLen  int64
	HeadCRC  uint32
	SnapSeq  uint64
	SnapLine uint32
	SnapLen  int64
	SnapSum  [sha256.Size]byte
	Chain    journal.ChainState // before the commit at the last spot
	Spots    []spot

	proven bool  // its MAC is valid
	snapAt int64 // the offset of the snapshot
}

func (x idxFile) encode(seal *journal.Seal) []byte {
	w := codec.NewWriter(make([]byte, idxHeader))
	w.Value(x)
	b, le := w.Out, binary.LittleEndian
	copy(b, idxMagic)
	le.PutUint32(b[len(idxMagic)+4:], uint32(len(b)-idxHeader))
	id, mac := seal.MAC("index", b[idxHeader:])
	copy(b[idxKey:], id)
	copy(b[idxMAC:], mac)
	le.PutUint32(b[len(idxMagic):], crc32.Checksum(b[len(idxMagic)+4:], castagnoli))
	return b
}

var errNoIndex = errors.New("no usable index")

// readIdx reads everything but the snapshot. A file with any flaw counts as absent.
func readIdx(f io.ReaderAt, seal *journal.Seal) (x idxFile, err error) {
	var h [idxHeader]byte
	if n, _ := f.ReadAt(h[:], 0); n < len(h) || string(h[:len(idxMagic)]) != idxMagic {
		return x, errNoIndex
	}
	sum, size := binary.LittleEndian.Uint32(h[len(idxMagic):]), int64(binary.LittleEndian.Uint32(h[len(idxMagic)+4:]))
	if size > 64<<20 { // millions of spots fit; a hostile sparse file has gigabytes at no cost
		return x, errNoIndex
	}
	body, err := io.ReadAll(io.NewSectionReader(f, int64(idxHeader), size)) // in no more memory than the file has bytes
	got := crc32.Update(crc32.Checksum(h[len(idxMagic)+4:], castagnoli), castagnoli, body)
	if err != nil || int64(len(body)) < size || got != sum {
		return x, errNoIndex
	}
	u := codec.Reader{In: body}
	u.Value(&x)
	if u.Bad || len(u.Rest()) > 0 || x.HeadLen < 0 || x.HeadLen > headMax || x.SnapLen < 0 {
		return idxFile{}, errNoIndex
	}
	x.proven = seal.Proves(string(h[idxKey:idxMAC]), h[idxMAC:], "index", body)
	x.snapAt = int64(idxHeader) + size
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
func lineAt(f io.ReaderAt, off, limit int64, seq uint64) error {
	if off < 0 || off >= limit {
		return errNoIndex
	}
	l, err := newLines(f, off, limit, 16<<10).next()
	if err != nil {
		return err
	}
	if !l.whole || l.text == nil {
		return errNoIndex
	}
	if got, _, err := journal.CheckCommit(l.text); err != nil || got != seq {
		return errNoIndex
	}
	return nil
}

// openIdx opens journal.idx and verifies it against the log up to limit. A file that is missing, foreign or damaged
// gives an error, and so does one without a MAC where commits are verified.
func (r *reader) openIdx(limit int64) (f File, x idxFile, err error) {
	if f, err = r.fs.OpenFile(filepath.Join(r.dir, idxName), os.O_RDONLY, 0); err != nil {
		return nil, x, err
	}
	x, err = readIdx(f, r.seal)
	if err == nil && (x.Ino != r.ino || x.HeadLen > limit || r.seal != nil && !x.proven) {
		err = errNoIndex
	}
	if err == nil {
		if sum, bad := headSum(r.log, x.HeadLen); bad != nil || sum != x.HeadCRC {
			err = errNoIndex
		}
	}
	if err != nil {
		f.Close()
		return nil, x, err
	}
	return f, x, nil
}

// loadIndex returns the index in journal.idx; an empty one without a usable file.
func (r *reader) loadIndex(limit int64) index {
	none := index{chain: journal.NewChain(r.seal)}
	f, x, err := r.openIdx(limit)
	if err != nil {
		return none
	}
	defer f.Close()
	if len(x.Spots) == 0 {
		return none
	}
	end := x.Spots[len(x.Spots)-1]
	if err := lineAt(r.log, end.Off, limit, end.Seq); err != nil {
		return none
	}
	none.chain.Resume(x.Chain)
	return index{
		spots: x.Spots, off: end.Off, chain: none.chain, atSpot: x.Chain,
		order: order{last: end.Seq - 1, reported: end.Seq - 1, epoch: end.Epoch},
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
	f, x, err := r.openIdx(limit)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if x.SnapSeq == 0 || x.SnapLen > snapMax {
		return s, errNoIndex
	}
	if sum, ok := r.commitSum(index{spots: x.Spots}, x.SnapSeq, limit); !ok || sum != x.SnapLine {
		return s, errNoIndex
	}
	s = journal.Snapshot{Seq: x.SnapSeq, Data: make([]byte, x.SnapLen)}
	if _, err := io.ReadFull(io.NewSectionReader(f, x.snapAt, x.SnapLen), s.Data); err != nil {
		return journal.Snapshot{}, err
	}
	if sha256.Sum256(s.Data) != x.SnapSum {
		return journal.Snapshot{}, errNoIndex
	}
	return s, nil
}

// commitSum returns the checksum of the surviving commit seq.
func (r *reader) commitSum(x index, seq uint64, limit int64) (sum uint32, ok bool) {
	sp, i := x.before(seq)
	if i >= 0 {
		if err := lineAt(r.log, sp.Off, limit, sp.Seq); err != nil {
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
	in   *bufio.Reader
	off  int64
	long []byte // the memory for lines that are longer than the buffer of in
}

// newLines returns the lines of [off, limit). It reads size bytes at a time.
func newLines(f io.ReaderAt, off, limit, size int64) *lines {
	size = min(size, max(0, limit-off))
	return &lines{in: bufio.NewReaderSize(io.NewSectionReader(f, off, max(0, limit-off)), int(size)), off: off}
}

// next returns the next line, or io.EOF. The last one may not be whole.
func (s *lines) next() (rawLine, error) {
	l := rawLine{off: s.off}
	s.long = s.long[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		l.length += int64(len(part))
		goesOn := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case l.length > journal.MaxLine: // no commit: let go of it
			s.long = nil
		case goesOn || len(s.long) > 0:
			s.long = append(s.long, part...)
			l.text = s.long
		default:
			l.text = part
		}
		switch {
		case goesOn:
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return rawLine{}, err
		case l.length == 0:
			return rawLine{}, io.EOF
		case l.length > journal.MaxLine:
			l.text = nil
		}
		l.whole = err == nil
		s.off += l.length
		return l, nil
	}
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
