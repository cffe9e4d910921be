package slash

import (
	"regexp"
	"strconv"
	"strings"
)

// maxFront bounds front matter in bytes; three short lines are what it is for.
const maxFront = 16 << 10

// Parse reads the text of a command's file.
func Parse(text string) Command {
	front, content := Front(text)
	return Command{
		Content: content, Description: front.Text("description"),
		Hint: front.Text("argument-hint"), Mode: front.Text("mode"),
	}
}

// Fields are the members of front matter, each as a text or as a list.
type Fields map[string]field

type field struct {
	text string
	list []string
}

// Text is a field that is text, "" for any other.
func (f Fields) Text(name string) string { return f[name].text }

// List is a field that is a list of texts, nil for any other.
func (f Fields) List(name string) []string { return f[name].list }

// Front takes front matter and what comes after it apart. A text without any, or with
// some that is no list of fields, is content as a whole, and the fields are nil.
func Front(text string) (Fields, string) {
	text = strings.ToValidUTF8(strings.TrimPrefix(text, "\uFEFF"), "\uFFFD")
	if front, rest, ok := split(text); ok {
		if fields, ok := decode(front); ok {
			return fields, strings.TrimSpace(rest)
		}
	}
	return nil, strings.TrimSpace(text)
}

// split cuts front matter off: what is between a first line of "---" and the next one.
func split(text string) (front, rest string, ok bool) {
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t\r") != "---" {
		return "", "", false
	}
	for at := 0; at <= len(rest) && at <= maxFront; {
		line, _, more := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t\r") == "---" {
			return rest[:at], rest[min(len(rest), at+len(line)+1):], true
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return "", "", false
}

// decode reads the fields of front matter that are texts or lists of texts; false when it is
// no list of fields. It knows the forms in which YAML writes a text at the top level and skips
// other values. go-yaml was rejected: one value that YAML wants quoted ("usage: deploy: all",
// an open quote) would cost all other fields, and files that anybody may have written could
// make it panic or expand aliases without end.
func decode(front string) (Fields, bool) {
	fields := Fields{}
	lines := strings.Split(strings.ReplaceAll(front, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		if t := strings.TrimSpace(line); t == "" || t[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(line[:1], ": \t-[]{}&*!|>'\"%@`") || value != "" && value[0] != ' ' && value[0] != '\t' {
			return nil, false
		}
		from := i
		for i < len(lines) && (strings.TrimSpace(lines[i]) == "" || lines[i][0] == ' ' || lines[i][0] == '\t' ||
			strings.HasPrefix(lines[i], "- ")) {
			i++
		}
		value = strings.TrimSpace(value)
		fields[strings.TrimSpace(key)] = field{strings.TrimSpace(scalar(value, lines[from:i])), items(value, lines[from:i])}
	}
	return fields, true
}

// items are the texts of a list, in a line ("[a, b]") or in lines that begin with "-".
// A list that holds anything else than texts without commas is none.
func items(value string, below []string) []string {
	if at := strings.Index(value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	var list []string
	add := func(text string) bool {
		text = scalar(strings.TrimSpace(text), nil)
		list = append(list, text)
		return text != ""
	}
	if value == "" {
		for _, l := range below {
			l = strings.TrimSpace(l)
			if l == "" || l[0] == '#' {
				continue
			}
			item, ok := strings.CutPrefix(l, "- ")
			if !ok || !add(item) {
				return nil
			}
		}
		return list
	}
	inner, open := strings.CutPrefix(value, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !open || !closed || strings.TrimSpace(strings.Join(below, "")) != "" {
		return nil
	}
	for item := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(inner), ","), ",") {
		if !add(item) {
			return nil
		}
	}
	return list
}

// scalar is a value that is text, "" for any other. below are the indented lines
// that follow.
func scalar(value string, below []string) string {
	if value == "" {
		return ""
	}
	switch value[0] {
	case '|', '>':
		return block(below, value[0] == '>')
	case '[', '{', '&', '*', '!', '%', '@', '`', '#', '-':
		if value[0] == '-' && len(value) > 1 && value[1] != ' ' {
			break
		}
		return ""
	}
	for _, l := range below {
		if l = strings.TrimSpace(l); l != "" {
			value += " " + l
		}
	}
	if value[0] == '\'' || value[0] == '"' {
		return quoted(value)
	}
	if at := strings.Index(value, " #"); at >= 0 {
		value = strings.TrimSpace(value[:at])
	}
	switch strings.ToLower(value) {
	case "true", "false", "null", "~":
		return ""
	}
	if number.MatchString(value) {
		return ""
	}
	return value
}

// number is what YAML reads as a number: 1, -2.5e3, 0x1f, 1_000, .inf. A word that begins with a letter is none, even
// where Go reads one: inf and nan are words.
var number = regexp.MustCompile(`(?i)^[-+]?(\.inf|\.nan|0x[0-9a-f_]+|0o[0-7_]+|0b[01_]+|([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(e[-+]?[0-9_]+)?)$`)

// quoted is the text between quotes; "" when they are not closed.
func quoted(value string) string {
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		c := value[i]
		switch {
		case c == value[0] && c == '\'' && strings.HasPrefix(value[i+1:], "'"):
			i++
		case c == value[0]:
			return b.String()
		case c == '\\' && value[0] == '"' && i+1 < len(value):
			r, _, tail, err := strconv.UnquoteChar(value[i:], '"')
			if err != nil {
				return ""
			}
			b.WriteRune(r)
			i = len(value) - len(tail) - 1
			continue
		}
		b.WriteByte(c)
	}
	return ""
}

// block is indented lines, as they are or folded into one.
func block(below []string, folded bool) string {
	indent := -1
	for _, l := range below {
		if t := strings.TrimLeft(l, " "); t != "" && (indent < 0 || len(l)-len(t) < indent) {
			indent = len(l) - len(t)
		}
	}
	var b strings.Builder
	for _, l := range below {
		l = strings.TrimRight(l[min(max(indent, 0), len(l)):], " \t")
		switch {
		case b.Len() == 0:
		case folded && l != "":
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}
