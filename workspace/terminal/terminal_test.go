package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/conformance"
)

// lone says whether a string holds half a pair (in its three-byte form).
func lone(s string) bool { return !utf8.ValidString(s) }

// addNumbers is Roo's function of a whole text: each line is numbered and ended. An empty
// text that starts at line 1 is an empty file, which has no lines.
func addNumbers(s string, start int) string {
	if s == "" && start == 1 {
		return ""
	}
	return Number(strings.Split(strings.TrimSuffix(s, "\n"), "\n"), start) + "\n"
}

func TestVectorsTerminalOutput(t *testing.T) {
	conformance.Run(t, "terminal_output", func(t *testing.T, c conformance.Case) (choice bool) {
		in, want := c.Input.Str("text"), c.Want.Str("text")
		var got string
		switch fn := c.Input.Str("fn"); fn {
		case "truncate":
			got = Truncate(in, int(c.Input.Int("line_limit", 0)), int(c.Input.Int("char_limit", 0)))
		case "rle":
			got = FoldRepeats(in)
		case "carriage_returns":
			got = Overwrite(in)
		case "backspaces":
			got = Erase(in)
		case "add_line_numbers":
			got = addNumbers(in, int(c.Input.Int("start", 1)))
		case "strip_line_numbers":
			got = StripNumbers(in, c.Input.Bool("aggressive", false))
		default:
			t.Fatalf("unknown function %q", fn)
		}
		own := ownOutput(c.Input.Str("fn"), in, want)
		if got != own {
			t.Error(cmp.Diff(own, got))
		}
		return own != want
	})
}

var omitted = regexp.MustCompile(`\[\.\.\.(\d+) characters omitted`)

// ownOutput is what is wanted where the original makes halves out of whole pairs. By choice
// a half becomes a blank in a line that is overwritten; elsewhere it goes, and where the
// middle is cut out it counts as omitted.
func ownOutput(fn, in, roos string) string {
	if lone(in) {
		return roos
	}
	if fn == "carriage_returns" {
		return conformance.ReplaceHalves(roos, " ")
	}
	own := conformance.ReplaceHalves(roos, "")
	if halves := (len(roos) - len(own)) / 3; fn == "truncate" && halves > 0 {
		own = omitted.ReplaceAllStringFunc(own, func(s string) string {
			n, _ := strconv.Atoi(omitted.FindStringSubmatch(s)[1])
			return fmt.Sprintf("[...%d characters omitted", n+halves)
		})
	}
	return own
}

// The original's results that hold halves, worked out by hand.
func TestOwnOutput(t *testing.T) {
	const high, low = "\xed\xa0\xbd", "\xed\xba\x80"
	for _, tt := range []struct{ fn, in, roos, got string }{
		{"truncate", "🚀bcdefgh", high + "\n[...4 characters omitted...]\nefgh", Truncate("🚀bcdefgh", 0, 5)},
		{"truncate", "abcd🚀xyz", "a\n[...4 characters omitted...]\n" + low + "xyz", Truncate("abcd🚀xyz", 0, 5)},
		{"backspaces", "a🚀\bx", "a" + high + "x", Erase("a🚀\bx")},
		{"carriage_returns", "🚀b\rx", "x" + low + "b", Overwrite("🚀b\rx")},
		{"backspaces", high + "ab\b", high + "a", Erase(high + "ab\b")},
	} {
		if own := ownOutput(tt.fn, tt.in, tt.roos); own != tt.got {
			t.Errorf("%s of %q: %q, want %q", tt.fn, tt.in, tt.got, own)
		}
	}
}

