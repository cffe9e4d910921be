package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Files is a log in the files of a folder. It is safe for concurrent use.
type Files struct {
	dir  string
	now  func() int64
	held func(context.Context, Task) bool
	size int64 // of a segment's lines
}

var _ Log = (*Files)(nil)

// NewFiles makes the log in a folder, which the first line creates. now gives Unix milliseconds; held reports whether a
// process owns a task.
func NewFiles(dir string, now func() int64, held func(context.Context, Task) bool) *Files {
	return &Files{dir: dir, now: now, held: held, size: segmentBytes}
}

// poll is how often readers look for lines. A look that finds nothing costs one read; notifications of the system would
// save it, and need a poll beside them all the same.
const poll = 20 * time.Millisecond

const (
	// A stream of all tasks begins by reading the newest segment, so a smaller one is read sooner; each has the table.
	segmentBytes = 4 << 20 // of lines, behind the table
	keepSegments = 32
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
	end  int64 // of the file
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
	h.end = info.Size()
	return h, h.Rows >= 0 && h.end >= h.body && plain(h.Feed), nil
}

func segmentPath(dir string, n uint64) string {
	return filepath.Join(dir, strconv.FormatUint(n, 10)+".log")
}

// segments returns the numbers of the segments in a folder, ascending; none without a folder.
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

// announced is a row of a table.
type announced struct {
	Announced
	open bool // the log has no line in which its owner releases it
}

// table holds how far the log announces each task at some place: the fold of all lines before that place.
type table map[Task]announced

// add folds a line and returns the commits that no earlier line announces.
func (t table) add(l Line) (from, to uint64) {
	key := Task{l.Source, l.Task}
	var before *Announced
	if k, known := t[key]; known {
		before = &k.Announced
	}
	from, to = l.After(before)
	if before == nil || l.Epoch >= before.Epoch {
		t[key] = announced{Announced{l.Epoch, max(l.To, from-min(from, 1))}, !l.End}
	}
	return from, to
}

// rows are lines that fold into the table again.
func (t table) rows() []byte {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
	})
	var b []byte
	for _, k := range keys {
		row := t[k]
		b = Line{Source: k.Source, Task: k.ID, Epoch: row.Epoch, From: row.To, To: row.To, End: !row.open}.append(b)
	}
	return b
}
