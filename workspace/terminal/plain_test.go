package terminal

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"colours", "\x1b[31mred\x1b[0m and \x1b[1;38;5;208mbold\x1b[m", "red and bold"},
		{"cursor movement", "a\x1b[2K\x1b[1Gb\x1b[?25l\x1b[10;20H", "ab"},
		{"a private sequence", "\x1b[?2004hx\x1b[>4;2m", "x"},
		{"an intermediate byte", "\x1b[4 qx", "x"},
		{"a title ended by BEL", "\x1b]0;my title\ax", "x"},
		{"a title ended by ST", "\x1b]0;my title\x1b\\x", "x"},
		{"a link", "\x1b]8;;http://a/b\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"an image protocol", "\x1bPq#0;2;0;0;0\x1b\\x", "x"},
		{"other control strings", "\x1b_a\x1b\\\x1b^b\x1b\\\x1bXc\x1b\\x", "x"},
		{"two bytes", "\x1b7save\x1b8\x1b=\x1b>\x1bM", "save"},
		{"a character set", "\x1b(Bx\x1b)0y", "xy"},
		{"an escape before an escape", "\x1b\x1b[31mx", "x"},
		{"control characters", "a\x00b\x01c\x7fd\x0e\x0f", "abcd"},
		{"what stays", "a\tb\r\nc\bd", "a\tb\r\nc\bd"},
		{"C1 controls in UTF-8", "a\u009b31mb\u0085c", "a31mbc"},
		{"letters near C1", "\u00a0\u00bf\u00c0é", "\u00a0\u00bf\u00c0é"},
		{"cut off after ESC", "x\x1b", "x"},
		{"cut off in a sequence", "x\x1b[38;5", "x"},
		{"cut off in a title", "x\x1b]0;half", "x"},
		{"a title that nobody ends keeps the next line", "\x1b]0;half\nnext", "\nnext"},
		{"a sequence that nobody ends keeps the next line", "\x1b[31\nnext", "\nnext"},
		{"not text", "\xff\xfe", "\xff\xfe"},
		{"nothing", "", ""},
	} {
		if got := Plain(tt.in); got != tt.want {
			t.Errorf("%s: %q becomes %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// Text that was decorated comes out undecorated, wherever the sequences stand.
func TestPlainTakesDecorationOnly(t *testing.T) {
	sequences := rapid.SampledFrom([]string{"\x1b[0m", "\x1b[1;31m", "\x1b[2K", "\x1b]0;t\a", "\x1b]8;;u\x1b\\", "\x1b(B", "\x1b7", "\x00", "\a", "\x7f", "\u0090"})
	words := rapid.SampledFrom([]string{"word", " ", "\n", "\t", "é", "😀", "[31m", "0;t", "\r\n"})
	rapid.Check(t, func(r *rapid.T) {
		var in, want strings.Builder
		for range rapid.IntRange(0, 20).Draw(r, "n") {
			if rapid.Bool().Draw(r, "decorate") {
				in.WriteString(sequences.Draw(r, "sequence"))
				continue
			}
			w := words.Draw(r, "word")
			in.WriteString(w)
			want.WriteString(w)
		}
		got := Plain(in.String())
		if got != want.String() {
			r.Fatalf("%q becomes %q, want %q", in.String(), got, want.String())
		}
		if Plain(got) != got {
			r.Fatalf("%q is not plain", got)
		}
	})
}

// Hostile bytes: the result holds no control character that acts, it is no longer
// than the input, and takes no byte of a character apart.
func FuzzPlain(f *testing.F) {
	f.Add("\x1b[\x1b]\x1bP\u009b")
	f.Add("a\x1b]0;\x1b")
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		for _, c := range []byte(got) {
			if c < 0x20 && !strings.ContainsRune("\n\t\r\b", rune(c)) || c == 0x7f {
				t.Errorf("%q leaves %#x", s, c)
			}
		}
		if len(got) > len(s) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q becomes %q", s, got)
		}
		if strings.HasPrefix(s, "\x1b") {
			if n := Escape(s); n < 1 || n > len(s) {
				t.Errorf("a sequence of %d bytes in %q", n, s)
			}
		}
	})
}

// The length of a sequence is that of its whole, and of what came of it where its end is missing.
func TestEscape(t *testing.T) {
	for in, want := range map[string]int{
		"\x1b": 1, "\x1bc text": 2, "\x1b F text": 3, "\x1b(B text": 3, "\x1b(": 2, "\x1b#\n": 2,
		"\x1b[31m text": 5, "\x1b[31": 4, "\x1b[3\ntext": 3, "\x1b[3 q text": 5, "\x1b[3\x1b[m": 3,
		"\x1b]0;title\atext": 10, "\x1b]0;title\x1b\\text": 11, "\x1b]0;title\ntext": 9, "\x1b]0;\x1b[m": 4, "\x1bPq": 3,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestOverwriteLines(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"longer over shorter", "ab\rxyz", "xyz"},
		{"shorter over longer", "abcd\rxy", "xycd"},
		{"as long", "ab\rxy", "xy"},
		{"a return at the end", "ab\r", "ab"},
		{"a return at the start", "\rab", "ab"},
		{"several at once", "ab\r\r\rx", "xb"},
		{"each line for itself", "aa\rb\ncc\rd", "ba\ndc"},
		{"windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"blanks wipe", "100%\r    \rdone", "done"},
		{"other letters", "日本語\ré", "é本語"},
		{"emoji over emoji", "🚀🚀\r😀", "😀🚀"},
		{"emoji over letters", "abc\r😀", "😀c"},
		{"a letter over half an emoji", "😀b\rx", "x b"},
		{"nothing", "", ""},
	} {
		if got := Overwrite(tt.in); got != tt.want {
			t.Errorf("%s: %q becomes %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// The judge is a row of cells in which each character takes its place.
func TestOverwriteAgainstCells(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abcé日 \r\n")), 0, 40, -1).Draw(r, "s")
		var lines []string
		for _, line := range strings.Split(s, "\n") {
			var cells []rune
			at := 0
			for _, c := range line {
				if c == '\r' {
					at = 0
					continue
				}
				if at == len(cells) {
					cells = append(cells, c)
				} else {
					cells[at] = c
				}
				at++
			}
			lines = append(lines, string(cells))
		}
		if got, want := Overwrite(s), strings.Join(lines, "\n"); got != want {
			r.Fatalf("%q becomes %q, want %q", s, got, want)
		}
	})
}

func TestEraseAgainstAStack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abé日\n\b\b")), 0, 40, -1).Draw(r, "s")
		var stack []rune
		for _, c := range s {
			switch {
			case c != '\b':
				stack = append(stack, c)
			case len(stack) > 0:
				stack = stack[:len(stack)-1]
			}
		}
		if got := Erase(s); got != string(stack) {
			r.Fatalf("%q becomes %q, want %q", s, got, string(stack))
		}
	})
}

func ExamplePlain() {
	fmt.Println(Plain("\x1b[32mok\x1b[0m 12 tests\a"))
	// Output: ok 12 tests
}

func ExampleErase() {
	fmt.Println(Erase("tpyo\b\b\bypo"))
	// Output: typo
}
