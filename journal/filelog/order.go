package filelog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/roost-dev/roost/journal"
)

// chunk is how much of the log one read takes.
const chunk = 256 << 10

// rawLine is a stretch of the log up to and with a newline.
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

// Reporting a loss costs memory by the bytes of the log, not by the numbers that it claims: a hundred bytes can claim
// maxLost of them.
const (
	mostNamed = 64   // of numbers that are missing together, before the last stands for the rest
	mostBad   = 4096 // of lines in a row that are no commits, before they are only counted
)

// zeros is what a file system leaves where a length was written and the content
// was not. Sixteen in a row do not come from a flipped bit.
var zeros = make([]byte, 16)

// order decides which lines of a log are its commits. It is pure: lines go in
// by increasing offset, verdicts come out.
type order struct {
	last     uint64           // newest surviving commit
	epoch    uint64           // highest epoch so far
	reported uint64           // highest sequence reported as lost
	bad      []journal.Damage // whole lines that are no commits, since the last commit
	zero     bool             // bad[zeroAt:] starts with zero bytes
	zeAt     int
	more     uint64 // lines like bad, before the zero bytes, that are only counted
	until    int64  // the end of the last line that was only counted, 0 = there is none
}

// verdict is what one line means.
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

// settle assigns the bad lines collected so far to the sequences that are missing before next. off is the offset of
// next.
func (o *order) settle(next uint64, off int64) (lost, rejected []journal.Damage) {
	bad, until := o.bad, o.until
	o.bad, o.zero, o.zeAt, o.more, o.until = nil, false, 0, 0, 0
	first := max(o.last, o.reported) + 1
	if next <= first {
		if o.reported <= o.last { // else these very lines were reported before
			for _, d := range bad {
				d.Reason = "not a commit, and none is missing here: " + d.Reason
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

// end settles bad lines behind the last commit: each stands for one that was
// lost, except those from a run of zero bytes on, which were never written.
// recorded is the last sequence known to have been synced, 0 if unknown.
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
