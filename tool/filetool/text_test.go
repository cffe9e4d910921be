package filetool

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/terminal"
)

// wide gives texts in which surrogates stand alone (in three bytes), as JSON of
// JavaScript may hold them.
func wide() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "é", "日", "😀", "\xed\xa0\xbd", "\xed\xb8\x80", " ", "\n"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(p []string) string { return strings.Join(p, "") })
}

func TestUnitsAreThoseOfJavaScript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := wide().Draw(r, "s")
		u := utf16of(s)
		if units(s) != len(u) {
			r.Fatalf("%q has %d units, as a slice %d", s, units(s), len(u))
		}
		if utf8.ValidString(s) {
			if d := cmp.Diff(utf16.Encode([]rune(s)), u); d != "" && len(u) > 0 {
				r.Fatal(d)
			}
		}
	})
	for s, want := range map[string]int{"": 0, "é": 1, "😀": 2, "\xed\xa0\xbd": 1, "\xff": 1, "\xed\xa0": 2} {
		if got := units(s); got != want {
			t.Errorf("%q: %d units, want %d", s, got, want)
		}
	}
}

func TestBlanksAreThoseOfJavaScript(t *testing.T) {
	for _, r := range "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff" {
		if !isSpace(r) {
			t.Errorf("%U is none", r)
		}
	}
	for _, r := range "a\u0085\u200b\u180e\x00" {
		if isSpace(r) {
			t.Errorf("%U is one", r)
		}
	}
	if got := trim("\ufeff\u3000 a b\u00a0\n"); got != "a b" {
		t.Errorf("trimmed to %q", got)
	}
}

func TestNormalLines(t *testing.T) {
	for in, want := range map[string]string{
		"  a \t b  ": "a b", "“a” ‘b’": `"a" 'b'`, "a—b–c": "a-b-c", "wait…": "wait...", "a\u00a0\u3000b": "a b", "": "", " \t": "", "a": "a", "\ufeffa": "a",
	} {
		if got := normalLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("ab \t“–…\u00a0é")), 0, 20, -1).Draw(r, "s")
		once := normalLine(s)
		if normalLine(once) != once {
			r.Fatalf("%q becomes %q and then %q", s, once, normalLine(once))
		}
		// A text is the same whether its lines are joined before or after.
		lines := strings.Split(strings.ReplaceAll(s, "a", "\n"), "\n")
		if got, want := normalText(lines), normalLine(strings.Join(lines, "\n")); got != want {
			r.Fatalf("%q: %q, want %q", lines, got, want)
		}
	})
}

func TestLinesAndTheirEndsMakeTheText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "\n", "\r\n", "\r", " "})).Draw(r, "pieces"), "")
		d := newDocument(splitLines(s))
		d.ends = lineEnds(s)
		if len(d.lines) != len(d.ends) || d.text() != s {
			r.Fatalf("%q becomes %q", s, d.text())
		}
	})
}

func TestLineNumbersComeOff(t *testing.T) {
	for _, tt := range []struct{ in, plain, bare string }{
		{"1 | a\n2 | b", "a\nb", "a\nb"},
		{" 9 | a\n10 |   b", "a\n  b", "a\n  b"},
		{"1 | a\r\n2 | b", "a\r\nb", "a\r\nb"},
		{"| a", "| a", "a"},
		{"a | b", "a | b", "a | b"},
		{"1 || a", "1 || a", "1 || a"},
		{"1 | ", "", ""},
		{"x\n1 | a", "x\na", "x\na"},
		{"", "", ""},
	} {
		if got := terminal.StripNumbers(tt.in, false); got != tt.plain {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.plain)
		}
		if got := terminal.StripNumbers(tt.in, true); got != tt.bare {
			t.Errorf("bare %q: %q, want %q", tt.in, got, tt.bare)
		}
	}
	if n, rest, ok := numberPrefix("99999999999999999999 | x"); !ok || n != 1<<31-1 || rest != "x" {
		t.Errorf("%d %q %v", n, rest, ok)
	}
}

func TestEscapedMarkers(t *testing.T) {
	for in, want := range map[string]string{
		`\<<<<<<< x`: "<<<<<<< x", "a\n\\=======": "a\n=======", `\-------`: "-------", `\:start_line:1`: ":start_line:1", "a\r\\>>>>>>>": "a\r>>>>>>>", "\u2028\\=======": "\u2028=======",
		`a \=======`: `a \=======`, `\\=======`: `\\=======`, `\x`: `\x`, `\`: `\`, "": "",
	} {
		if got := unescape(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestSimilarity(t *testing.T) {
	for _, tt := range []struct {
		a, b    string
		atLeast float64
		want    float64
	}{
		{"", "", 0, 1}, {"abc", "abc", 0, 1}, {"abcd", "abce", 0, 0.75}, {"abc", "", 0, 0}, {"abcd", "ab", 0, 0.5}, {"abcd", "ab", 0.5, 0}, {"a", "xyz", 0, 0},
	} {
		if got := similarity(utf16of(tt.a), utf16of(tt.b), tt.atLeast); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b, c := utf16of(wide().Draw(r, "a")), utf16of(wide().Draw(r, "b")), utf16of(wide().Draw(r, "c"))
		if distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) || distance(a, a) != 0 {
			r.Fatal("that is no distance")
		}
	})
}

func TestInputValues(t *testing.T) {
	in := input{"t", []byte(`{"n":5,"s":"7","f":2.9,"neg":"-3","empty":"","null":null,"nulls":"null","bad":"x","big":1e300,"yes":true,"no":"false","one":1,"arr":[],"text":"a\u0000\ud83d","other":"o"}`)}
	for _, tt := range []struct {
		name string
		want int
		ok   bool
	}{
		{"n", 5, true}, {"s", 7, true}, {"f", 2, true}, {"neg", -3, true}, {"empty", 42, true}, {"null", 42, true}, {"nulls", 42, true}, {"missing", 42, true}, {"bad", 0, false}, {"big", 0, false}, {"arr", 0, false},
	} {
		got, err := in.number(42, tt.name)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("number %s: %d, %v", tt.name, got, err)
		}
	}
	for _, tt := range []struct {
		name     string
		want, ok bool
	}{
		{"yes", true, true}, {"no", false, true}, {"one", true, true}, {"missing", true, true}, {"null", true, true}, {"arr", false, false}, {"bad", false, false},
	} {
		got, err := in.boolean(true, tt.name)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("boolean %s: %v, %v", tt.name, got, err)
		}
	}
	if s, ok := in.text("missing", "null", "other"); s != "o" || !ok {
		t.Errorf("the first of several names: %q %v", s, ok)
	}
	if s, ok := in.text("text"); s != "a\x00\xed\xa0\xbd" || !ok {
		t.Errorf("text: %q %v", s, ok)
	}
	for name, want := range map[string]string{"missing": "is missing", "n": "is missing", "empty": "is empty"} {
		_, err := in.need(false, name)
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, want) {
			t.Errorf("need %s: %v", name, err)
		}
	}
	if s, err := in.need(true, "empty"); s != "" || err != nil {
		t.Errorf("empty where that is fine: %q %v", s, err)
	}
}
