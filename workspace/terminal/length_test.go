package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	cutChars = regexp.MustCompile(`(?s)^(.*)\n\[\.\.\.(\d+) characters omitted\.\.\.\]\n(.*)$`)
	cutLines = regexp.MustCompile(`(?s)^(.*)\n\[\.\.\.(\d+) lines omitted\.\.\.\]\n\n(.*)$`)
)

// What is left, and the number that is said to be missing, are the whole text.
func TestTruncateAddsUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abcdefg\né😀日")), 0, 200, -1).Draw(r, "s")
		limit := rapid.IntRange(1, 120).Draw(r, "characters")
		got := Truncate(s, 0, limit)
		if Units(s) <= limit {
			if got != s {
				r.Fatalf("%q fits %d and becomes %q", s, limit, got)
			}
			return
		}
		m := cutChars.FindStringSubmatch(got)
		if m == nil {
			r.Fatalf("no note in %q", got)
		}
		missing, _ := strconv.Atoi(m[2])
		if !strings.HasPrefix(s, m[1]) || !strings.HasSuffix(s, m[3]) || Units(m[1])+Units(m[3])+missing != Units(s) {
			r.Fatalf("%q becomes %q", s, got)
		}
		// A pair that the cut falls into goes whole, at either end.
		if kept := Units(m[1]) + Units(m[3]); kept > limit || kept < limit-2 {
			r.Fatalf("%d are kept of %d", kept, limit)
		}
		if Units(m[1]) > limit/5 {
			r.Fatalf("the beginning has %d of %d", Units(m[1]), limit)
		}
	})
}

func TestTruncateLinesAddsUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b c", "é"}), 1, 60).Draw(r, "lines")
		limit := rapid.IntRange(1, 50).Draw(r, "limit")
		s := strings.Join(lines, "\n")
		got := Truncate(s, limit, 0)
		if len(lines) <= limit {
			if got != s {
				r.Fatalf("%d lines fit %d: %q", len(lines), limit, got)
			}
			return
		}
		m := cutLines.FindStringSubmatch(got)
		if m == nil {
			r.Fatalf("no note in %q", got)
		}
		head, tail := limit/5, limit-limit/5
		if missing, _ := strconv.Atoi(m[2]); missing != len(lines)-limit {
			r.Fatalf("%d lines are said to be missing of %d", missing, len(lines))
		}
		want := ""
		if head > 0 {
			want = strings.Join(lines[:head], "\n") + "\n"
		}
		if m[1] != want || m[3] != strings.Join(lines[len(lines)-tail:], "\n") {
			r.Fatalf("%q of %q", got, lines)
		}
	})
}

func TestWhichLimitCounts(t *testing.T) {
	s := strings.Repeat("line\n", 20)
	if got := Truncate(s, 5, 1000); !strings.Contains(got, "lines omitted") {
		t.Errorf("characters fit, lines do not: %q", got)
	}
	if got := Truncate(s, 5, 50); !strings.Contains(got, "characters omitted") || strings.Contains(got, "lines omitted") {
		t.Errorf("neither fits: %q", got)
	}
	for _, limits := range [][2]int{{0, 0}, {21, 0}, {0, 100}, {21, 100}, {-1, -1}} {
		if got := Truncate(s, limits[0], limits[1]); got != s {
			t.Errorf("%v: got %q, want got = s", limits, got)
		}
	}
}

func TestFoldRepeats(t *testing.T) {
	note := func(n int) string { return fmt.Sprintf("<previous line repeated %d additional times>\n", n) }
	for _, tt := range []struct{ name, in, want string }{
		{"long lines", strings.Repeat("a line that is long enough\n", 4), "a line that is long enough\n" + note(3)},
		{"where it would be longer", "ab\nab\nab\n", "ab\nab\nab\n"},
		{"many short ones", strings.Repeat("ab\n", 30), "ab\n" + note(29)},
		{"no line end at the end", strings.Repeat("a line that is long enough\n", 4) + "a line that is long enough", "a line that is long enough\n" + note(3) + "a line that is long enough"},
		{"runs apart", strings.Repeat("x\n", 50) + "y\n" + strings.Repeat("x\n", 50), "x\n" + note(49) + "y\nx\n" + note(49)},
		{"blank lines", strings.Repeat("\n", 100), "\n" + note(99)},
		{"blanks differ", "a \na\n", "a \na\n"},
		{"one line", "a", "a"},
		{"nothing", "", ""},
	} {
		if got := FoldRepeats(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

var folded = regexp.MustCompile(`^<previous line repeated (\d+) additional times>$`)

// Unfolding gives the text back.
func TestFoldingLosesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 8).Draw(r, "runs") {
			line := rapid.SampledFrom([]string{"a", "", "a line that is long enough to fold", "é😀", "b"}).Draw(r, "line")
			b.WriteString(strings.Repeat(line+"\n", rapid.IntRange(1, 40).Draw(r, "times")))
		}
		s := b.String()
		got := FoldRepeats(s)
		var back []string
		for _, l := range strings.SplitAfter(got, "\n") {
			if m := folded.FindStringSubmatch(strings.TrimSuffix(l, "\n")); m != nil {
				n, _ := strconv.Atoi(m[1])
				for range n {
					back = append(back, back[len(back)-1])
				}
				continue
			}
			back = append(back, l)
		}
		if strings.Join(back, "") != s {
			r.Fatalf("%q becomes %q", s, got)
		}
	})
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		in    string
		start int
		want  string
	}{
		{"a\nb", 1, "1 | a\n2 | b\n"},
		{"a\nb\n", 1, "1 | a\n2 | b\n"},
		{"a\n\n", 1, "1 | a\n2 | \n"},
		{"a\nb", 9, " 9 | a\n10 | b\n"},
		{"", 1, ""},
		{"", 5, "5 | \n"},
		{"\n", 1, "1 | \n"},
		{"a\r\nb", 1, "1 | a\r\n2 | b\n"},
		{"a", -1, "-1 | a\n"},
		{"a\nb\nc", 98, " 98 | a\n 99 | b\n100 | c\n"},
	} {
		if got := addNumbers(tt.in, tt.start); got != tt.want {
			t.Errorf("%q from %d: %q, want %q", tt.in, tt.start, got, tt.want)
		}
	}
	if got := Number(nil, 1); got != "" {
		t.Errorf("no lines: %q", got)
	}
}

func ExampleTruncate() {
	fmt.Println(Truncate("first\nsecond\nthird\nfourth\nfifth\nlast", 5, 0))
	// Output:
	// first
	//
	// [...1 lines omitted...]
	//
	// third
	// fourth
	// fifth
	// last
}

func TestSizesInWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0KB", 12595: "12.3KB", 1 << 20: "1.0MB", 5 << 30: "5.0GB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
