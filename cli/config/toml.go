package config

import (
	"bytes"
	"errors"
	"fmt"
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
	var place *toml.DecodeError
	if errors.As(err, &place) {
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
