package linetext

import "github.com/roost-dev/roost/workspace/terminal"

// MaxLine is how much of a line is shown, in UTF-16 code units.
const MaxLine = 2000

// Numbered prefixes lines with their numbers, right-aligned, from first on.
func Numbered(lines []string, first int) string {
	short := make([]string, len(lines))
	for i, l := range lines {
		short[i] = Shorten(l)
	}
	return terminal.Number(short, first)
}

// Shorten cuts a line to MaxLine units, with an ellipsis at the end.
func Shorten(line string) string {
	if len(line) > MaxLine && Units(line) > MaxLine {
		return Cut(line, MaxLine-3) + "..."
	}
	return line
}
