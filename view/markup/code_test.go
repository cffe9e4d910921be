package markup

import (
	"github.com/roost-dev/roost/redact"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var span = regexp.MustCompile(`<span class="(\w+)">([^<]*)</span>`)

// seen are the coloured parts of a text, with their classes, and the text without the classes.
func seen(language, text string) (parts []string, whole string) {
	set := Setter{left: maxColoured}
	page := set.code(text, language)
	for _, found := range span.FindAllStringSubmatch(page, -1) {
		parts = append(parts, found[1]+" "+html.UnescapeString(found[2]))
	}
	return parts, html.UnescapeString(span.ReplaceAllString(page, "$2"))
}

func TestCodeIsToldApart(t *testing.T) {
	for _, tt := range []struct {
		language, text string
		want           []string
	}{
		{"Go", "func f() { // why\n\treturn \"a // b\" }", []string{"k func", "nf f", "c // why", "k return", `s "a // b"`}},
		{"python", "def f(x): # why\n    return 'it' + \"\"\"a\nb\"\"\"", []string{"k def", "nf f", "c # why", "k return", "s 'it'", "s \"\"\"a\nb\"\"\""}},
		{"json", `{"a": [1, -2.5e3, true, null]}`, []string{`s "a"`, "m 1", "m 2.5e3", "k true", "k null"}},
		{"sql", "select 1 -- why", []string{"k select", "m 1", "c -- why"}},
		{"html", `<p class="x">for<!-- not --></p>`, []string{"nt <p", "k class", `s "x"`, "k for", "c <!-- not -->", "nt </p"}},
		{"diff", "@@ -1 +1 @@\n-old\n+new\n same", []string{"gh @@ -1 +1 @@", "gd -old", "gi +new"}},
		{"js", "forward(format)", []string{"nf forward"}}, // a keyword is a whole word
	} {
		got, whole := seen(tt.language, tt.text)
		if d := cmp.Diff(tt.want, got); d != "" || strings.TrimSuffix(whole, "\n") != tt.text {
			t.Errorf("%s: got %s\n%q, want d = \"\" and strings.TrimSuffix(whole, \"\\n\") = tt.text",
				tt.language, d, whole)
		}
	}
}

// Colouring never changes, adds or loses a character, in any language.
func TestColouringKeepsTheText(t *testing.T) {
	names := []string{"go", "python", "sql", "html", "diff"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.StringN(0, 6, -1), rapid.SampledFrom([]string{
			"\"", "'", "`", "/*", "*/", "//", "#", "--", "<!--", "-->", "<a", "\"\"\"", "\n", "\\", "0x", "1e", "func ", "f(", "+", "@@",
		})), 0, 30).Draw(t, "pieces"), "")
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\r", "")
		_, whole := seen(rapid.SampledFrom(names).Draw(t, "language"), text)
		if strings.TrimRight(whole, "\n") != strings.TrimRight(text, "\n") {
			t.Fatalf("%q became %q", text, whole)
		}
	})
}

// testSetter sets what exported pages do, without masks.
func testSetter() *Setter { return New(Options{Clean: redact.Terminal}) }
