package terminal

import (
	"fmt"
	"strings"
)

// FoldRepeats replaces runs of equal lines by the line and a note of how often it
// was repeated, where the note is shorter than the run. With the line before it
// that may still be a little longer; it is Roo's rule.
func FoldRepeats(s string) string {
	var out strings.Builder
	for s != "" {
		line := s
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			line = s[:i+1]
		}
		n := 1
		for strings.HasPrefix(s[n*len(line):], line) && strings.HasSuffix(line, "\n") {
			n++
		}
		run := s[:n*len(line)]
		s = s[len(run):]
		note := fmt.Sprintf("<previous line repeated %d additional times>\n", n-1)
		if n > 1 && len(note) < n*length(line) {
			out.WriteString(line)
			out.WriteString(note)
			continue
		}
		out.WriteString(run)
	}
	return out.String()
}
