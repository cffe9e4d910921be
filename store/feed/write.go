package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/roost-dev/roost/api"
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

// Append implements Log. It keeps no file open.
func (l *Files) Append(_ context.Context, line Line) error {
	if err := line.Check(); err != nil {
		return err
	}
	limit := patience
	if line.End {
		limit = endPatience
	}
	until := time.Now().Add(limit)
	for range 5 { // other writers may begin segments at the same time
		if done, err := l.put(line, until); done || err != nil {
			return api.Failed(err, "write the feed")
		}
	}
	return ErrBusy
}

// put adds a line to the newest segment. When that is full, it begins the next one, and done is false.
func (l *Files) put(line Line, until time.Time) (done bool, err error) {
	list, err := segments(l.dir)
	if err != nil {
		return false, err
	}
	newest := uint64(1)
	if len(list) > 0 {
		newest = list[len(list)-1]
	} else if err := filelog.EnsureDir(filelog.OS, l.dir); err != nil {
		return false, err
	}
	if info, err := os.Lstat(l.dir); err != nil || !info.IsDir() {
		return false, fmt.Errorf("%s is no folder", l.dir)
	}
	f, h, err := l.lock(newest, until)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, filelock.Release(f)) }()
	if h.end-h.body >= l.size {
		return false, l.beginNext(newest+1, list, until)
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], h.end-1); err != nil {
		return false, err
	}
	var text []byte
	if last[0] != '\n' { // another writer's line, which is torn
		text = append(text, '\n')
	}
	_, err = f.Write(line.append(text))
	return err == nil, err
}

// beginNext begins a segment while its caller holds the lock of the one before, and removes the oldest of list.
func (l *Files) beginNext(n uint64, list []uint64, until time.Time) error {
	f, _, err := l.lock(n, until)
	if err != nil {
		return err
	}
	for _, old := range list {
		if old+keepSegments <= n {
			_ = os.Remove(segmentPath(l.dir, old)) // else the next one removes it
		}
	}
	return filelock.Release(f)
}

// lock opens a segment, or makes it, and takes its lock. A segment lacks its head when it is new, when its writer was
// killed or when the power failed: then it gets one.
func (l *Files) lock(n uint64, until time.Time) (*os.File, head, error) {
	f, err := os.OpenFile(segmentPath(l.dir, n), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, head{}, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err = filelock.Wait(ctx, f, filelock.Exclusive, 100*time.Microsecond)
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	if err != nil {
		f.Close()
		return nil, head{}, fmt.Errorf("lock it: %w", err)
	}
	h, ok, err := readHead(f)
	if err == nil && !ok {
		h, err = l.begin(f, n)
	}
	if err != nil {
		return nil, head{}, errors.Join(err, filelock.Release(f))
	}
	return f, h, nil
}

// begin truncates a segment and writes its head, which continues the segment before it, if there is one.
func (l *Files) begin(f *os.File, n uint64) (head, error) {
	if err := f.Truncate(0); err != nil {
		return head{}, err
	}
	h := head{Segment: n, Birth: l.now()}
	var rows []byte
	if before, err := openSegment(l.dir, n-1); err == nil {
		for more := true; more && err == nil; { // to its end
			_, more, err = before.line(math.MaxInt64)
		}
		before.f.Close()
		h.Feed, h.Birth, rows = before.head.Feed, before.head.Birth, before.table.rows()
	} else {
		id := make([]byte, 8)
		_, _ = rand.Read(id) // never fails
		h.Feed = hex.EncodeToString(id)
	}
	h.Rows = int64(len(rows))
	if _, err := f.Write(append(h.line(), rows...)); err != nil {
		return head{}, err
	}
	h, ok, err := readHead(f)
	if err == nil && !ok {
		err = fmt.Errorf("%s does not hold what was written", f.Name())
	}
	return h, err
}
