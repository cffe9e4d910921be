package filetool

import (
	"strconv"
	"strings"
)

// maxLine is how much of a line is shown, in UTF-16 code units.
const maxLine = 2000

// numbered prefixes lines with their numbers, right-aligned, from first on.
func numbered(lines []string, first int) string {
	if len(lines) == 0 {
		return ""
	}
	width := len(strconv.Itoa(first + len(lines) - 1))
	var b strings.Builder
	size := len(lines) * (width + len(" | \n"))
	for _, l := range lines {
		size += min(len(l), 3*maxLine)
	}
	b.Grow(size)
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		num := strconv.Itoa(first + i)
		for range width - len(num) {
			b.WriteByte(' ')
		}
		b.WriteString(num)
		b.WriteString(" | ")
		b.WriteString(shorten(l))
	}
	return b.String()
}

func shorten(line string) string {
	if len(line) > maxLine && units(line) > maxLine {
		return cut(line, maxLine-3) + "..."
	}
	return line
}
