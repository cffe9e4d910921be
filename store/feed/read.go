package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// fileReader is a Reader of Files.
type fileReader struct {
	of  *Files
	seg *segment // nil while there is none
}

// segment is a segment that is being read.
type segment struct {
	f     *os.File
	n     uint64
	head  head
	table table
	last  Place // the line that was read last, or the head
	off   int64 // where the next line begins
	until int64 // line reads no line that begins here or later; 0 = no limit
	buf   []byte
	have  []byte // the part of buf that line has not used yet
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
	s := &segment{f: f, n: n, head: h, table: table{}, off: h.size}
	// readTo stops at the end of the table. Otherwise, after a damaged row, a line of the log would be read as a row, and
	// no reader would ever get that line. A task whose row is damaged is announced again.
	if whole, err := s.readTo(h.body); !whole {
		f.Close()
		return nil, errors.Join(err, ErrNone) // the file was truncated just now
	}
	s.last = Place{Feed: h.Feed, Segment: n, Sum: h.sum}
	return s, nil
}

// readTo reads the lines that begin before an offset; whole is false when the file ends before it.
func (s *segment) readTo(offset int64) (whole bool, err error) {
	for s.until = offset; s.off < offset; {
		if _, more, err := s.line(); err != nil || !more && s.off < offset {
			return false, err
		}
	}
	s.until = 0
	return true, nil
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

// Open implements Log.
func (l *Files) Open(ctx context.Context, from Place) (Reader, error) {
	if from == (Place{}) {
		r := &fileReader{of: l}
		if err := r.oldest(); err != nil && !errors.Is(err, ErrNone) {
			return nil, err
		}
		return r, nil
	}
	r, err := l.openAt(from)
	if err != nil {
		return nil, err
	}
	if h := r.seg.head; from.Feed != h.Feed || from.Offset == 0 && from.Sum != h.sum ||
		from.Offset != 0 && (from.Offset < h.body || !r.seg.matches(from)) {
		return nil, errors.Join(ErrUnknown, r.Close())
	}
	return r, nil
}

// OpenAt implements Log.
func (l *Files) OpenAt(ctx context.Context, from Place) (Reader, error) {
	if from.Segment == 0 {
		return l.Open(ctx, Place{})
	}
	r, err := l.openAt(from)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openAt opens the log at a place's segment and offset.
func (l *Files) openAt(from Place) (*fileReader, error) {
	seg, err := openSegment(l.dir, from.Segment)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNone) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	r := &fileReader{of: l, seg: seg}
	if whole, err := seg.readTo(from.Offset); !whole || from.Offset > 0 && seg.off != from.Offset {
		return nil, errors.Join(ErrUnknown, err, r.Close())
	}
	return r, nil
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

// OpenEnd implements Log.
func (l *Files) OpenEnd(ctx context.Context) (Reader, Place, error) {
	for range 100 {
		list, err := segments(l.dir)
		if err != nil {
			return nil, Place{}, err
		}
		for i := len(list) - 1; i >= 0; i-- {
			seg, err := openSegment(l.dir, list[i])
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNone) {
				continue // gone, or its head is not complete
			}
			if err != nil {
				return nil, Place{}, err
			}
			r := &fileReader{of: l, seg: seg}
			for {
				_, more, err := r.Next(ctx)
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
	return &fileReader{of: l}, Place{}, nil
}

// oldest opens the oldest segment of the newest log.
func (r *fileReader) oldest() error {
	list, err := segments(r.of.dir)
	if err != nil {
		return err
	}
	var found *segment
	for i := len(list) - 1; i >= 0; i-- {
		seg, err := openSegment(r.of.dir, list[i])
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

// Next implements Reader.
func (r *fileReader) Next(context.Context) (e Entry, ok bool, err error) {
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
		next, err := openSegment(r.of.dir, r.seg.n+1)
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
func (r *fileReader) gone() error {
	mine, err := r.seg.f.Stat()
	if err != nil {
		return fmt.Errorf("read the feed: %w", err)
	}
	now, err := os.Lstat(segmentPath(r.of.dir, r.seg.n))
	if errors.Is(err, os.ErrNotExist) || err == nil && (!os.SameFile(mine, now) || now.Size() < r.seg.off) {
		return ErrGone
	}
	return nil
}

// Changes implements Reader.
func (r *fileReader) Changes() (wake <-chan struct{}, every time.Duration) { return nil, poll }

// Left implements Reader: the tasks whose owners have not released them by a line.
func (r *fileReader) Left(context.Context) (list []Task, err error) {
	if r.seg != nil {
		for k, row := range r.seg.table {
			if row.open {
				list = append(list, k)
			}
		}
	}
	return list, nil
}

// Orphans implements Reader.
func (r *fileReader) Orphans(ctx context.Context) ([]Task, error) {
	list, err := r.Left(ctx)
	return slices.DeleteFunc(list, func(t Task) bool { return r.of.held(ctx, t) }), err
}

// Close implements Reader.
func (r *fileReader) Close() error {
	if r.seg == nil {
		return nil
	}
	return r.seg.f.Close()
}
