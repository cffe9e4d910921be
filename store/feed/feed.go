// Package feed is a root's log of the order in which the commits of all its tasks became durable. The stream of all
// tasks is made from it.
//
// A line names a task and how far its journal is synced; the events stay in the journal. The process that syncs a
// journal adds the line. Nothing here is synced: the log is derived and may be deleted. A lost line costs nothing,
// because a reader counts what is new in a line from the task's line before it, not from what the writer believes. So
// two writers may add the same line, any process may add a line for an owner that was killed, and all readers find the
// same events after the same place, whenever they read.
//
// Segments follow each other, 16 MiB each; eight are kept. A segment begins with a table of how far the log before it
// announces each task, so that no reader needs an older segment. A place is a line with its checksum. A place that the
// log does not have, because the log was made again or dropped the segment, is ErrUnknown.
//
// For a task that the log never named, the commits since the log began are new. Older commits were not meant for
// followers of this log.
//
// Rejected: one counter for all tasks, as an id in each event. Every sync would wait for all others, and restored copies
// would repeat numbers.
//
// Limits: a kernel lock on the newest segment orders its writers; where there are no such locks (see journal/filelog)
// nothing is written and no reader gets anything. Tasks never leave the table, which takes about 90 bytes for each.
package feed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal/filelog"
)

// Line announces how far a task's journal is synced. Source and Task are as store.Ref has them.
type Line struct {
	Source string `json:"source"`
	Task   string `json:"task"`
	Epoch  uint64 `json:"epoch"` // of the newest of the commits
	From   uint64 `json:"from"`  // From to To are the commits that its writer has not announced before
	To     uint64 `json:"to"`
	End    bool   `json:"end,omitempty"` // its owner releases it
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sealBytes = len(`,"crc":"00000000"}`)

// seal ends a JSON object that lacks its brace with its checksum.
func seal(b []byte) []byte {
	return fmt.Appendf(b, ",\"crc\":\"%08x\"}\n", crc32.Checksum(b, castagnoli))
}

// unseal splits a line into its content and its checksum; ok is false when the line is damaged.
func unseal(b []byte) (body []byte, sum uint32, ok bool) {
	at := len(b) - sealBytes
	if at < 0 {
		return nil, 0, false
	}
	sum = crc32.Checksum(b[:at], castagnoli)
	return b[:at], sum, string(b[at:]) == fmt.Sprintf(`,"crc":"%08x"}`, sum)
}

// append adds the line to b.
func (l Line) append(b []byte) []byte {
	text, _ := json.Marshal(l) // texts and numbers
	return append(b, seal(text[:len(text)-1])...)
}

// parse reads a line without its newline.
func parse(b []byte) (l Line, sum uint32, ok bool) {
	body, sum, ok := unseal(b)
	ok = ok && json.Unmarshal(append(bytes.Clone(body), '}'), &l) == nil
	return l, sum, ok && plain(l.Source) && plain(l.Task)
}

// plain reports whether a name may be part of a line and of a path. Readers make no path of any other name.
func plain(name string) bool {
	return name != "" && len(name) <= 255 && name[0] != '.' && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || strings.ContainsRune("\"\\/:\x7f", c)
	})
}

const (
	segmentBytes = 16 << 20 // of lines, behind the table
	keepSegments = 8
	headBytes    = 512 // more than any head has
)

// head is the first line of a segment.
type head struct {
	Feed    string `json:"feed"` // names the log; another one begins with another name
	Segment uint64 `json:"segment"`
	Birth   int64  `json:"birth"` // when the log was begun, in Unix milliseconds
	Rows    int64  `json:"rows"`  // bytes of the table behind this line

	sum  uint32
	body int64 // where lines begin: behind head and table
	size int64 // of the head alone
}

func (h head) line() []byte {
	b, _ := json.Marshal(h) // texts and numbers
	return seal(b[:len(b)-1])
}

// readHead reads the head of a segment; ok is false while it has none, or its table is
// not whole.
func readHead(f *os.File) (h head, ok bool, err error) {
	b := make([]byte, headBytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, false, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	line, _, whole := bytes.Cut(b[:n], []byte("\n"))
	body, sum, good := unseal(line)
	if !whole || !good || json.Unmarshal(append(bytes.Clone(body), '}'), &h) != nil {
		return h, false, nil
	}
	h.sum, h.size = sum, int64(len(line)+1)
	h.body = h.size + h.Rows
	info, err := f.Stat()
	if err != nil {
		return h, false, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	return h, h.Rows >= 0 && info.Size() >= h.body && plain(h.Feed), nil
}

func segmentPath(dir string, n uint64) string {
	return filepath.Join(dir, strconv.FormatUint(n, 10)+".log")
}

// segments are the numbers of the segments in a folder, ascending. No folder has none.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list the feed %s: %w", dir, err)
	}
	var out []uint64
	for _, e := range entries {
		name, isLog := strings.CutSuffix(e.Name(), ".log")
		n, err := strconv.ParseUint(name, 10, 63)
		if isLog && err == nil && n > 0 && strconv.FormatUint(n, 10) == name && e.Type().IsRegular() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Task names a task of a root.
type Task struct{ Source, ID string }

// announced is how far the log announces a task.
type announced struct {
	epoch, to uint64
	open      bool // the log has no line in which its owner releases it
}

// table is how far the log announces each task at some place: the fold of all lines before.
type table map[Task]announced

// add folds a line and gives the commits that it announces first; none when to is less than from. from 0 stands for the
// first commit since the log began, or the line's own From if that comes first.
func (t table) add(l Line) (from, to uint64) {
	key := Task{l.Source, l.Task}
	k, known := t[key]
	switch {
	case !known && l.From > 1:
		from = 0
	case !known:
		from = 1
	case l.Epoch < k.epoch: // of an earlier owner: a later owner announces what it left
		return 1, 0
	case l.Epoch > k.epoch && l.From > 0 && l.From <= k.to:
		from = l.From // an older copy of the journal was restored, and continued
	default:
		from = k.to + 1
	}
	t[key] = announced{epoch: l.Epoch, to: max(l.To, from-min(from, 1)), open: !l.End}
	return from, l.To
}

// rows are lines that fold into the table again.
func (t table) rows() []byte {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
	})
	var b []byte
	for _, k := range keys {
		row := t[k]
		b = Line{Source: k.Source, Task: k.ID, Epoch: row.epoch, From: row.to, To: row.to, End: !row.open}.append(b)
	}
	return b
}

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
	if !plain(l.Source) || !plain(l.Task) {
		return fmt.Errorf("announce task %q of %q: a feed cannot hold these names", l.Task, l.Source)
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
