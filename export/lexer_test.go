package export

import (
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seen are the coloured parts of a text, with their kinds.
func seen(t interface{ Fatal(...any) }, language, text string) (parts []string, whole string) {
	it, err := chroma.Coalesce(lexerOf(language)).Tokenise(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for token := it(); token != chroma.EOF; token = it() {
		b.WriteString(token.Value)
		if token.Type != chroma.Text {
			parts = append(parts, token.Type.String()+" "+strings.TrimSpace(token.Value))
		}
	}
	return parts, b.String()
}

func TestCodeIsToldApart(t *testing.T) {
	for _, tt := range []struct {
		language, text string
		want           []string
	}{
		{"Go", "func f() { // why\n\treturn \"a // b\" }", []string{"Keyword func", "NameFunction f", "Comment // why", "Keyword return", `LiteralString "a // b"`}},
		{"python", "def f(x): # why\n    return 'it' + \"\"\"a\nb\"\"\"", []string{"Keyword def", "NameFunction f", "Comment # why", "Keyword return", "LiteralString 'it'", "LiteralString \"\"\"a\nb\"\"\""}},
		{"json", `{"a": [1, -2.5e3, true, null]}`, []string{`LiteralString "a"`, "LiteralNumber 1", "LiteralNumber 2.5e3", "Keyword true", "Keyword null"}},
		{"sql", "select 1 -- why", []string{"Keyword select", "LiteralNumber 1", "Comment -- why"}},
		{"html", `<p class="x">for<!-- not --></p>`, []string{"NameTag <p", "Keyword class", `LiteralString "x"`, "Keyword for", "Comment <!-- not -->", "NameTag </p"}},
		{"diff", "@@ -1 +1 @@\n-old\n+new\n same", []string{"GenericHeading @@ -1 +1 @@", "GenericDeleted -old", "GenericInserted +new"}},
		{"js", "forward(format)", []string{"NameFunction forward"}}, // a keyword is a whole word
	} {
		got, whole := seen(t, tt.language, tt.text)
		if d := cmp.Diff(tt.want, got); d != "" || strings.TrimSuffix(whole, "\n") != tt.text {
			t.Errorf("%s: got %s\n%q, want d = \"\" and strings.TrimSuffix(whole, \"\\n\") = tt.text",
				tt.language, d, whole)
		}
	}
	if lexerOf("brainfuck") != nil || lexerOf("") != nil {
		t.Error("a language that nobody described has colours")
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
		_, whole := seen(t, rapid.SampledFrom(names).Draw(t, "language"), text)
		if strings.TrimRight(whole, "\n") != strings.TrimRight(text, "\n") {
			t.Fatalf("%q became %q", text, whole)
		}
	})
}
