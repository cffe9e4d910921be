package terminal

import (
	"strconv"
	"strings"
	"unicode"
)

// Number puts "<number> | " before each line, right-aligned, counting from first. No
// line end follows the last one.
func Number(lines []string, first int) string {
	if len(lines) == 0 {
		return ""
	}
	width := len(strconv.Itoa(first + len(lines) - 1))
	size := len(lines) * (width + len(" | \n"))
	for _, l := range lines {
		size += len(l)
	}
	var b strings.Builder
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
		b.WriteString(l)
	}
	return b.String()
}

// StripNumbers removes what Number adds, from the lines that have it. The
// aggressive form also takes a bare "| " and wants a blank behind the bar. Line
// ends become CRLF when there is any CRLF.
func StripNumbers(s string, aggressive bool) string {
	end := "\n"
	if strings.Contains(s, "\r\n") {
		end = "\r\n"
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if i < len(lines)-1 {
			line = strings.TrimSuffix(line, "\r")
		}
		lines[i] = stripLine(line, aggressive)
	}
	return strings.Join(lines, end)
}

func stripLine(line string, aggressive bool) string {
	rest := strings.TrimLeftFunc(line, blank)
	digits := strings.TrimLeft(rest, "0123456789")
	numbered := len(digits) < len(rest)
	bar := strings.TrimLeftFunc(digits, blank)
	spaced := len(bar) < len(digits)
	body, ok := strings.CutPrefix(bar, "|")
	if !ok {
		return line
	}
	after, hasBlank := cutBlank(body)
	if aggressive {
		if numbered && (!spaced || !oneRune(digits[:len(digits)-len(bar)])) || !hasBlank {
			return line
		}
		body = after
	} else {
		if !numbered || !spaced || strings.HasPrefix(body, "|") {
			return line
		}
		if hasBlank {
			body = after
		}
	}
	if strings.ContainsAny(body, "\r\u2028\u2029") {
		return line // these end a line in the pattern language this follows
	}
	return body
}

func cutBlank(s string) (string, bool) {
	for i, r := range s {
		if i == 0 && !blank(r) {
			return s, false
		}
		if i > 0 {
			return s[i:], true
		}
	}
	return "", s != ""
}

func oneRune(s string) bool { return len([]rune(s)) == 1 }

// blank is \s of ECMAScript.
func blank(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0xFEFF, 0x2028, 0x2029:
		return true
	}
	return unicode.Is(unicode.Zs, r)
}
