package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
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
	if !utf8.Valid(data) {
		return nil, &SyntaxError{Line: 1, Problem: "the file is not UTF-8"}
	}
	p := parser{text: strings.TrimPrefix(string(data), "\ufeff"), line: 1}
	f := &File{lines: strings.SplitAfter(string(data), "\n"), tables: []table{{line: 0}}}
	if f.lines[len(f.lines)-1] == "" {
		f.lines = f.lines[:len(f.lines)-1]
	}
	taken, prefix := map[string]int{}, ""
	for {
		p.blanks(true)
		if p.at >= len(p.text) {
			return f, nil
		}
		start := p.line
		if p.take("[") {
			name, err := p.header()
			if err != nil {
				return nil, err
			}
			if before, again := taken["["+name]; again {
				return nil, &SyntaxError{Line: start, Problem: fmt.Sprintf("the table [%s] stands in line %d already", name, before)}
			}
			taken["["+name] = start
			f.tables = append(f.tables, table{name, start})
			prefix = name + "."
			continue
		}
		e, err := p.entry(prefix)
		if err != nil {
			return nil, err
		}
		if before, again := taken[e.Key]; again {
			return nil, &SyntaxError{Line: start, Problem: fmt.Sprintf("%s is set in line %d already", e.Key, before)}
		}
		taken[e.Key] = start
		f.Entries = append(f.Entries, e)
	}
}

type parser struct {
	text string
	at   int
	line int
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Line: p.line, Problem: fmt.Sprintf(format, args...)}
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return '\n' // the end of the file ends a line
}

func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// blanks skips blanks, and with lines also line breaks and comments.
func (p *parser) blanks(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t':
		case c == '\n' && lines:
			p.line++
		case c == '\r' && lines && strings.HasPrefix(p.text[p.at:], "\r\n"):
		case c == '#' && lines:
			for p.at+1 < len(p.text) && p.text[p.at+1] != '\n' {
				p.at++
			}
		default:
			return
		}
		p.at++
	}
}

// end wants nothing but a comment on the rest of the line.
func (p *parser) end() error {
	p.blanks(false)
	if c := p.peek(); c == '\n' || c == '#' || c == '\r' && strings.HasPrefix(p.text[p.at:], "\r\n") {
		return nil
	}
	return p.fail("there is something behind the value; a comment begins with #")
}

func (p *parser) header() (string, error) {
	if p.take("[") {
		return "", p.fail("arrays of tables ([[...]]) are not read here")
	}
	name, err := p.key()
	if err != nil {
		return "", err
	}
	if !p.take("]") {
		return "", p.fail("the table's name wants a ] behind it")
	}
	return name, p.end()
}

// key reads a bare, quoted or dotted key.
func (p *parser) key() (string, error) {
	var parts []string
	for {
		p.blanks(false)
		var part string
		if c := p.peek(); c == '"' || c == '\'' {
			text, err := p.str()
			if err != nil {
				return "", err
			}
			part = text
		} else {
			from := p.at
			for isBare(p.peek()) {
				p.at++
			}
			part = p.text[from:p.at]
		}
		if part == "" {
			return "", p.fail("want a setting's name")
		}
		parts = append(parts, part)
		p.blanks(false)
		if !p.take(".") {
			return strings.Join(parts, "."), nil
		}
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (p *parser) entry(prefix string) (Entry, error) {
	e := Entry{Line: p.line}
	name, err := p.key()
	if err != nil {
		return e, err
	}
	e.Key = prefix + name
	if !p.take("=") {
		return e, p.fail("%s wants a = behind it", name)
	}
	p.blanks(false)
	if p.take("[") {
		e.Value, err = p.list()
	} else {
		e.Value.Text, err = p.scalar()
	}
	if err != nil {
		return e, err
	}
	e.end = p.line
	return e, p.end()
}

func (p *parser) list() (Value, error) {
	v := Value{IsList: true, List: []string{}}
	for {
		p.blanks(true)
		if p.take("]") {
			return v, nil
		}
		if c := p.peek(); c != '"' && c != '\'' {
			return v, p.fail("a list holds texts in quotes here")
		}
		text, err := p.str()
		if err != nil {
			return v, err
		}
		v.List = append(v.List, text)
		p.blanks(true)
		if !p.take(",") && p.peek() != ']' {
			return v, p.fail("the list wants a , or a ]")
		}
	}
}

// scalar reads a string, a number or a boolean; the last two as spelled.
func (p *parser) scalar() (string, error) {
	switch p.peek() {
	case '"', '\'':
		return p.str()
	case '{':
		return "", p.fail("inline tables ({...}) are not read here")
	case '\n', '\r', '#':
		return "", p.fail("the value is missing")
	}
	from := p.at
	for c := p.peek(); isBare(c) || c == '+' || c == '.' || c == ':'; c = p.peek() {
		p.at++
	}
	word := p.text[from:p.at]
	if word == "true" || word == "false" {
		return word, nil
	}
	if _, err := strconv.ParseInt(word, 0, 64); err == nil && !strings.HasPrefix(strings.TrimLeft(word, "+-"), "0_") {
		return word, nil
	}
	if _, err := strconv.ParseFloat(word, 64); err == nil && strings.ContainsAny(word, "0123456789") {
		return word, nil
	}
	return "", p.fail("%q is neither a number nor true or false; texts stand in quotes", p.rest(from))
}

// rest is what a refused value looks like, for the message.
func (p *parser) rest(from int) string {
	text, _, _ := strings.Cut(p.text[from:], "\n")
	if runes := []rune(strings.TrimSpace(text)); len(runes) > 30 {
		return string(runes[:30]) + "..."
	}
	return strings.TrimSpace(text)
}

// str reads a string on one line: "basic" with escapes, 'literal' without.
func (p *parser) str() (string, error) {
	quote := p.text[p.at]
	if strings.HasPrefix(p.text[p.at:], strings.Repeat(string(quote), 3)) {
		return "", p.fail("texts over several lines are not read here")
	}
	p.at++
	var b strings.Builder
	for {
		c := p.peek()
		switch {
		case c == '\n':
			return "", p.fail("the text's closing %c is missing", quote)
		case c == quote:
			p.at++
			return b.String(), nil
		case c < ' ' && c != '\t' && !strings.HasPrefix(p.text[p.at:], "\r\n") || c == 0x7f:
			return "", p.fail("a control character (%#02x) cannot stand in a text", c)
		case c == '\\' && quote == '"':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			continue
		case c == '\r':
			return "", p.fail("the text's closing %c is missing", quote)
		}
		b.WriteByte(c)
		p.at++
	}
}

func (p *parser) escape() (rune, error) {
	p.at++
	c := p.peek()
	if i := strings.IndexByte(`btnfr"\`, c); i >= 0 {
		p.at++
		return rune("\b\t\n\f\r\"\\"[i]), nil
	}
	digits := map[byte]int{'u': 4, 'U': 8}[c]
	if digits == 0 || p.at+1+digits > len(p.text) {
		return 0, p.fail(`there is no escape \%c; a backslash is written \\, or the text in single quotes`, c)
	}
	n, err := strconv.ParseUint(p.text[p.at+1:p.at+1+digits], 16, 32)
	if err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, p.fail(`\%c%s is no character`, c, p.text[p.at+1:p.at+1+digits])
	}
	p.at += 1 + digits
	return rune(n), nil
}
