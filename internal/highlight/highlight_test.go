package highlight_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/highlight"
)

var letters = map[highlight.Kind]string{
	highlight.Comment: "comment", highlight.String: "string", highlight.Number: "number", highlight.Keyword: "keyword",
	highlight.Call: "call", highlight.Tag: "tag", highlight.Hunk: "hunk", highlight.Added: "added", highlight.Removed: "removed",
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		language, lines string
		want            []string
	}{
		{"Go", "func f() { // why\n\treturn \"a // b\" }", []string{"keyword func", "call f", "comment // why", "keyword return", `string "a // b"`}},
		{"js", "forward(format)", []string{"call forward"}}, // a keyword is a whole word
		{"ts", "a /* b\nc */ x7 0x1F 1_000", []string{"comment /* b\nc */", "number 0x1F", "number 1_000"}},
		{"go", "s := `a\nb` + 'c'", []string{"string `a\nb`", "string 'c'"}},
		{"rust", "impl<'a> X", []string{"keyword impl"}},
		{"json", `{"a": [1, -2.5e3, true, null]}`, []string{`string "a"`, "number 1", "number 2.5e3", "keyword true", "keyword null"}},
		{"python", "def f(x): # why\n    return 'it' + f'x' + \"\"\"a\nb\"\"\"", []string{
			"keyword def", "call f", "comment # why", "keyword return", "string 'it'", "string 'x'", "string \"\"\"a\nb\"\"\"",
		}},
		{"sh", `echo "a" ${x#y} it's # why`, []string{"keyword echo", `string "a"`, "comment # why"}},
		{"sql", "select 1 FROM t -- why", []string{"keyword select", "number 1", "keyword FROM", "comment -- why"}},
		{"html", `<p class="x">for<!-- not --></p>`, []string{"tag <p", "keyword class", `string "x"`, "keyword for", "comment <!-- not -->", "tag </p"}},
		{"go", "a<b", nil}, // no tag
		{"go", "c.until + until.new(x)", []string{"keyword until", "call new"}},
		{"c", `x = "a`, nil},
		{"c", `"a\"b" + "c"`, []string{`string "a\"b"`, `string "c"`}},
		{"diff", "@@ -1 +1 @@\n-old\n+new\n same\n--- a\n", []string{"hunk @@ -1 +1 @@", "removed -old", "added +new", "hunk --- a"}},
		{"sh", `echo \"a "b"`, []string{"keyword echo", `string "b"`}},
		{"patch", "+\n\n-", []string{"added +", "removed -"}},
	} {
		var got []string
		for _, p := range highlight.New(tt.language).Pieces(tt.lines) {
			if p.Kind != highlight.Text {
				got = append(got, letters[p.Kind]+" "+p.Text)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s %q: -want +got\n%s", tt.language, tt.lines, d)
		}
	}
	for _, name := range []string{"", " ", "brainfuck", "py python", "go "} {
		if highlight.New(name) != nil {
			t.Errorf("New(%q): got a language, want nil", name)
		}
	}
}

// A block that is read line by line has the pieces of the whole, and no character changes.
func TestLinesOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"\"", "'", "`", "/*", "*/", "//", "#", "--", "<!--", "-->", "<a", "\"\"\"", "\n", "\\", "0x", "1e", "func ", "f(", "+", "@@", "é",
		})), 0, 30).Draw(t, "pieces"), "")
		language := rapid.SampledFrom([]string{"go", "python", "sql", "html", "diff"}).Draw(t, "language")
		flat := func(list []highlight.Piece) (whole string, kinds []highlight.Kind) {
			for _, p := range list {
				whole += p.Text
				for _, b := range []byte(p.Text) {
					if b != '\n' {
						kinds = append(kinds, p.Kind)
					}
				}
			}
			return whole, kinds
		}
		whole, kinds := flat(highlight.New(language).Pieces(text))
		if whole != text {
			t.Fatalf("%q became %q", text, whole)
		}
		var lines []highlight.Piece
		code := highlight.New(language)
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, code.Pieces(line)...)
		}
		if _, got := flat(lines); !cmp.Equal(kinds, got) {
			t.Fatalf("%q line by line: got %v, want %v", text, got, kinds)
		}
	})
}
