package feed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
	in    *bufio.Reader // of f, from off on
	n     uint64
	head  head
	table table
	last  Place // the line that was read last, or the head
	off   int64 // where the next line begins
}

// openSegment opens a segment and reads its table. The error is errNone when it does not exist, or is not complete.
func openSegment(dir string, n uint64) (*segment, error) {
	f, err := os.Open(segmentPath(dir, n))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the feed: %w", err)
	}
	s := &segment{f: f, in: bufio.NewReaderSize(f, readBytes), n: n, table: table{}}
	h, whole, err := readHead(f)
	if whole {
		s.head, s.off = h, h.size
		// readTo stops at the end of the table. Otherwise, after a damaged row, a line of the log would be read as a row,
		// and no reader would ever get that line. A task whose row is damaged is announced again.
		if err = s.again(); err == nil {
			whole, err = s.readTo(h.body)
		}
	}
	if err == nil && !whole {
		err = errNone // its head is not complete, or the file was truncated just now
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.last = Place{Feed: h.Feed, Segment: n, Sum: h.sum}
	return s, nil
}

// readTo reads the lines that begin before an offset; whole is false when the file ends before it.
func (s *segment) readTo(offset int64) (whole bool, err error) {
	for s.off < offset {
		if _, more, err := s.line(offset); err != nil || !more && s.off < offset {
			return false, err
		}
	}
	return true, nil
}

const (
	readBytes   = 64 << 10 // that are read at once; a line without an end by then is damage, and is skipped
	longestLine = 4 << 10  // more than any line has
)

// line reads the next whole line that is not damaged and begins before an offset; more is false when there is none.
func (s *segment) line(before int64) (e Entry, more bool, err error) {
	for s.off < before {
		text, err := s.in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return e, false, s.again()
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return e, false, fmt.Errorf("read the feed: %w", err)
		}
		at := s.off
		s.off += int64(len(text))
		l, sum, ok := parse(bytes.TrimSuffix(text, []byte("\n")))
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

// again makes line read from where the next line begins.
func (s *segment) again() error {
	if _, err := s.f.Seek(s.off, io.SeekStart); err != nil {
		return fmt.Errorf("read the feed: %w", err)
	}
	s.in.Reset(s.f)
	return nil
}

// Open implements Log.
func (l *Files) Open(_ context.Context, from Place) (Reader, error) {
	if from == (Place{}) {
		r := &fileReader{of: l}
		if err := r.oldest(); err != nil {
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

// openAt opens the log at a place's segment and offset.
func (l *Files) openAt(from Place) (*fileReader, error) {
	seg, err := openSegment(l.dir, from.Segment)
	if errors.Is(err, errNone) {
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
	list, err := segments(l.dir)
	if err != nil {
		return nil, Place{}, err
	}
	for _, n := range slices.Backward(list) {
		seg, err := openSegment(l.dir, n)
		if errors.Is(err, errNone) {
			continue
		}
		if err != nil {
			return nil, Place{}, err
		}
		r := &fileReader{of: l, seg: seg}
		for more := true; more; {
			if _, more, err = r.Next(ctx); err != nil {
				return nil, Place{}, errors.Join(err, r.Close())
			}
		}
		return r, r.seg.last, nil
	}
	return &fileReader{of: l}, Place{}, nil
}

// oldest opens the oldest segment of the newest log, if there is a log.
func (r *fileReader) oldest() error {
	list, err := segments(r.of.dir)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(list) {
		seg, err := openSegment(r.of.dir, n)
		switch {
		case err == nil && (r.seg == nil || seg.head.Feed == r.seg.head.Feed):
			_ = r.Close() // was only read
			r.seg = seg
		case err == nil:
			return seg.f.Close()
		case !errors.Is(err, errNone): // it may be readable the next time: its lines must not be skipped
			_ = r.Close()
			r.seg = nil
			return err
		case r.seg != nil:
			return nil
		}
	}
	return nil
}

// Next implements Reader.
func (r *fileReader) Next(context.Context) (e Entry, ok bool, err error) {
	if r.seg == nil {
		if err := r.oldest(); err != nil || r.seg == nil {
			return e, false, err
		}
	}
	for {
		e, ok, err = r.seg.line(math.MaxInt64)
		if ok || err != nil {
			return e, ok, err
		}
		next, err := openSegment(r.of.dir, r.seg.n+1)
		if errors.Is(err, errNone) {
			return e, false, r.gone()
		}
		if err != nil {
			return e, false, err
		}
		// No writer adds to this segment any more, but one may have done so since it was read.
		if e, ok, err = r.seg.line(math.MaxInt64); ok || err != nil {
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
