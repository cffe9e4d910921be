// Package config is Roost's settings file. It reads the file with the line of every setting, changes one setting and
// keeps every other byte, and decides which of file, environment and default applies.
//
// Limits: the file is TOML, read by a library. Settings are texts, numbers, booleans and lists of texts; dates,
// inline tables and arrays of tables are refused with their line. The library does not edit a file in place, so
// changing one setting works on lines: it writes one line, which replaces the lines of the old value.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// SyntaxError is something in the file that cannot be read.
type SyntaxError struct {
	Line    int // from 1
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Value is one value of the file: a text, or a list of texts. Numbers and
// booleans are kept as they are spelled, so that an amount of money is never
// rounded on its way.
type Value struct {
	Text   string
	List   []string
	IsList bool
}

// Entry is one setting of the file.
type Entry struct {
	Key   string // dotted
	Value Value
	Line  int // where it begins, from 1
	end   int // its last line
}

// File is a settings file. The zero value is an empty one.
type File struct {
	Entries []Entry
	lines   []string // each with its line break
	tables  []table
}

// table is a header's place.
type table struct {
	name string
	line int
}

// Parse reads a settings file. What it refuses is a *SyntaxError.
func Parse(data []byte) (*File, error) {
	f := &File{lines: strings.SplitAfter(string(data), "\n"), tables: []table{{line: 0}}}
	if f.lines[len(f.lines)-1] == "" {
		f.lines = f.lines[:len(f.lines)-1]
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	// The file is judged as a whole first: the parser below knows no names.
	if err := toml.Unmarshal(data, new(map[string]any)); err != nil {
		return nil, syntax(err)
	}
	p := unstable.Parser{}
	p.Reset(data)
	prefix := ""
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table:
			name, at := keyOf(n)
			f.tables = append(f.tables, table{name, p.Shape(at).Start.Line})
			prefix = name + "."
		case unstable.ArrayTable:
			_, at := keyOf(n)
			return nil, &SyntaxError{p.Shape(at).Start.Line, "arrays of tables ([[...]]) are not read here"}
		case unstable.KeyValue:
			e, err := entryOf(&p, n, prefix)
			if err != nil {
				return nil, err
			}
			f.Entries = append(f.Entries, e)
		}
	}
	if err := p.Error(); err != nil {
		return nil, syntax(err)
	}
	return f, nil
}

// syntax is an error of the library as ours.
func syntax(err error) error {
	line := 1
	if place, is := errors.AsType[*toml.DecodeError](err); is {
		line, _ = place.Position()
	}
	return &SyntaxError{Line: line, Problem: strings.TrimPrefix(err.Error(), "toml: ")}
}

// keyOf is the dotted name of a setting or a table, and where it begins.
func keyOf(n *unstable.Node) (name string, at unstable.Range) {
	var parts []string
	it := n.Key()
	for it.Next() {
		if len(parts) == 0 {
			at = it.Node().Raw
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), at
}

func entryOf(p *unstable.Parser, n *unstable.Node, prefix string) (Entry, error) {
	name, _ := keyOf(n)
	shape := p.Shape(n.Raw)
	e := Entry{Key: prefix + name, Line: shape.Start.Line, end: shape.End.Line}
	problem := ""
	switch v := n.Value(); v.Kind {
	case unstable.String, unstable.Integer, unstable.Float, unstable.Bool:
		e.Value.Text = string(v.Data)
	case unstable.Array:
		e.Value = Value{IsList: true, List: []string{}}
		it := v.Children()
		for it.Next() {
			if it.Node().Kind != unstable.String {
				problem = "a list holds texts in quotes here"
			}
			e.Value.List = append(e.Value.List, string(it.Node().Data))
		}
	case unstable.InlineTable:
		problem = "inline tables ({...}) are not read here; write [" + e.Key + "]"
	default:
		problem = "a " + v.Kind.String() + " is not a setting's value; write texts in quotes"
	}
	if problem != "" {
		return e, &SyntaxError{e.Line, e.Key + ": " + problem}
	}
	return e, nil
}

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
