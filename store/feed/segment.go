package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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
