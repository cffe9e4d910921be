package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Place is a line of the log. The zero Place is before all that is kept.
type Place struct {
	Feed    string
	Segment uint64
	Offset  int64  // of the line in its segment; 0 is the head, before all lines
	Sum     uint32 // the line's checksum
}

// Entry is a line and the commits that it announces first.
type Entry struct {
	Line
	At Place
	// New are the commits that no line before it announces; none when To is less than From. From 0 is the first commit
	// since Birth, or Line.From if that comes first.
	New   struct{ From, To uint64 }
	Birth int64 // when the log began
}

// Reasons why a log cannot be read from a place, or not any further.
var (
	ErrUnknown = errors.New("the feed has no such place")
	ErrGone    = errors.New("the feed was deleted, or dropped what follows")
	ErrNone    = errors.New("there is no feed yet")
)

// Reader reads a log forward. It is for one goroutine, and writes nothing.
type Reader struct {
	dir string
	seg *segment // nil while there is none
}

// segment is one that is being read.
type segment struct {
	f     *os.File
	n     uint64
	head  head
	table table
	last  Place // the line that was read last, or the head
	off   int64 // of what was not read yet
	until int64 // no line that begins here or later is read; 0 = all are
	buf   []byte
	have  []byte // of buf, not used
}

// openSegment opens a segment and reads its table.
func openSegment(dir string, n uint64) (*segment, error) {
	f, err := os.Open(segmentPath(dir, n))
	if err != nil {
		return nil, fmt.Errorf("read the feed: %w", err)
	}
	h, ok, err := readHead(f)
	if err == nil && !ok {
		err = ErrNone
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &segment{f: f, n: n, head: h, table: table{}, off: h.size, last: Place{Feed: h.Feed, Segment: n, Sum: h.sum}}
	// Stop at the end of the table: after a damaged row, a line of the log would be read as a row, and no reader would
	// ever get it. A task whose row is damaged is announced again.
	for s.until = h.body; s.off < h.body; {
		if _, more, err := s.line(); err != nil || !more && s.off < h.body {
			f.Close()
			return nil, errors.Join(err, ErrNone) // the file was truncated just now
		}
	}
	s.until = 0
	s.last = Place{Feed: h.Feed, Segment: n, Sum: h.sum}
	return s, nil
}

// line reads the next whole line that is not damaged; more is false when there is none.
func (s *segment) line() (e Entry, more bool, err error) {
	for s.until == 0 || s.off < s.until {
		i := bytes.IndexByte(s.have, '\n')
		if i < 0 {
			more, err := s.fill()
			if err != nil || !more {
				return e, false, err
			}
			continue
		}
		at := s.off
		text := s.have[:i]
		s.have, s.off = s.have[i+1:], s.off+int64(i)+1
		l, sum, ok := parse(text)
		if !ok {
			continue // torn, or damaged: the next line of its task repeats it
		}
		e = Entry{Line: l, At: Place{Feed: s.head.Feed, Segment: s.n, Offset: at, Sum: sum}, Birth: s.head.Birth}
		e.New.From, e.New.To = s.table.add(l)
		s.last = e.At
		return e, true, nil
	}
	return e, false, nil
}

// longestLine bounds a line in bytes. A longer one is damage, and is skipped.
const longestLine = 4 << 10

func (s *segment) fill() (more bool, err error) {
	if s.buf == nil {
		s.buf = make([]byte, 64<<10)
	}
	if len(s.have) > longestLine {
		s.off += int64(len(s.have))
		s.have = nil
	}
	n := copy(s.buf, s.have)
	got, err := s.f.ReadAt(s.buf[n:], s.off+int64(n))
	s.have = s.buf[:n+got]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read the feed: %w", err)
	}
	return got > 0, err
}

// Open opens the log in a folder. The zero place is the oldest line that is kept; a log that does not exist yet is read
// from its beginning, once it exists. Of another place, Next returns its line first.
func Open(dir string, from Place) (*Reader, error) {
	if from == (Place{}) {
		r := &Reader{dir: dir}
		if err := r.oldest(); err != nil && !errors.Is(err, ErrNone) {
			return nil, err
		}
		return r, nil
	}
	r, err := OpenAt(dir, from.Segment, from.Offset)
	if err != nil {
		return nil, err
	}
	if h := r.seg.head; from.Feed != h.Feed || from.Offset == 0 && from.Sum != h.sum ||
		from.Offset > 0 && (from.Offset < h.body || !r.seg.matches(from)) {
		return nil, errors.Join(ErrUnknown, r.Close())
	}
	return r, nil
}

