package config

import (
	"slices"
	"strconv"
	"strings"
)

// Text is the file as it was read.
func (f *File) Text() []byte { return []byte(strings.Join(f.lines, "")) }

// Get finds a setting.
func (f *File) Get(key string) (Entry, bool) {
	i := f.index(key)
	if i < 0 {
		return Entry{}, false
	}
	return f.Entries[i], true
}

func (f *File) index(key string) int {
	return slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Key == key })
}

// With is the file's text with one setting changed or added. Every other byte,
// comments included, stays as it is.
func (f *File) With(key string, v Value) []byte {
	if i := f.index(key); i >= 0 {
		e := f.Entries[i]
		old := f.lines[e.Line-1]
		name, _, _ := strings.Cut(old, "=")
		line := strings.TrimRight(name, " \t") + " = " + v.spelled() + comment(f.lines[e.end-1], e) + newline(old)
		return f.splice(e.Line-1, e.end, line)
	}
	table, name := "", key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		table, name = key[:i], key[i+1:]
	}
	at, found := f.place(table)
	if !found {
		if i := slices.IndexFunc(f.Entries, func(e Entry) bool { return strings.HasPrefix(e.Key, table+".") }); i >= 0 {
			// Dotted settings made the table: a header for it would be a second one.
			if header := f.header(f.Entries[i].Line); header != "" && strings.HasPrefix(key, header+".") {
				at, name, found = f.Entries[i].end, strings.TrimPrefix(key, header+"."), true
			} else if header == "" {
				at, name, found = f.Entries[i].end, key, true
			}
		}
	}
	line := name + " = " + v.spelled() + f.newline()
	if !found && table != "" {
		line = "[" + table + "]" + f.newline() + line
		if len(f.lines) > 0 {
			line = f.newline() + line
		}
	}
	if at > 0 && !strings.HasSuffix(f.lines[at-1], "\n") {
		line = f.newline() + line
	}
	return f.splice(at, at, line)
}

// Without is the file's text with one setting taken out.
func (f *File) Without(key string) []byte {
	i := f.index(key)
	if i < 0 {
		return f.Text()
	}
	return f.splice(f.Entries[i].Line-1, f.Entries[i].end, "")
}

// header is the name of the table that a line belongs to.
func (f *File) header(line int) string {
	name := ""
	for _, t := range f.tables {
		if t.line < line {
			name = t.name
		}
	}
	return name
}

// place is the line after the last setting of a table, and whether there is such a table. Settings without a table
// precede every header.
func (f *File) place(name string) (at int, found bool) {
	for i, t := range f.tables {
		if t.name != name {
			continue
		}
		at = t.line
		next := len(f.lines) + 1
		if i+1 < len(f.tables) {
			next = f.tables[i+1].line
		}
		for _, e := range f.Entries {
			if e.Line > t.line && e.Line < next {
				at = max(at, e.end)
			}
		}
		if i == 0 && at == 0 {
			at = f.top(next - 1)
		}
		return at, true
	}
	return len(f.lines), false
}

// top is where the first setting without a table goes: behind the file's comment
// at its top, which a blank line ends, but before the first header, whose line
// (from 0) is given.
func (f *File) top(header int) int {
	if header == len(f.lines) {
		return header
	}
	for i, line := range f.lines[:header] {
		switch line = strings.TrimSpace(line); {
		case line == "" && i > 0:
			return i + 1
		case !strings.HasPrefix(line, "#"):
			return 0
		}
	}
	return 0
}

func (f *File) splice(from, to int, line string) []byte {
	return []byte(strings.Join(f.lines[:from], "") + line + strings.Join(f.lines[to:], ""))
}

func (f *File) newline() string {
	if len(f.lines) > 0 {
		return newline(f.lines[0])
	}
	return "\n"
}

func newline(line string) string {
	if strings.HasSuffix(line, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// comment is the comment behind a value, with the blanks before it.
func comment(line string, e Entry) string {
	line = strings.TrimRight(line, "\r\n")
	for i := 0; i < len(line); i++ {
		if line[i] != '#' {
			continue
		}
		// A # inside the value is none: what precedes a comment still gives the same value.
		if again, err := Parse([]byte("x = " + valueOf(line[:i]))); err == nil && len(again.Entries) == 1 && e.Line == e.end {
			return line[len(strings.TrimRight(line[:i], " \t")):]
		}
	}
	return ""
}

func valueOf(line string) string {
	_, value, _ := strings.Cut(line, "=")
	return value
}

func (v Value) spelled() string {
	if !v.IsList {
		if v.Text == "true" || v.Text == "false" {
			return v.Text
		}
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil && v.Text == strconv.FormatInt(n, 10) {
			return v.Text
		}
		return quoted(v.Text)
	}
	parts := make([]string, len(v.List))
	for i, text := range v.List {
		parts[i] = quoted(text)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' && r != '\t' || r == 0x7f:
			b.WriteString(`\u` + strconv.FormatInt(0x10000+int64(r), 16)[1:])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
