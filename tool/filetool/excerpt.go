package filetool

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool/linetext"
)

// excerpt is a part of a file, ready to show.
type excerpt struct {
	text      string
	ranges    [][2]int // lines shown, 1-based, inclusive
	total     int      // lines in the file; a final line feed counts as one more, empty
	returned  int
	truncated bool // the file has more
	reason    string
}

// defaultLines is the number of lines shown when the call gives no limit.
const defaultLines = 2000

// maxShown bounds the bytes of a file in one answer: no model takes more, and the model may choose any number of
// lines. A line counts with its number.
const (
	maxShown   = 1 << 20
	numberSize = 8
)

// sliceLines reads lines offset (from 0) to offset+limit and counts the rest. It keeps in memory only what it shows,
// and drops the rest of a long line. When the lines would exceed maxShown bytes it shows fewer.
func sliceLines(r io.Reader, offset, limit int) (excerpt, error) {
	offset, limit = max(0, offset), max(0, limit)
	var kept []string
	n, size, ended := 0, 0, true // ended: the line before n has its end
	take := func(line []byte) {
		if n >= offset && n-offset < limit && size < maxShown {
			kept = append(kept, linetext.Shorten(string(line)))
			size += len(kept[len(kept)-1]) + numberSize
		}
		n++
	}
	// Four bytes hold at least one unit of UTF-16, so this always suffices.
	for line, err := range linetext.Lines(r, 4*linetext.MaxLine+8) {
		if err != nil {
			return excerpt{}, err
		}
		line, ended = bytes.CutSuffix(line, []byte{'\n'})
		take(line)
	}
	if ended {
		take(nil)
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

// rangeText returns the text of an excerpt for the wanted range g of lines, with a note when the range is too long to
// be shown at once.
func (e excerpt) rangeText(g [2]int) string {
	if e.reason != "" {
		return e.toolText(false, g[0], 0)
	}
	if shownTo := e.ranges[0][1]; shownTo < min(g[1], e.total) {
		return fmt.Sprintf("%s\n[... too long to be shown at once: go on with line %d of %d]", e.text, shownTo+1, e.total)
	}
	return e.text
}

// toolText returns an excerpt with what a model needs to continue reading.
func (e excerpt) toolText(indentation bool, offset, limit int) string {
	switch {
	case e.reason == "past_end":
		return fmt.Sprintf("Note: line %d is past the end of the file, which has %d lines.", offset, e.total)
	case e.truncated && len(e.ranges) > 0 && e.returned > 0:
		first, last := e.ranges[0][0], e.ranges[len(e.ranges)-1][1]
		return fmt.Sprintf("IMPORTANT: File content truncated.\nStatus: Showing lines %d-%d of %d total lines.\nTo read "+
			"more: Use the read_file tool with offset=%d and limit=%d.\n\n%s",
			first, last, e.total, last+1, limit, e.text)
	case indentation && len(e.ranges) > 0:
		parts := api.Each(e.ranges, func(r [2]int) string { return fmt.Sprintf("%d-%d", r[0], r[1]) })
		return fmt.Sprintf("%s\n\nIncluded ranges: %s (total: %d lines)", e.text, strings.Join(parts, ", "), e.total)
	}
	return e.text
}

// indentOptions choose the block around a line.
type indentOptions struct {
	anchor   int // 1-based line
	levels   int // levels outwards, 0 = all
	siblings bool
	header   bool // comments above the block
	limit    int
	maxLines int // 0 = none
}

// levelWidth is the number of blanks per level; a tab is one level.
const levelWidth = 4

var commentStarts = []string{"#", "//", "--", "/*", "*", "'''", `"""`}

// indentLines returns the block that holds the anchor line. The block grows from there in both directions while lines
// are indented deeply enough; it passes the first line at the outermost level only when siblings are wanted.
func indentLines(text string, o indentOptions) excerpt {
	lines := strings.Split(text, "\n")
	total := len(lines)
	if o.anchor < 1 || o.anchor > total {
		return excerpt{total: total, reason: "bad_anchor", text: fmt.Sprintf("Error: anchor_line %d is out of range (1-%d)",
			o.anchor, total)}
	}
	depth := depths(lines)
	at := o.anchor - 1
	floor := 0
	if o.levels != 0 {
		floor = max(0, depth[at]-o.levels)
	}
	limit := min(o.limit, total)
	if o.maxLines != 0 {
		limit = min(limit, o.maxLines)
	}
	if limit == 1 {
		return excerpt{text: linetext.Numbered(lines[at:at+1], o.anchor), ranges: [][2]int{{o.anchor, o.anchor}},
			total: total, returned: 1, truncated: total > 1}
	}
	// The excerpt is lo..hi; up and down are the lines that may join it next.
	lo, hi := at, at
	up, down := at-1, at+1
	deep := func(i int) bool { return i >= 0 && i < total && depth[i] >= floor }
	outerUp, outerDown := 0, 0 // lines at the outermost level that were met on each side
	joins := func(i int, outer *int, header bool) bool {
		if depth[i] > floor || o.siblings {
			return true
		}
		*outer++
		return *outer == 1 || header && isComment(lines[i])
	}
	for hi-lo+1 < limit {
		moved := deep(up) && joins(up, &outerUp, o.header)
		if moved {
			lo = up
			up--
		} else {
			up = -1
		}
		if hi-lo+1 >= limit {
			break
		}
		switch below := deep(down); {
		case below && joins(down, &outerDown, false):
			hi, moved = down, true
			down++
		case below: // as in Roo, refusing downwards also ends a step that only grew upwards
			moved, down = false, total
		default:
			down = total
		}
		if !moved {
			break
		}
	}
	first, last := lo, hi
	for first <= last && isBlank(lines[first]) {
		first++
	}
	for last >= first && isBlank(lines[last]) {
		last--
	}
	full := false
	for i, size := first, 0; i <= last; i++ {
		if size += min(len(lines[i]), 4*linetext.MaxLine) + numberSize; size > maxShown && i > first {
			last, full = i-1, true
		}
	}
	n := last - first + 1
	e := excerpt{total: total, returned: n}
	e.truncated = full || (n >= limit || up >= 0 || down < total) && n < total
	if n > 0 {
		e.ranges = [][2]int{{first + 1, last + 1}}
		e.text = linetext.Numbered(lines[first:last+1], first+1)
	}
	return e
}

// depths returns each line's level; a blank line has the level of the line before.
func depths(lines []string) []int {
	out := make([]int, len(lines))
	before := 0
	for i, l := range lines {
		if !isBlank(l) {
			w := 0
			for _, r := range l[:len(l)-len(linetext.TrimLeft(l))] {
				if r == '\t' {
					w += levelWidth
				} else {
					w++
				}
			}
			before = w / levelWidth
		}
		out[i] = before
	}
	return out
}

func isBlank(line string) bool { return linetext.Trim(line) == "" }

func isComment(line string) bool {
	line = linetext.Trim(line)
	return slices.ContainsFunc(commentStarts, func(p string) bool { return strings.HasPrefix(line, p) })
}
