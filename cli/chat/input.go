package chat

import (
	"strings"
	"unicode"
)

// unfinished reports whether more is to come behind what was typed: its last line ends
// in a "\", or it has begun a ``` fence and not ended it.
func unfinished(text string) bool {
	fence := false
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fence = !fence
		}
	}
	return fence || continued(lines[len(lines)-1])
}

// continued reports whether a line ends in a "\" that is not itself behind one.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// whole is what a person meant with what was typed: the "\" at the ends of lines that
// go on are no part of it. Inside of a fence a "\" is one.
func whole(text string) string {
	fence := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fence = !fence
		}
		if !fence && i < len(lines)-1 && continued(line) {
			lines[i] = line[:len(line)-1]
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\r\n")
}

// isCommand reports whether a text is a command: a "/" in front, and no second one. A
// command has one line.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
}

// plainly returns the prompt of a text that is no command: "//" in front means "/".
func plainly(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// split takes a command apart: its name, and its arguments.
func split(text string) (name, rest string) {
	text = strings.TrimPrefix(text, "/")
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// fields takes arguments apart at blanks; quotes, single or double, keep some together.
// A quote that is not ended ends with the text.
func fields(text string) (out []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