func TestHalvesOfPairs(t *testing.T) {
	tests := []struct{ name, got, want string }{
		{"cut inside the first pair", Truncate("🚀bcdefgh", 0, 5), "\n[...5 characters omitted...]\nefgh"},
		{"cut inside a later pair", Truncate("abcd🚀xyz", 0, 5), "a\n[...5 characters omitted...]\nxyz"},
		{"erased", Erase("a🚀\b"), "a"},
		{"erased by its width", Erase("a🚀\b\b"), "a"},
		{"erased by its width, then more", Erase("a🚀\b\bx"), "ax"},
		{"erased, then more", Erase("a🚀\b\b\bx"), "x"},
		{"erased in two runs", Erase("ab🚀\n\b\b\n\b\b\b"), "a"},
		{"halves in the middle", Erase("a🚀\bb🚀\b🚀\b"), "ab"},
		{"overwritten", Overwrite("🚀b\rx"), "x b"},
		{"nothing to erase", Erase("\b\bab\b\b\bc"), "c"},
		{"lone ones stay", Erase("\xed\xa0\xbdab\b"), "\xed\xa0\xbda"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestStripLine(t *testing.T) {
	tests := []struct {
		in, plain, aggressive string
	}{
		{"1 | a", "a", "a"},
		{"1 || a", "1 || a", "1 || a"},
		{"1  | a", "a", "1  | a"},
		{"1| a", "1| a", "1| a"},
		{"1 |a", "a", "1 |a"},
		{"| a", "| a", "a"},
		{"  22 |  b", " b", " b"},
		{"1 |", "", "1 |"},
		{"1\u00a0|\u3000x", "x", "x"},
		{"1 | a\u2028b", "1 | a\u2028b", "1 | a\u2028b"},
		{"1 | a\r\n2 | b\r\n", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"1 | a\n2 | b\r", "a\n2 | b\r", "a\n2 | b\r"}, // no line feed follows: the carriage return is text
		{"", "", ""},
	}
	for _, tt := range tests {
		if got := StripNumbers(tt.in, false); got != tt.plain {
			t.Errorf("StripNumbers(%q, false) = %q, want %q", tt.in, got, tt.plain)
		}
		if got := StripNumbers(tt.in, true); got != tt.aggressive {
			t.Errorf("StripNumbers(%q, true) = %q, want %q", tt.in, got, tt.aggressive)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab\n\n\r\b🚀é日"))).Draw(t, "s")
		lines, chars := rapid.IntRange(0, 9).Draw(t, "lines"), rapid.IntRange(0, 20).Draw(t, "chars")
		for name, got := range map[string]string{"Truncate": Truncate(s, lines, chars), "FoldRepeats": FoldRepeats(s), "Overwrite": Overwrite(s), "Erase": Erase(s)} {
			if lone(got) {
				t.Fatalf("%s made half a pair: %q", name, got)
			}
		}
		if strings.ContainsRune(Overwrite(s), '\r') || strings.ContainsRune(Erase(s), '\b') {
			t.Fatal("a control character is left")
		}
		clean := strings.ReplaceAll(strings.ReplaceAll(s, "\r", ""), "\b", "")
		want := clean
		if clean != "" && !strings.HasSuffix(clean, "\n") {
			want += "\n"
		}
		if got := StripNumbers(addNumbers(clean, 1), false); got != want {
			t.Fatalf("numbered and stripped %q: %q", clean, got)
		}
		if text(UTF16(s)) != s {
			t.Fatalf("round trip of %q", s)
		}
	})
}

func FuzzTerminal(f *testing.F) {
	f.Add("a\rb\b\xed\xa0\x80\n1 | x", 3, 4)
	f.Fuzz(func(t *testing.T, s string, lines, chars int) {
		Truncate(s, lines%1000, chars%1000)
		FoldRepeats(Overwrite(Erase(s)))
		StripNumbers(s, true)
		StripNumbers(s, false)
	})
}

func ExampleOverwrite() {
	fmt.Println(Overwrite("10%\r50%\r100%"))
	// Output: 100%
}

func ExampleFoldRepeats() {
	fmt.Print(FoldRepeats(strings.Repeat("waiting for the server\n", 40)))
	// Output:
	// waiting for the server
	// <previous line repeated 39 additional times>
}
