package view

import "strings"

// change makes a diff of the change that a call asks for, if text is one: a unified diff and a patch stay as they are,
// SEARCH/REPLACE blocks become a diff.
func change(text string) (string, bool) {
	text = unixEnds(text)
	if strings.HasPrefix(text, "@@") || strings.Contains(text, "\n@@") || strings.HasPrefix(text, "*** Begin Patch") {
		return text, true
	}
	return searchReplace(text)
}

// added is a new file as a diff.
func added(text string) string { return prefixed("+", text) }

func prefixed(mark, text string) string {
	text = strings.TrimSuffix(unixEnds(text), "\n")
	if text == "" {
		return ""
	}
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark)
}

// replaced is a diff between two texts. Common lines at the beginning and the end stay.
func replaced(before, after string) string {
	a, b := splitLines(before), splitLines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	put := func(mark string, lines []string) {
		for _, l := range lines {
			out.WriteString(mark + l + "\n")
		}
	}
	put(" ", a[:head])
	put("-", a[head:len(a)-tail])
	put("+", b[head:len(b)-tail])
	put(" ", a[len(a)-tail:])
	return out.String()
}

func splitLines(text string) []string {
	text = strings.TrimSuffix(unixEnds(text), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// searchReplace makes a diff of SEARCH/REPLACE blocks in the form of Roo and Cline. A block that was cut off gives a
// diff of what is there.
func searchReplace(text string) (diff string, ok bool) {
	const (
		outside = iota
		searching
		replacing
	)
	var out strings.Builder
	var before, after []string
	at, where := outside, ""
	flush := func() {
		if at != outside {
			out.WriteString(strings.TrimSpace("@@ "+where) + "\n" + replaced(strings.Join(before, "\n"), strings.Join(after, "\n")))
		}
		before, after, at, where = nil, nil, outside, ""
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(unixEnds(text), "\n"), "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case marker(mark, "<-", "SEARCH"):
			flush()
			at, ok = searching, true
		case at == searching && len(before) == 0 && strings.HasPrefix(mark, ":start_line:"):
			where = "line " + strings.TrimPrefix(mark, ":start_line:")
		case at == searching && len(before) == 0 && strings.HasPrefix(mark, ":end_line:"):
		case at == searching && len(before) == 0 && mark == "-------":
		case at == searching && len(mark) >= 5 && strings.Trim(mark, "=") == "":
			at = replacing
		case at == replacing && marker(mark, ">+", "REPLACE"):
			flush()
		case at == searching:
			before = append(before, line)
		case at == replacing:
			after = append(after, line)
		case mark != "":
			out.WriteString(" " + line + "\n")
		}
	}
	flush()
	return strings.TrimSuffix(out.String(), "\n"), ok
}

// marker reports whether a line is five or more of one of the signs, followed by the word.
func marker(line, signs, word string) bool {
	for _, sign := range signs {
		rest := strings.TrimLeft(line, string(sign))
		if len(line)-len(rest) >= 5 && strings.HasPrefix(strings.TrimSpace(rest), word) {
			return true
		}
	}
	return false
}
