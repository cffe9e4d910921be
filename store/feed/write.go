package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal/filelog"
)

// How long a line waits for another writer. A writer holds the lock for moments; one that begins a segment holds it
// longer, once in about a hundred thousand lines.
const (
	patience    = 20 * time.Millisecond
	endPatience = 200 * time.Millisecond
)

// ErrBusy: another writer holds the log. The next line announces what this one could not.
var ErrBusy = errors.New("another writer has the feed")

// Writer adds lines to the log in a folder. It keeps no file open. It is safe for
// concurrent use, and other processes may write, too.
type Writer struct {
	dir  string
	now  func() int64
	size int64 // of a segment's lines

	mu   sync.Mutex
	n    uint64      // the newest segment that is known
	info os.FileInfo // of that segment; its head is checked
	head head
	end  int64 // the end of our last line, which is a newline
	buf  []byte
}

// NewWriter makes a writer; the first line creates the folder. now gives Unix milliseconds.
func NewWriter(dir string, now func() int64) *Writer {
	return &Writer{dir: dir, now: now, size: segmentBytes}
}

// Append adds a line.
func (w *Writer) Append(l Line) error {
	if err := l.Check(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := patience
	if l.End {
		limit = endPatience
	}
	until := time.Now().Add(limit)
	for range 5 { // other writers may begin segments at the same time
		f, err := w.open(until)
		if err != nil {
			return err
		}
		done, err := w.put(f, l, until)
		if cerr := filelock.Release(f); err == nil {
			err = cerr
		}
		if done || err != nil {
			return err
		}
	}
	return ErrBusy
}

// open opens the newest segment and takes its lock. The first one is made.
func (w *Writer) open(until time.Time) (*os.File, error) {
	if w.n > 0 {
		f, err := os.OpenFile(segmentPath(w.dir, w.n), os.O_RDWR|os.O_APPEND, 0)
		if err == nil {
			return locked(f, until)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("write the feed: %w", err)
		}
	}
	list, err := segments(w.dir)
	if err != nil {
		return nil, err
	}
	if w.n = 1; len(list) > 0 {
		w.n = list[len(list)-1]
	} else if err := filelog.EnsureDir(filelog.OS, w.dir); err != nil {
		return nil, fmt.Errorf("write the feed: %w", err)
	}
	if info, err := os.Lstat(w.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("write the feed: %s is no folder", w.dir)
	}
	return create(w.dir, w.n, until)
}

func create(dir string, n uint64, until time.Time) (*os.File, error) {
	f, err := os.OpenFile(segmentPath(dir, n), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the feed: %w", err)
	}
	return locked(f, until)
}

func locked(f *os.File, until time.Time) (*os.File, error) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err := filelock.Wait(ctx, f, filelock.Exclusive, 100*time.Microsecond)
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the feed: %w", err)
	}
	return f, nil
}

// put adds a line to a segment whose lock is held; done is false when the line belongs into another segment.
func (w *Writer) put(f *os.File, l Line, until time.Time) (done bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("write the feed: %w", err)
	}
	if w.info == nil || !os.SameFile(info, w.info) || info.Size() < w.end {
		if info, err = w.checkHead(f, info); err != nil {
			return false, err
		}
	}
	if info.Size()-w.head.body >= w.size {
		return false, w.rotate(until)
	}
	b := w.buf[:0]
	if info.Size() != w.end { // another writer's line is the last one: it may be torn
		var last [1]byte
		if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
			return false, fmt.Errorf("write the feed: %w", err)
		}
		if last[0] != '\n' {
			b = append(b, '\n')
		}
	}
	w.buf = l.append(b)
	w.end = -1
	if _, err := f.Write(w.buf); err != nil {
		return false, fmt.Errorf("write the feed: %w", err)
	}
	w.end = info.Size() + int64(len(w.buf))
	return true, nil
}

// checkHead makes sure that a segment has a head. A segment lacks it when its writer was killed or the power failed. The
// new head continues the segment before it, if there is one.
func (w *Writer) checkHead(f *os.File, info os.FileInfo) (os.FileInfo, error) {
	w.info, w.end = nil, -1
	h, ok, err := readHead(f)
	if err != nil {
		return nil, err
	}
	if !ok {
		if h, err = w.begin(f); err != nil {
			return nil, err
		}
		if info, err = f.Stat(); err != nil {
			return nil, fmt.Errorf("write the feed: %w", err)
		}
	}
	w.head, w.info = h, info
	return info, nil
}

// begin truncates segment w.n and writes its head.
func (w *Writer) begin(f *os.File) (head, error) {
	if err := f.Truncate(0); err != nil {
		return head{}, fmt.Errorf("write the feed: %w", err)
	}
	h := head{Segment: w.n, Birth: w.now()}
	var rows []byte
	if before, err := openSegment(w.dir, w.n-1); err == nil {
		h.Feed, h.Birth = before.head.Feed, before.head.Birth
		for { // to its end
			if _, more, err := before.line(); err != nil || !more {
				break
			}
		}
		before.f.Close()
		rows = before.table.rows()
	} else {
		id := make([]byte, 8)
		_, _ = rand.Read(id) // never fails
		h.Feed = hex.EncodeToString(id)
	}
	h.Rows = int64(len(rows))
	if _, err := f.Write(append(h.line(), rows...)); err != nil {
		return head{}, fmt.Errorf("write the feed: %w", err)
	}
	h, ok, err := readHead(f)
	if err == nil && !ok {
		err = fmt.Errorf("write the feed: %s does not hold what was written", f.Name())
	}
	return h, err
}

// rotate begins the next segment while this writer holds the lock of the current one, and removes the oldest.
func (w *Writer) rotate(until time.Time) error {
	list, err := segments(w.dir)
	if err != nil {
		return err
	}
	if newest := slices.Max(append(list, w.n)); newest > w.n { // other writers began newer segments
		w.n = newest
		return nil
	}
	next, err := create(w.dir, w.n+1, until)
	if err != nil {
		return err
	}
	defer filelock.Release(next) //nolint:errcheck // what was written into it was read back
	w.n++
	info, err := next.Stat()
	if err != nil {
		return fmt.Errorf("write the feed: %w", err)
	}
	if _, err := w.checkHead(next, info); err != nil { // another writer may have begun it
		return err
	}
	for _, n := range list {
		if n+keepSegments <= w.n {
			_ = os.Remove(segmentPath(w.dir, n)) // else the next one removes it
		}
	}
	return nil
}
