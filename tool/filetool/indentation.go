package filetool

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool/linetext"
)

// indentOptions choose the block around a line.
type indentOptions struct {
	anchor   int // 1-based line
	levels   int // how many levels outwards, 0 = all
	siblings bool
	header   bool // comments above the block
	limit    int
	maxLines int // 0 = none
}

// levelWidth is how many blanks make a level; a tab is one level.
const levelWidth = 4

var commentStarts = []string{"#", "//", "--", "/*", "*", "'''", `"""`}

// indentLines shows the block that holds the anchor line: it grows from there in
// both directions while lines are indented deeply enough, and beyond the first
// line at the outermost level only when siblings are wanted.
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
	// lo..hi is what is taken; up and down are the lines looked at next.
	lo, hi := at, at
	up, down := at-1, at+1
	outerUp, outerDown := 0, 0
	for hi-lo+1 < limit {
		moved := false
		if up >= 0 && depth[up] >= floor {
			take := true
			if depth[up] == floor && !o.siblings {
				take = outerUp == 0 || o.header && isComment(lines[up])
				outerUp++
			}
			if take {
				lo, moved = up, true
				up--
			} else {
				up = -1
			}
		} else {
			up = -1
		}
		if hi-lo+1 >= limit {
			break
		}
		if down < total && depth[down] >= floor {
			take := true
			if depth[down] == floor && !o.siblings {
				take = outerDown == 0
				outerDown++
			}
			if take {
				hi, moved = down, true
				down++
			} else {
				// As in Roo, refusing downwards also ends a step that only grew upwards.
				moved = false
				down = total
			}
		} else {
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
		if size += min(len(lines[i]), 4*linetext.MaxLine); size > maxShown && i > first {
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

// depths gives each line's level; blank lines have that of the line before.
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
	for _, p := range commentStarts {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}
