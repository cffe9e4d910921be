package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parsed is a file's settings without their places.
func parsed(t *testing.T, text string) map[string]Value {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%q: got %v, want no error", text, err)
	}
	out := map[string]Value{}
	for _, e := range f.Entries {
		out[e.Key] = e.Value
	}
	return out
}

func text(s string) Value      { return Value{Text: s} }
func texts(s ...string) Value  { return Value{IsList: true, List: s} }
func lines(l ...string) string { return strings.Join(l, "\n") }

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       map[string]Value
	}{
		{"nothing", "", map[string]Value{}},
		{"only comments and blank lines", "# a\n\n   # b", map[string]Value{}},
		{"a text", `model = "x"`, map[string]Value{"model": text("x")}},
		{"a text without blanks", `model="x"`, map[string]Value{"model": text("x")}},
		{"a comment behind", `model = "x" # and why`, map[string]Value{"model": text("x")}},
		{"a # in a text is none", `model = "x # y"`, map[string]Value{"model": text("x # y")}},
		{"a literal text has no escapes", `root = 'C:\new\table'`, map[string]Value{"root": text(`C:\new\table`)}},
		{"escapes", `a = "\t\"\\\u00e9\U0001F600"`, map[string]Value{"a": text("\t\"\\é😀")}},
		{"numbers keep their spelling", "a = 1\nb = -2\nc = 0.50\nd = 1_000\ne = 0x1F", map[string]Value{
			"a": text("1"), "b": text("-2"), "c": text("0.50"), "d": text("1_000"), "e": text("0x1F"),
		}},
		{"booleans", "a = true\nb = false", map[string]Value{"a": text("true"), "b": text("false")}},
		{"a list", `deny = ["rm -rf", 'sudo',]`, map[string]Value{"deny": texts("rm -rf", "sudo")}},
		{"an empty list", `deny = [ ]`, map[string]Value{"deny": texts()}},
		{"a list over lines, with comments", lines(`deny = [ # never`, ` "rm", # files`, "", ` "dd"`, `]`, `model = "m"`),
			map[string]Value{"deny": texts("rm", "dd"), "model": text("m")}},
		{"a ] in a text of a list", `deny = ["a]", "b,c"]`, map[string]Value{"deny": texts("a]", "b,c")}},
		{"tables", lines(`mode = "ask"`, `[providers.anthropic]`, `api_key = "k"`, `[providers."open.ai"]`, `x = 1`),
			map[string]Value{"mode": text("ask"), "providers.anthropic.api_key": text("k"), "providers.open.ai.x": text("1")}},
		{"dotted and quoted keys", lines(`providers . anthropic.api_key = "k"`, `"a b" = 1`, `'c' = 2`),
			map[string]Value{"providers.anthropic.api_key": text("k"), "a b": text("1"), "c": text("2")}},
		{"line breaks of Windows", "a = 1\r\n# c\r\n[t]\r\nb = [\r\n\"x\"\r\n]\r\n", map[string]Value{"a": text("1"), "t.b": texts("x")}},
		{"a byte order mark", "\ufeffa = 1", map[string]Value{"a": text("1")}},
		{"a tab in a text", "a = \"x\ty\"", map[string]Value{"a": text("x\ty")}},
		{"an empty text", `a = ""`, map[string]Value{"a": text("")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, parsed(t, tt.text), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is not understood is refused with its line: a setting that is silently
// something else is worse than none.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		line       int
		says       string
	}{
		{"no value", "a = 1\nb =\n", 2, "at start of value"},
		{"no equals sign", "\n\nmodel \"x\"", 3, "expected '='"},
		{"no name", "= 1", 1, "="},
		{"a bare word", "model = claude", 1, "c"},
		{"an open text", "a = 1\nmodel = \"x\nb = 2", 2, "new lines"},
		{"an open text at the end", `model = 'x`, 1, "unterminated"},
		{"text behind a value", `model = "x" y`, 1, "newline"},
		{"twice", "a = 1\n\na = 2", 3, "a is already defined"},
		{"a table twice", "[t]\na = 1\n[t.u]\n[v]\n[t]\n", 5, "table t already exists"},
		{"dotted again", "t.a = 1\n[t]\na = 2", 2, "t"},
		{"an inline table", "a = {b = 1}", 1, "inline tables"},
		{"an array of tables", "\n[[a]]", 2, "arrays of tables"},
		{"a date", "a = 2026-01-31", 1, "LocalDate"},
		{"a list of numbers", "a = [1, 2]", 1, "texts in quotes"},
		{"a list in a list", `a = [["b"]]`, 1, "texts in quotes"},
		{"an open list", "a = [\n\"b\",\n", 2, "array is incomplete"},
		{"an escape that is none", `a = "\q"`, 1, "escape"},
		{"a path of Windows in double quotes", `a = "C:\Users"`, 1, "escape"},
		{"half a surrogate", `a = "\ud800"`, 1, "escape"},
		{"a header that is not closed", "[a\nb = 1", 1, "]"},
		{"not UTF-8", "a = \"\xff\"", 1, "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := Parse([]byte(tt.text))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("it was read: %+v, %v", f, err)
			}
			if syntax.Line != tt.line || !strings.Contains(syntax.Problem, tt.says) {
				t.Errorf("line %d: %s; want line %d and %q", syntax.Line, syntax.Problem, tt.line, tt.says)
			}
		})
	}
}

func TestLinesOfEntries(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte("# c\na = 1\n\n[t]\nb = [\n\"x\",\n]\nc = 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range f.Entries {
		got[e.Key] = e.Line
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "t.b": 5, "t.c": 8}, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever the bytes are, reading ends, and what was read can be written again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a = 1", "[t]\nb = [\"x\", 'y']\n", "a = \"\\u00e9\"", "a=[\n#c\n]", "\"a b\".c = true", "[", "a = [", "a = \"\\", "\r\n=", "a.b.c = 0x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		file, err := Parse([]byte(in))
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Line > strings.Count(in, "\n")+1 {
				t.Fatalf("%q: got %v, want errors.As(err, &syntax) and syntax.Line >= 1 and syntax.Line <= strings.Count(in, \"\\n\")+1",
					in, err)
			}
			return
		}
		again, err := Parse(file.With("zz", Value{Text: "v"}))
		if err != nil {
			t.Fatalf("%q cannot be read any more with a setting added: %v", in, err)
		}
		for _, e := range file.Entries {
			if got, ok := again.Get(e.Key); e.Key != "zz" && (!ok || !cmp.Equal(got.Value, e.Value, cmpopts.EquateEmpty())) {
				t.Fatalf("%q: adding a setting changed %s from %+v to %+v", in, e.Key, e.Value, got.Value)
			}
		}
	})
}
