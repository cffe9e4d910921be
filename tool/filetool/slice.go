package filetool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/roost-dev/roost/tool/linetext"
)

// excerpt is a part of a file, ready to be shown.
type excerpt struct {
	text      string
	ranges    [][2]int // lines shown, 1-based, inclusive
	total     int      // lines in the file; a final line feed counts as one more, empty
	returned  int
	truncated bool // more could be read
	reason    string
}

// defaultLines is how many lines are shown when the call gives no limit.
const defaultLines = 2000

// maxShown is how many bytes of a file one answer holds: no model takes more, and
// the limit on lines is the model's to choose.
const maxShown = 1 << 20

// lineReaders are used again: their buffers are larger than most files.
var lineReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// sliceLines reads lines offset (from 0) to offset+limit and counts the rest. It
// keeps no more than it shows; a line's bytes past what is shown are dropped. When
// the lines would be more than maxShown bytes it shows fewer.
func sliceLines(r io.Reader, offset, limit int) (excerpt, error) {
	offset, limit = max(0, offset), max(0, limit)
	var kept []string
	n := 0 // complete lines so far
	var line []byte
	br, _ := lineReaders.Get().(*bufio.Reader)
	br.Reset(r)
	defer func() { br.Reset(nil); lineReaders.Put(br) }()
	size := 0
	wanted := func() bool { return n >= offset && n-offset < limit && size < maxShown }
	for {
		part, err := br.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		// Four bytes hold at least one unit of UTF-16, so this always suffices.
		if wanted() && len(line) < 4*linetext.MaxLine+8 {
			line = append(line, part...)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return excerpt{}, err
		}
		atEnd := errors.Is(err, io.EOF)
		if ended || atEnd {
			if wanted() {
				kept = append(kept, linetext.Shorten(string(line)))
				size += len(kept[len(kept)-1])
			}
			line = line[:0]
			n++
		}
		if atEnd {
			break
		}
	}
	if offset >= n {
		return excerpt{total: n, text: fmt.Sprintf("Error: offset %d is beyond file end (%d lines)", offset, n), reason: "past_end"}, nil
	}
	end := min(n, offset+limit, offset+len(kept))
	return excerpt{
		text:      linetext.Numbered(kept, offset+1),
		ranges:    [][2]int{{offset + 1, end}},
		total:     n,
		returned:  len(kept),
		truncated: end < n,
	}, nil
}

// rangeText is an excerpt that was asked for as the range g of lines: what is not
// shown of it was not wanted, unless it was too much.
func (e excerpt) rangeText(g [2]int) string {
	if e.reason != "" {
		return e.toolText(false, g[0], 0)
	}
	if shownTo := e.ranges[0][1]; shownTo < min(g[1], e.total) {
		return fmt.Sprintf("%s\n[... too long to be shown at once: go on with line %d of %d]", e.text, shownTo+1, e.total)
	}
	return e.text
}

// toolText is an excerpt with what a model needs to know to read on.
func (e excerpt) toolText(indentation bool, offset, limit int) string {
	switch {
	case e.reason == "past_end":
		return fmt.Sprintf("Note: line %d is past the end of the file, which has %d lines.", offset, e.total)
	case e.reason == "bad_anchor":
		return e.text
	case e.truncated && len(e.ranges) > 0 && e.returned > 0:
		first, last := e.ranges[0][0], e.ranges[len(e.ranges)-1][1]
		return fmt.Sprintf("IMPORTANT: File content truncated.\nStatus: Showing lines %d-%d of %d total lines.\nTo read "+
			"more: Use the read_file tool with offset=%d and limit=%d.\n\n%s",
			first, last, e.total, last+1, limit, e.text)
	case indentation && len(e.ranges) > 0:
		var parts []string
		for _, r := range e.ranges {
			parts = append(parts, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
		return fmt.Sprintf("%s\n\nIncluded ranges: %s (total: %d lines)", e.text, strings.Join(parts, ", "), e.total)
	}
	return e.text
}