// OpenAt is Open for a place that is known to be valid: it checks only the line's segment and offset.
func OpenAt(dir string, segment uint64, offset int64) (*Reader, error) {
	if segment == 0 {
		return Open(dir, Place{})
	}
	seg, err := openSegment(dir, segment)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNone) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, seg: seg}
	if err := seg.skip(offset); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// skip reads up to an offset. The line there is the next one.
func (s *segment) skip(offset int64) error {
	for s.until = offset; s.off < offset; {
		if _, more, err := s.line(); err != nil || !more && s.off < offset {
			return errors.Join(ErrUnknown, err)
		}
	}
	s.until = 0
	if offset > 0 && s.off != offset {
		return ErrUnknown
	}
	return nil
}

// matches reports whether the line at a place has the place's checksum.
func (s *segment) matches(p Place) bool {
	b := make([]byte, longestLine)
	n, err := s.f.ReadAt(b, p.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	line, _, whole := bytes.Cut(b[:n], []byte("\n"))
	_, sum, ok := parse(line)
	return whole && ok && sum == p.Sum
}

// OpenEnd opens the log after its newest line, and gives that line's place. Of a log that does not exist yet that is the
// zero place: all its lines will be new.
func OpenEnd(dir string) (*Reader, Place, error) {
	for range 100 {
		list, err := segments(dir)
		if err != nil {
			return nil, Place{}, err
		}
		for i := len(list) - 1; i >= 0; i-- {
			seg, err := openSegment(dir, list[i])
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNone) {
				continue // gone, or its head is not complete
			}
			if err != nil {
				return nil, Place{}, err
			}
			r := &Reader{dir: dir, seg: seg}
			for {
				_, more, err := r.Next()
				if err != nil {
					return nil, Place{}, errors.Join(err, r.Close())
				}
				if !more {
					return r, r.seg.last, nil
				}
			}
		}
		if len(list) == 0 {
			break
		}
	}
	return &Reader{dir: dir}, Place{}, nil
}

// oldest opens the oldest segment of the newest log.
func (r *Reader) oldest() error {
	list, err := segments(r.dir)
	if err != nil {
		return err
	}
	var found *segment
	for i := len(list) - 1; i >= 0; i-- {
		seg, err := openSegment(r.dir, list[i])
		if err != nil && !errors.Is(err, ErrNone) && !errors.Is(err, os.ErrNotExist) {
			if found != nil { // it may be readable the next time: its lines must not be skipped
				found.f.Close()
			}
			return err
		}
		if err != nil {
			if found != nil {
				break
			}
			continue
		}
		if found != nil && seg.head.Feed != found.head.Feed {
			seg.f.Close()
			break
		}
		if found != nil {
			found.f.Close()
		}
		found = seg
	}
	if r.seg = found; found == nil {
		return ErrNone
	}
	return nil
}

// Next gives the next line; ok is false when there is none yet.
func (r *Reader) Next() (e Entry, ok bool, err error) {
	if r.seg == nil {
		if err := r.oldest(); err != nil {
			if errors.Is(err, ErrNone) {
				err = nil
			}
			return e, false, err
		}
	}
	for {
		e, ok, err = r.seg.line()
		if ok || err != nil {
			return e, ok, err
		}
		next, err := openSegment(r.dir, r.seg.n+1)
		switch {
		case err == nil:
		case errors.Is(err, ErrNone), errors.Is(err, os.ErrNotExist):
			return e, false, r.gone()
		default:
			return e, false, err
		}
		// No writer adds to this segment any more, but one may have done so since it was read.
		if e, ok, err = r.seg.line(); ok || err != nil {
			next.f.Close()
			return e, ok, err
		}
		r.seg.f.Close()
		r.seg = next
	}
}

// gone is ErrGone when the segment that is read is no longer the one in the folder.
func (r *Reader) gone() error {
	mine, err := r.seg.f.Stat()
	if err != nil {
		return fmt.Errorf("read the feed: %w", err)
	}
	now, err := os.Lstat(segmentPath(r.dir, r.seg.n))
	if errors.Is(err, os.ErrNotExist) || err == nil && (!os.SameFile(mine, now) || now.Size() < r.seg.off) {
		return ErrGone
	}
	return nil
}

// Left are the tasks whose owners have not released them by a line, and how far each is announced.
func (r *Reader) Left() map[Task]uint64 {
	out := map[Task]uint64{}
	if r.seg != nil {
		for k, row := range r.seg.table {
			if row.open {
				out[k] = row.to
			}
		}
	}
	return out
}

// Close closes the log.
func (r *Reader) Close() error {
	if r.seg == nil {
		return nil
	}
	return r.seg.f.Close()
}
