package filelog

import (
	"bytes"
	"errors"
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
