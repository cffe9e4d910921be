package picker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		columns    int
		want       []string
	}{
		{"at words", "one two three", 8, []string{"one two", "three"}},
		{"a word that is too long", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"wide characters", "日本語の題名", 5, []string{"日本", "語の", "題名"}},
		{"other sequences go", "a\x1b[2Jb\x1b]0;title\x07c\x1b[5;3Hd\u009be", 20, []string{"abcde"}},
		{"a sequence without an end", "a\x1b[31", 20, []string{"a"}},
		{"joiners and tones go, for terminals do not agree about them", "👩‍👧 👍🏽 ❤️", 20, []string{"👩👧 👍 ❤"}},
		{"tabs", "a\tb", 20, []string{"a    b"}},
		{"no room", "a", 0, nil},
	} {
		if diff := cmp.Diff(tt.want, wrap(tt.text, tt.columns)); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.name, diff)
		}
	}
}

// A long text that was pasted is drawn at once: only its end is shown.
func TestALongTypedLine(t *testing.T) {
	m := New(t.Context(), &counter{}, Options{})
	defer m.Close()
	m.width, m.field = 40, &field{text: strings.Repeat("some words ", 2000) + "the 終り"}
	begun := time.Now()
	got := m.typedLine()
	if want := ">  words some words some words the 終り"; got != want || time.Since(begun) > time.Second {
		t.Errorf("got %q after %v, want %q within a second", got, time.Since(begun), want)
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abc", 5, "abc  "}, {"abcdef", 5, "abcd…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日… "}, {"日", 1, "…"}, {"a", 0, ""},
	} {
		if got := fit(tt.text, tt.columns); got != tt.want || width(got) != tt.columns {
			t.Errorf("fit(%q, %d) = %q of %d columns, want %q", tt.text, tt.columns, got, width(got), tt.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("a \x1b[31mred\x1b[0m 日本 \x1b]0;x\x07", 7)
	f.Add(" 000", 2)
	f.Add("\x1b[\x1b[1m\x1b[;;mx\u202e\u009b2J👩‍👧", 2)
	f.Add("\x1b[1m\xfa〮〮x", 2) // marks that take two columns each
	f.Fuzz(func(t *testing.T, text string, columns int) {
		columns = min(max(columns, 2), 200) // a wide character needs two
		for _, line := range wrap(text, columns) {
			if width(line) > columns {
				t.Fatalf("%d columns, want at most %d: %q", width(line), columns, line)
			}
			if strings.ContainsAny(line, "\n\r\t\a\x1b\u009b\u202e\u2028") {
				t.Fatalf("a control character in %q", line)
			}
		}
	})
}
