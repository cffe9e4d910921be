package filetool

import "github.com/roost-dev/roost/workspace/terminal"

// maxLine is how much of a line is shown, in UTF-16 code units.
const maxLine = 2000

// numbered prefixes lines with their numbers, right-aligned, from first on.
func numbered(lines []string, first int) string {
	short := make([]string, len(lines))
	for i, l := range lines {
		short[i] = shorten(l)
	}
	return terminal.Number(short, first)
}

func shorten(line string) string {
	if len(line) > maxLine && units(line) > maxLine {
		return cut(line, maxLine-3) + "..."
	}
	return line
}
