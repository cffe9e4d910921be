// Package outline folds a source file to the lines that declare something, each with the lines that it spans: what a
// model needs to remember of a file that it has read.
//
// It judges by how lines look: a word of the language at the beginning, and the lines below that are indented further
// belong to it. No file is parsed, so a broken one has an outline too, and now and then it takes a line for a
// declaration that is none. A real parser for each language was rejected: the outline is a reminder, and the model
// can read the file again. Files of unknown languages have none.
//
// Pure: text in, text out.
package outline

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// maxLine is how many bytes of a line are shown.
const maxLine = 160

// Of is the outline of a file, one declaration a line, as in
//
//	12--40 | func Open(path string) (*File, error) {
//
// with lines counted from 1; "" for a file that declares nothing, or of an unknown language. The ending of name
// decides the language.
func Of(name, text string) string {
	language, known := languages[strings.ToLower(path.Ext(name))]
	if !known || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ""
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i, line := range lines {
		level, declares := language.level(line)
		if !declares {
			continue
		}
		end := language.end(lines, i, level)
		fmt.Fprintf(&b, "%d--%d | %s\n", i+1, end+1, short(strings.TrimRight(line, " \t")))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func short(line string) string {
	if len(line) <= maxLine {
		return line
	}
	at := maxLine
	for !utf8.RuneStart(line[at]) {
		at--
	}
	return line[:at] + "..."
}

// language is how declarations look.
type language struct {
	declares pattern // of a line without what it is indented by
	deepest  int     // columns of indent at which declarations are still shown
	headings bool    // Markdown: a section ends at the next heading of its level
}

// level is the indentation of a line that declares something.
func (l language) level(line string) (level int, declares bool) {
	inner := strings.TrimLeft(line, " \t")
	for _, c := range line[:len(line)-len(inner)] {
		if level++; c == '\t' {
			level += 3
		}
	}
	if level > l.deepest || !l.declares.MatchString(inner) || !l.headings && statement.MatchString(inner) {
		return 0, false
	}
	if l.headings {
		level = len(inner) - len(strings.TrimLeft(inner, "#"))
	}
	return level, true
}

// end is the last line of what begins at a line: of all lines that are indented further, and the line that closes it.
func (l language) end(lines []string, begin, level int) int {
	last := begin
	for i := begin + 1; i < len(lines); i++ {
		inner := strings.TrimLeft(lines[i], " \t")
		if inner == "" {
			continue
		}
		if l.headings {
			if at, is := l.level(lines[i]); is && at <= level {
				break
			}
			last = i
			continue
		}
		indent := 0
		for _, c := range lines[i][:len(lines[i])-len(inner)] {
			if indent++; c == '\t' {
				indent += 3
			}
		}
		if indent <= level {
			if closing.MatchString(inner) {
				last = i
				if strings.ContainsAny(inner[:1], "{") || opens.MatchString(inner) {
					continue // ") {" after parameters, "{" on a line of its own
				}
			}
			break
		}
		last = i
	}
	return last
}

var (
	// statement is what looks like the head of a method in languages with braces.
	statement = lazy(`^(?:if|else|for|foreach|while|do|switch|match|catch|try|with|return|throw|new|await|yield|using|lock|when|unless|until|elif|elsif)\b`)

	closing = lazy(`^(?:[{})\]]|end\b)`)
	opens   = lazy(`^\).*[{:]\s*$`)
)
