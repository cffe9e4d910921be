package search

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
)

// Limits of an answer to search_files.
const (
	maxResults   = 300 // groups of adjacent lines
	maxFoundLine = 500 // UTF-16 code units, line end included
	// maxFoundLines bounds answers in which every line matches: one group.
	maxFoundLines = 5 * maxResults
)

// foundLine is a matching line or one beside it.
type foundLine struct {
	number int    // 1-based
	text   string // with its line end
}

// foundFile holds the lines of one file in order.
type foundFile struct {
	path  string // as shown
	lines []foundLine
}

// groups counts the runs of adjacent lines.
func (f foundFile) groups() int {
	n := 0
	for i, l := range f.lines {
		if i == 0 || l.number > f.lines[i-1].number+1 {
			n++
		}
	}
	return n
}

// formatFound writes the answer of search_files.
func formatFound(files []foundFile) string {
	total := 0
	for _, f := range files {
		total += f.groups()
	}
	var b strings.Builder
	switch {
	case total >= maxResults:
		fmt.Fprintf(&b, "Showing first %d of %d+ results. Use a more specific search if necessary.\n\n", maxResults, maxResults)
	case total == 1:
		b.WriteString("Found 1 result.\n\n")
	default:
		fmt.Fprintf(&b, "Found %d results.\n\n", total)
	}
	for _, f := range files[:min(len(files), maxResults)] {
		fmt.Fprintf(&b, "# %s\n", tool.SafeName(f.path))
		for i, l := range f.lines {
			if i > 0 && l.number > f.lines[i-1].number+1 {
				b.WriteString("----\n")
			}
			fmt.Fprintf(&b, "%3d | %s\n", l.number, foundText(l.text))
		}
		if len(f.lines) > 0 {
			b.WriteString("----\n")
		}
		b.WriteByte('\n')
	}
	return linetext.Trim(b.String())
}

func foundText(s string) string {
	if len(s) > maxFoundLine && linetext.Units(s) > maxFoundLine {
		s = linetext.Cut(s, maxFoundLine) + " [truncated...]"
	}
	return strings.ToValidUTF8(linetext.TrimRight(s), "\uFFFD")
}
