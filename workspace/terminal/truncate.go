package terminal

import (
	"fmt"
	"math"
	"strings"
)

// The share of a limit that goes to the beginning; errors are mostly at the end.
const headShare = 0.2

// Truncate cuts the middle out of s. The limit on characters comes first, and
// when it cuts, the limit on lines is not looked at; 0 = no limit.
func Truncate(s string, lines, chars int) string {
	if chars > 0 {
		if cut, ok := truncateChars(s, chars); ok {
			return cut
		}
	}
	if lines > 0 {
		return truncateLines(s, lines)
	}
	return s
}

func head(limit int) int { return int(math.Floor(float64(limit) * headShare)) }

func truncateChars(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return "", false // never more units than bytes
	}
	u := units(s)
	if len(u) <= limit {
		return "", false
	}
	before := head(limit)
	after := len(u) - (limit - before)
	if splits(u, before) {
		before--
	}
	if splits(u, after) {
		after++
	}
	return text(u[:before]) + fmt.Sprintf("\n[...%d characters omitted...]\n", after-before) + text(u[after:]), true
}

func truncateLines(s string, limit int) string {
	total := strings.Count(s, "\n") + 1
	if total <= limit {
		return s
	}
	before := head(limit)
	start := 0
	for range before {
		start += strings.IndexByte(s[start:], '\n') + 1
	}
	end := len(s)
	for n := limit - before; n > 0; n-- {
		end = strings.LastIndexByte(s[:end], '\n')
	}
	return s[:start] + fmt.Sprintf("\n[...%d lines omitted...]\n\n", total-limit) + s[end+1:]
}
