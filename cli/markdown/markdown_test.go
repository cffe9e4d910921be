package markdown

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/cli/theme"
)

var update = flag.Bool("update", false, "write the golden files")

func themed(name string) theme.Theme {
	return theme.Of(name, func(v string) string { return map[string]string{"TERM": "xterm-256color"}[v] })
}

// The golden files show a reply as a terminal gets it: escape sequences are written as \e.
func TestGolden(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/reply.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dark", "light", "none"} {
		for _, width := range []int{40, 80, 120} {
			lines := Render(string(source), Options{Width: width, Theme: themed(name), Links: name == "light"})
			got := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", `\e`)
			file := filepath.Join("testdata", fmt.Sprintf("reply.%s.%d.txt", name, width))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source, want string
		width              int
	}{
		{"words are not cut", "you can type while it works", "you can\ntype while\nit works", 10},
		{"a word longer than the line", "go abcdefghijklmnop on", "go\nabcdefghij\nklmnop on", 10},
		{"a soft break is a blank", "a\nb", "a b", 0},
		{"a hard break", "a  \nb\\\nc<br>d", "a\nb\nc\nd", 0},
		{"emphasis", "**a** *b* ***c*** __d__ _e_ **a *b* c**", "a b c d e a b c", 0},
		{"no emphasis", "2 * 3 * 4, snake_case_x, **open, a* b", "2 * 3 * 4, snake_case_x, **open, a* b", 0},
		{"escapes", `\*a\* \# \q`, `*a* # \q`, 0},
		{"a code span keeps its marks without colours", "`` a ` b ``", "`a ` b`", 0},
		{"an open code span", "a `b c", "a `b c", 0},
		{"entities", "&lt;&amp;&#65;&nope;", "<&A&nope;", 0},
		{"a link", "[text](https://a.b/c \"title\")", "text (https://a.b/c)", 0},
		{"a link to itself", "[https://a.b](https://a.b/) <https://c.d>", "https://a.b https://c.d", 0},
		{"a link that pretends", "[https://good.example](https://evil.example)", "https://good.example (https://evil.example)", 0},
		{"no links", "[x] [y][z] a[1](", "[x] [y][z] a[1](", 0},
		{"an image", "![a cat](cat.png)!", "[image: a cat]!", 0},
		{"headings", "# A\ntext\n## B ##\n#hash", "# A\ntext\n\n## B\n#hash", 0},
		{"lists", "- a\n  - b\n    * c\n- d\n\n\n- e", "• a\n  ◦ b\n    ▪ c\n• d\n\n• e", 0},
		{"numbers count on", "1. a\n1. b\n   more\n5. c\n\ntext\n7. d", "1. a\n2. b more\n3. c\n\ntext 7. d", 0},
		{"a lazy line", "- a\nb\n\nc", "• a b\n\nc", 0},
		{"tasks", "- [ ] a\n- [x] b", "☐ a\n☑ b", 0},
		{"an empty item", "-\n- a", "•\n• a", 0},
		{"items wrap under their text", "10. aaaa bbbb cccc", "10. aaaa\n    bbbb\n    cccc", 10},
		{"quotes", "> a\n> b\n> > c\n\nd", "│ a b\n│ │ c\n\nd", 0},
		{"a list in a quote", "> - a\n>   b", "│ • a b", 0},
		{"a rule", "a\n\n---\n- - -", "a\n\n──────────\n──────────", 10},
		{"code", "```go\nfunc a() {\n\n\tb()\n```\nx", "  func a() {\n\n      b()\nx", 0},
		{"code in an item", "1. a\n   ```sh\n   ls\n   ```\n2. b", "1. a\n     ls\n2. b", 0},
		{"an open block", "~~~\na", "  a", 0},
		{"indented code", "a\n\n    b  c\n", "a\n\n  b  c", 0},
		{"a long line of code", "```\nabcdefghijklmnop\n```", "abcdefghij\n↪ klmnop", 10},
		{"a table", "| a | b |\n|--:|:-:|\n| 1 | 22 |\n| 333 | 4444 |\ntext", "  a │  b\n────┼─────\n  1 │  22\n333 │ 4444\ntext", 0},
		{"a table that is none", "| a |\n| b |", "| a | | b |", 0},
		{"a table without room", "| a | bbbbbbb | ccccccc |\n|-|-|-|\n| x | yyyyyyyy | zzzzzzzz |", "a: x\nbbbbbbb:\nyyyyyyyy\nccccccc:\nzzzzzzzz", 12},
		{"cells after the last column", "| a | b |\n|-|-|\n| ls | wc | counts |\n| x |", "a  │ b\n───┼────────────\nls │ wc | counts\nx  │", 0},
		{"a row without cells in a table without room", "| a | bbbbbbb | ccccccc |\n|-|-|-|\n| x |", "a: x", 12},
		{"wide characters", "日本語テキスト、です", "日本語テキ\nスト、です", 10},
		{"emoji and combining marks", "👍👍 e\u0301e\u0301 👍👍👍", "👍👍 e\u0301e\u0301 👍\n👍👍", 10},
		{"escape sequences", "a\x1b[31mb\x1b]0;x\x07c\rd &#27;[2J", "abc d [2J", 0},
	} {
		if got := strings.Join(Render(c.source, Options{Width: c.width}), "\n"); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s\n(%q)", c.name, got, c.want, got)
		}
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	o := Options{Theme: theme.Basic(), Links: true}
	for _, c := range []struct{ name, source, want string }{
		{"a phrase", "**a b**", "\x1b[1ma\x1b[0m\x1b[1m b\x1b[0m"},
		{"code", "`x`", "\x1b[36mx\x1b[0m"},
		{"struck", "~~x~~", "\x1b[9mx\x1b[0m"},
		{"a link", "[x](https://a.b/c)", "\x1b]8;id=1;https://a.b/c\x07\x1b[4mx\x1b[0m\x1b]8;;\x07 \x1b[2m(a.b)\x1b[0m"},
		{"a link of a kind nobody clicks", "[x](javascript:a)", "\x1b[4mx\x1b[0m \x1b[2m(javascript:a)\x1b[0m"},
		{"a user's name in front of a host", "[x](https://good.example@a.b/c)",
			"\x1b]8;id=1;https://good.example@a.b/c\x07\x1b[4mx\x1b[0m\x1b]8;;\x07 \x1b[2m(a.b)\x1b[0m"},
		{"words of a language", "```go\nif x := \"a\"; y { // c\n```",
			"  \x1b[1mif\x1b[0m x := \x1b[32m\"a\"\x1b[0m; y { \x1b[2m// c\x1b[0m"},
		{"a comment of two lines", "```go\na /* b\nc */ 7\n```", "  a \x1b[2m/* b\x1b[0m\n  \x1b[2mc */\x1b[0m \x1b[33m7\x1b[0m"},
		{"a string of two lines", "```py\n\"\"\"a\nb\"\"\" # c\n```", "  \x1b[32m\"\"\"a\x1b[0m\n  \x1b[32mb\"\"\"\x1b[0m \x1b[2m# c\x1b[0m"},
		{"an unknown language", "```xyz\nif \"a\" 7\n```", "  if \"a\" 7"},
		{"a difference", "```diff\n-a\n+b\n c\n```", "  \x1b[31m-a\x1b[0m\n  \x1b[32m+b\x1b[0m\n   c"},
	} {
		if got := strings.Join(Render(c.source, o), "\n"); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
	dim := Options{Theme: theme.Basic(), Role: theme.Dim, Indent: 2}
	if got, want := strings.Join(Render("a `b`", dim), "\n"), "  \x1b[2ma\x1b[0m \x1b[36mb\x1b[0m"; got != want {
		t.Errorf("dim: got %q, want %q", got, want)
	}
}

// Words are shown as soon as nothing can change them.
func TestWordsComeEarly(t *testing.T) {
	t.Parallel()
	s := NewStream(Options{Width: 20})
	for _, c := range []struct{ delta, lines, rest string }{
		{"Hel", "", ""},
		{"lo wor", "", "Hello"},
		{"ld and **bold", "", "Hello world and"},
		{" text** goes", "Hello world and bold", "text"},
		{" on\n\n- an it", "text goes on\n", "• an"},
		{"em\n```\nco", "• an item", ""},
		{"de\n", "  code", ""},
	} {
		lines := strings.Join(s.Write(c.delta), "\n")
		if lines != c.lines || s.Rest() != c.rest {
			t.Errorf("after %q: got %q and %q, want %q and %q", c.delta, lines, s.Rest(), c.lines, c.rest)
		}
	}
}

// check takes a text apart at the given places, and proves what a Stream promises.
func check(source string, o Options, cuts func(left int) int) error {
	whole := Render(source, o)
	width := max(o.Width, narrowest)
	if o.Width == 0 {
		width = 80
	}
	for _, line := range whole {
		if n := ansi.StringWidthWc(line); n > width && !o.Whole {
			return fmt.Errorf("%q takes %d columns, want at most %d", line, n, width)
		}
		bare := line
		if o.Theme.On() || o.Links {
			bare = ansi.Strip(line)
		}
		for i, r := range bare {
			if unicode.IsControl(r) || r == utf8.RuneError && !strings.HasPrefix(bare[i:], "\ufffd") {
				return fmt.Errorf("%U stands in %q", r, line)
			}
		}
	}
	s := NewStream(o)
	var got []string
	rest := ""
	take := func(lines []string) error {
		for i, line := range append(lines[:len(lines):len(lines)], s.Rest()) {
			if !strings.HasPrefix(line, rest) {
				return fmt.Errorf("%q was shown, and %q came", rest, line)
			}
			rest = ""
			if i == len(lines) {
				rest = line
			}
		}
		got = append(got, lines...)
		return nil
	}
	for left := source; left != ""; {
		n := cuts(len(left))
		if err := take(s.Write(left[:n])); err != nil {
			return err
		}
		left = left[n:]
	}
	if err := take(s.Close()); err != nil {
		return err
	}
	if s.Rest() != "" {
		return fmt.Errorf("%q is left", s.Rest())
	}
	if diff := cmp.Diff(whole, got); diff != "" {
		return fmt.Errorf("whole and stream differ (-whole +stream):\n%s", diff)
	}
	return nil
}

// A command of a manual is copied from the screen: no line break gets into it, also in a list or a quote.
func TestCodeThatStaysWhole(t *testing.T) {
	t.Parallel()
	source := "words that are wrapped at their width\n\n```sh\nroost run --detach --max-cost 1.50\n```\n\n- item\n\n  ```\n  roost wait ID && roost show ID\n  ```\n"
	want := "words that are\nwrapped at their\nwidth\n\n  roost run --detach --max-cost 1.50\n\n• item\n\n    roost wait ID && roost show ID"
	if got := strings.Join(Render(source, Options{Width: 20, Whole: true}), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Hostile text takes time in proportion to its length, and a table memory in proportion to its text.
func TestHostileTextTakesLittle(t *testing.T) {
	t.Parallel()
	const size = 300 << 10
	for _, c := range []struct{ before, again string }{
		{"", "<"},
		{"", "<b "},
		{"", "<a>b</a>"},
		{"", "*a _b ~~c [d `e "},
		{"```go\n", `\"`},
		{strings.Repeat("|a", 2000) + "\n" + strings.Repeat("|-", 2000) + "\n", "|\n"},
	} {
		begun := time.Now()
		lines := Render(c.before+strings.Repeat(c.again, size/len(c.again)), Options{})
		if took := time.Since(begun); took > 5*time.Second || len(lines) > size {
			t.Errorf("many %q: got %d lines in %v, want fewer than %d in less than 5 s", c.again, len(lines), took, size)
		}
	}
	for _, again := range []string{"\u0301", "\ufe0f", " ", "\t"} { // none of them ends a word
		begun := time.Now()
		s := NewStream(Options{})
		s.Write("x")
		for range size / len(again) {
			s.Write(again)
		}
		if lines := append(s.Write("\ny"), s.Close()...); time.Since(begun) > 5*time.Second || len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], "y") {
			t.Errorf("many %q, one by one: got %.100q after %v, want a last line with y in less than 5 s", again, lines, time.Since(begun))
		}
	}
}

// A terminal joins skin tones that follow each other into one character, as wide as all of them.
func TestCellsOfWideCharacters(t *testing.T) {
	const tones = "🏻🏼🏽🏾🏿"
	for _, width := range []int{10, 20, 40, 80} {
		lines := Render("| tones | x |\n|-|-|\n| "+tones+tones+" | y |", Options{Width: width})
		for _, line := range append(lines, Render(tones+tones+tones+"\n\n    "+tones+tones+tones, Options{Width: width})...) {
			if n := ansi.StringWidthWc(line); n > width {
				t.Errorf("at width %d: %q takes %d columns", width, line, n)
			}
		}
		if got := strings.Join(lines, "\n"); !strings.Contains(got, "🏿") || !strings.Contains(got, "y") {
			t.Errorf("at width %d: got %q, want all characters", width, got)
		}
	}
}

// pieces are what Markdown is made of, and what is hostile.
var pieces = []string{"a", "bc ", "word", " ", "  ", "\n", "\n\n", "    ", "\t", "*", "**", "_", "`", "```", "~~~", "~~", "# ", "## ", "- ", "+ ", "1. ", "7) ",
	"> ", ">", "|", "| a ", "|-|", "|:-:|", "---", "***", "[", "]", "](", "(", ")", "![", "<", ">", "<br>", "https://a.b/", "http", "h", "&amp;", "&", ";", "&#27;",
	"\\", "!", ".", ":", "[ ] ", "[x] ", "日本", "。", "👩‍👩‍👧", "e\u0301", "\ufe0f", "\u200d", "\x1b[31m", "\x1b", "[2J", "\x1b]8;;x\x07", "\r", "\x00", "\xff", "\u202e", "\u2028", "\u0085", "\u3164",
	"/*", "*/", "\"", "'", "go", "func ", "//", strings.Repeat("long", 30)}

func TestStreamEqualsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
		o := Options{
			Width:  rapid.SampledFrom([]int{0, 1, 10, 13, 40, 80}).Draw(t, "width"),
			Theme:  themed(rapid.SampledFrom([]string{"none", "dark"}).Draw(t, "theme")),
			Links:  rapid.Bool().Draw(t, "links"),
			Indent: rapid.SampledFrom([]int{0, 2}).Draw(t, "indent"),
			Whole:  rapid.Bool().Draw(t, "whole"),
		}
		if err := check(source, o, func(left int) int { return rapid.IntRange(1, min(left, 9)).Draw(t, "n") }); err != nil {
			t.Fatalf("%q: %v", source, err)
		}
	})
}

func FuzzStream(f *testing.F) {
	source, err := os.ReadFile("testdata/reply.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(source), uint8(7), uint8(40))
	for i := range len(pieces) - 3 {
		f.Add(strings.Join(pieces[i:i+3], ""), uint8(1), uint8(10))
	}
	f.Add("日本。👩👩\u2029\u200d👧", uint8(1), uint8(10))
	f.Fuzz(func(t *testing.T, source string, step, width uint8) {
		o := Options{Width: int(width), Theme: themed("dark"), Links: step%2 == 0}
		if err := check(source, o, func(left int) int { return min(left, int(step)+1) }); err != nil {
			t.Error(err)
		}
	})
}
