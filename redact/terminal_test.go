package redact

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Escape sequences of any kind between words go without a trace; the words, and what
// separates them, stay as they were.
func TestSequencesGoAndWordsStay(t *testing.T) {
	sequence := rapid.SampledFrom([]string{
		"\x1b[0m", "\x1b[38;5;196m", "\x1b[2J", "\x1b[1;1H", "\x1b[?25l", "\x1b[6n", "\x1b[>c", "\x1b]0;title\x07", "\x1b]2;title\x1b\\", "\x1b]52;c;c2VjcmV0\x07", "\x1b]8;;https://x\x1b\\", "\x1bP1$r0m\x1b\\",
		"\x1b_payload\x1b\\", "\x1b^x\x1b\\", "\x1b7", "\x1b8", "\x1bM", "\x1b(0", "\x1b=", "\x07", "\x08", "\x0e", "\x0f", "\x00", "\x7f", "\u009b", "\u0090", "\u009d", "\u200e", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff", "\u00ad", "\u2061", "\U000e0041", "\u3164", "\uffa0", "\u115f",
	})
	word := rapid.SampledFrom([]string{"word", "two words", "日本", "é", "👩\u200d💻", "\t", "\n", "0", "31m", "[", "]", ";", "m"})
	rapid.Check(t, func(t *rapid.T) {
		var in, want strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			w := word.Draw(t, "word")
			in.WriteString(sequence.Draw(t, "sequence") + w)
			want.WriteString(w)
		}
		if got := Terminal(in.String()); got != want.String() {
			t.Fatalf("%q: %q, want %q", in.String(), got, want.String())
		}
	})
}

// A sequence that does not end takes its line with it at most: a hostile title must
// not swallow what the person has to see.
func TestUnendedSequences(t *testing.T) {
	for _, open := range []string{"\x1b]0;title", "\x1bPdata", "\x1b_data", "\x1b^data", "\x1b]52;c;"} {
		if got := Terminal("before" + open + "\nafter"); !strings.HasPrefix(got, "before") || !strings.HasSuffix(got, "\nafter") {
			t.Errorf(`%q: got %q, want strings.HasPrefix(got, "before") and strings.HasSuffix(got, "\nafter")`,
				open, got)
		}
		if got := Terminal("before" + open); got != "before" {
			t.Errorf("%q at the end: %q", open, got)
		}
	}
}

// Hostile text takes no more than its length: no sequence is looked at twice.
func TestTerminalIsLinear(t *testing.T) {
	for _, piece := range []string{"\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b]0;", "\r", "\u202e", "\xff", "\x1b[1;"} {
		long := strings.Repeat(piece, 1<<20/len(piece)) + "end"
		_ = Terminal(long) // a square of a megabyte would not come back
	}
}

func ExampleTerminal() {
	fmt.Println(Terminal("all \x1b[32mgreen\x1b[0m\rPASS"))
	// Output:
	// all green
	// PASS
}

func ExampleRedactor_Writer() {
	w := New(Known{Kind: "api-key", Value: "the value of the key"}).Writer(os.Stdout)
	for _, piece := range []string{"sent with the val", "ue of the key\n", "done\n"} {
		if _, err := w.Write([]byte(piece)); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Count())
	// Output:
	// sent with [REDACTED:api-key]
	// done
	// 1
}

// What joins emoji and letters stays where it does so. Within a key it would only hide the
// key from whoever looks for it, and a person would read the key all the same.
func TestJoinersHideNoKey(t *testing.T) {
	for _, text := range []string{"👩\u200d💻", "می\u200cخواهم", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "क\u094d\u200dष", "葛\U000e0100"} {
		if got := Terminal(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	key := "sk-ant-Zk3vQ9xT7bLw2" + "RmY8cNd5HsJ4gPf6aUe1"
	for _, between := range []string{"\u200d", "\u200c", "\u200b", "\u034f", "\ufe0f", "\ufe00", "\U000e0100", "\U000e01ef", "\u200d\u200d\u200c", "\u202e\u200d", "\x1b[0m\ufe0f", "\u2060", "\ufeff", "\u00ad"} {
		for _, at := range []int{1, 7, 12, len(key) - 1} {
			if got := Terminal(between + key[:at] + between + key[at:]); got != key {
				t.Errorf("%q at %d: %q", between, at, got)
			}
		}
	}
}
