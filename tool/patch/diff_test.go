package patch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace/terminal"
)

func distance(a, b []uint16) int { return (&needle{normal: b}).distance(a) }

// slowDistance is the textbook table.
func slowDistance(a, b []uint16) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diag := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func TestDistance(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SliceOfN(rapid.Uint16Range(0, 3), 0, 300)
		a, b := text.Draw(r, "a"), text.Draw(r, "b")
		if got, want := distance(a, b), slowDistance(a, b); got != want {
			r.Fatalf("%d, want %d", got, want)
		}
	})
	if d := distance(terminal.UTF16("😀"), terminal.UTF16("😁")); d != 1 {
		t.Errorf("two emoji that share a high surrogate differ by %d", d)
	}
}

func TestApplyDiffKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		// Distinct lines: every place is unambiguous.
		n := rapid.IntRange(1, 60).Draw(r, "lines")
		lines := make([]string, n)
		for i := range lines {
			lines[i] = strings.Repeat(" ", rapid.IntRange(0, 8).Draw(r, "indent")) + "line" + strings.Repeat("x", i) + "end"
		}
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "eol")
		tail := rapid.SampledFrom([]string{"", eol}).Draw(r, "tail")
		at := rapid.IntRange(0, n-1).Draw(r, "at")
		count := rapid.IntRange(1, n-at).Draw(r, "count")
		fresh := strings.Repeat(" ", len(indentOf(lines[at]))) + "fresh  "
		diff := searchMark + "\n" + strings.Join(lines[at:at+count], "\n") + "\n" + middleMark + "\n" + fresh + "\n\n" + fresh + "\n" + replaceMark
		got, bad, err := ApplyDiff(context.Background(), strings.Join(lines, eol)+tail, diff, Exact)
		if bad != nil || err != nil || got.Applied != 1 {
			r.Fatalf("got %+v %v %v, want bad = nil and no error and got.Applied = 1", got, bad, err)
		}
		if n == 1 && tail == "" {
			eol = "\n" // nothing shows which line end is meant
		}
		want := strings.Join(slices.Concat(lines[:at], []string{fresh, "", fresh}, lines[at+count:]), eol) + tail
		if got.Content != want {
			r.Fatalf("got  %q\nwant %q", got.Content, want)
		}
	})
}

func TestApplyDiffChoices(t *testing.T) {
	one := func(search, replace string) string {
		return searchMark + "\n" + search + "\n" + middleMark + "\n" + replace + "\n" + replaceMark
	}
	tests := []struct {
		name, text, diff, want, fail string
	}{
		{"several equal places", "a\nb\na\n", one("a", "c"), "", failAmbiguous},
		{"a hint decides", "a\nb\na\n", searchMark + "\n:start_line:3\n-------\na\n" + middleMark + "\nc\n" + replaceMark, "a\nb\nc\n", ""},
		{"the exact one of similar places", "a  b\nx\na b\n", one("a b", "c"), "a  b\nx\nc\n", ""},
		{"blank line stays blank", "\tx\n", one("\tx", "\ty\n\n\tz"), "\ty\n\n\tz\n", ""},
		{"escaped marker", "<<<<<<< HEAD\nx\n", one("\\<<<<<<< HEAD", "y"), "y\nx\n", ""},
		{"line numbers", "a\nb\n", one("2 | b", "2 | c"), "a\nc\n", ""},
	}
	for _, tt := range tests {
		got, bad, err := ApplyDiff(context.Background(), tt.text, tt.diff, Exact)
		if bad != nil || err != nil {
			t.Errorf("%s: got %v %v, want bad = nil and no error", tt.name, bad, err)
			continue
		}
		if got.Content != tt.want || tt.fail != "" && (len(got.Failures) != 1 || got.Failures[0].Reason != tt.fail) {
			t.Errorf("%s: got %q %v, want got.Content = %v and (tt.fail = \"\" or (len(got.Failures) = 1 and got.Failures[0].Reason = tt.fail))",
				tt.name, got.Content, got.Failures, tt.want)
		}
	}
}

// A block that fits nowhere in a large file must fail in reasonable time.
func TestApplyDiffIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	text := strings.Repeat("func something(a int) { return compute(a, b, c) }\n", 40000)
	search := strings.Repeat("func another(z string) { return render(x, y) }\n", 60)
	start := time.Now()
	got, bad, err := ApplyDiff(context.Background(), text, searchMark+"\n"+search+middleMark+"\nx\n"+replaceMark, Exact)
	if bad != nil || err != nil || len(got.Failures) != 1 {
		t.Fatalf("got %+v %v %v, want bad = nil and no error and len(got.Failures) = 1", got.Failures, bad, err)
	}
	t.Logf("40,000 lines, 60 searched: %v", time.Since(start))
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := ApplyDiff(ctx, text, searchMark+"\n"+search+middleMark+"\nx\n"+replaceMark, 0.9); err == nil {
		t.Error("it cannot be cancelled")
	}
}

// The search for the nearest texts is bounded for a diff, not for each of its blocks.
func TestManyBlocksThatFitNowhereCostLittleMoreThanOne(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "func number%d(a int) { return compute(a, b, %d) }\n", i, i*i)
	}
	measure := func(blocks int) time.Duration {
		block := diffBlock(0, strings.Repeat("func another(z string) { return render(x, y) }\n", 8)+"}", "x")
		begun := time.Now()
		res, bad, err := ApplyDiff(t.Context(), text.String(), strings.Repeat(block, blocks), Exact)
		if bad != nil || err != nil || len(res.Failures) != blocks {
			t.Fatalf("got %d failures, %v, %v, want %d failures", len(res.Failures), bad, err, blocks)
		}
		if first := res.Failures[0].Message; !strings.Contains(first, "% similar") || !strings.Contains(first, "Most similar place") {
			t.Errorf("got %q, want the most similar place of the first block", first)
		}
		return time.Since(begun)
	}
	if one, many := measure(1), measure(100); many > 30*one {
		t.Errorf("got %s for 100 blocks and %s for one, want at most 30 times as much", many, one)
	}
}

func FuzzApplyDiff(f *testing.F) {
	f.Add("a\r\nb\n", "<<<<<<< SEARCH\n:start_line:1\n-------\na\n=======\nc\n>>>>>>> REPLACE")
	f.Add("1\n2\n3", "<<<<<<< SEARCH>\n\n1 | 1\n=======\n\n>>>>>>> REPLACE\n<<<<<<< SEARCH\n:start_line:99999999999999999999\n|  3\n=======\n\xff\n>>>>>>> REPLACE")
	f.Fuzz(func(t *testing.T, text, diff string) {
		got, bad, err := ApplyDiff(context.Background(), text, diff, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if (bad != nil || got.Applied == 0) && got.Content != "" {
			t.Errorf("failed and changed: %q", got.Content)
		}
	})
}

func TestNormalTextIsThatOfTheLines(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		line := rapid.StringMatching(`[a b\t“…\x{FEFF}]{0,5}`)
		lines, fresh := rapid.SliceOfN(line, 1, 8).Draw(r, "lines"), rapid.SliceOfN(line, 0, 3).Draw(r, "fresh")
		d := newDocument(slices.Clone(lines))
		d.ends = slices.Repeat([]string{"\n"}, len(lines))
		at := rapid.IntRange(0, len(lines)-1).Draw(r, "at")
		n := rapid.IntRange(1, len(lines)-at).Draw(r, "count")
		d.splice(at, n, fresh)
		lines = slices.Replace(lines, at, at+n, fresh...)
		for i := range lines {
			for k := range len(lines) - i + 1 {
				want := linetext.NormalLine(strings.Join(lines[i:i+k], "\n"))
				if got := d.normalText(i, k); !slices.Equal(got, terminal.UTF16(want)) {
					r.Fatalf("%d lines from line %d of %q: got %q, want %q", k, i, lines, string(utf16.Decode(got)), want)
				}
			}
		}
	})
}

func TestLinesAndTheirEndsMakeTheText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "\n", "\r\n", "\r", " "})).Draw(r, "pieces"), "")
		d := newDocument(linetext.SplitLines(s))
		d.ends = lineEnds(s)
		if len(d.lines) != len(d.ends) || d.text() != s {
			r.Fatalf("%q becomes %q", s, d.text())
		}
	})
}

func TestLineNumbersComeOff(t *testing.T) {
	for _, tt := range []struct{ in, plain, bare string }{
		{"1 | a\n2 | b", "a\nb", "a\nb"},
		{" 9 | a\n10 |   b", "a\n  b", "a\n  b"},
		{"1 | a\r\n2 | b", "a\r\nb", "a\r\nb"},
		{"| a", "| a", "a"},
		{"a | b", "a | b", "a | b"},
		{"1 || a", "1 || a", "1 || a"},
		{"1 | ", "", ""},
		{"x\n1 | a", "x\na", "x\na"},
		{"", "", ""},
	} {
		if got := terminal.StripNumbers(tt.in, false); got != tt.plain {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.plain)
		}
		if got := terminal.StripNumbers(tt.in, true); got != tt.bare {
			t.Errorf("bare %q: %q, want %q", tt.in, got, tt.bare)
		}
	}
	if n := bounded("99999999999999999999"); n != 1<<31-1 {
		t.Errorf("got %d, want the largest number", n)
	}
}

func TestEscapedMarkers(t *testing.T) {
	for in, want := range map[string]string{
		`\<<<<<<< x`: "<<<<<<< x", "a\n\\=======": "a\n=======", `\-------`: "-------", `\:start_line:1`: ":start_line:1", "a\r\\>>>>>>>": "a\r>>>>>>>", "\u2028\\=======": "\u2028=======",
		`a \=======`: `a \=======`, `\\=======`: `\\=======`, `\x`: `\x`, `\`: `\`, "": "",
	} {
		if got := unescape(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestSimilarity(t *testing.T) {
	for _, tt := range []struct {
		a, b    string
		atLeast float64
		want    float64
	}{
		{"", "", 0, 1}, {"abc", "abc", 0, 1}, {"abcd", "abce", 0, 0.75}, {"abc", "", 0, 0}, {"abcd", "ab", 0, 0.5}, {"abcd", "ab", 0.5, 0}, {"a", "xyz", 0, 0},
	} {
		if got := newDocument([]string{tt.a}).similarityAt(0, newNeedle([]string{tt.b}), tt.atLeast); got != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]uint16{'a', 'é', '日', ' ', '\n', 0xD83D, 0xDE00}), 0, 40)
		a, b, c := text.Draw(r, "a"), text.Draw(r, "b"), text.Draw(r, "c")
		if distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) || distance(a, a) != 0 {
			r.Fatal("that is no distance")
		}
	})
}

// TestALineHintChoosesTheNearestPlace: of two places that fit, the one nearer to the hint is meant, wherever it lies in the
// file, and only changes above a hint move it.
func TestALineHintChoosesTheNearestPlace(t *testing.T) {
	block := func(hint string) string {
		return "<<<<<<< SEARCH\n" + hint + "-------\nsame\n=======\nnew\n>>>>>>> REPLACE\n"
	}
	longer := func(line string) string {
		return "<<<<<<< SEARCH\n" + line + "\n=======\n" + line + strings.Repeat("\nmore", 10) + "\n>>>>>>> REPLACE\n"
	}
	for name, tt := range map[string]struct {
		places [2]int // of the line that is searched for, from 1
		diff   string
		want   int // the line that is changed, by its number before
	}{
		"near the beginning":      {[2]int{4, 20}, block(":start_line:5\n"), 4},
		"near the end":            {[2]int{82, 96}, block(":start_line:95\n"), 96},
		"a change below the hint": {[2]int{5, 15}, block(":start_line:5\n") + longer("line 90"), 5},
		"a change above the hint": {[2]int{25, 35}, block(":start_line:25\n") + longer("line 10"), 25},
	} {
		lines := make([]string, 100)
		for i := range lines {
			lines[i] = fmt.Sprintf("line %d", i+1)
		}
		lines[tt.places[0]-1], lines[tt.places[1]-1] = "same", "same"
		res, bad, err := ApplyDiff(t.Context(), strings.Join(lines, "\n"), tt.diff, Exact)
		if bad != nil || err != nil || len(res.Failures) > 0 {
			t.Fatalf("%s: got %v, %v, %v, want no failure", name, bad, err, res.Failures)
		}
		after := fmt.Sprintf("line %d\nnew\nline %d", tt.want-1, tt.want+1)
		if !strings.Contains(res.Content, after) {
			t.Errorf("%s: got another place, want line %d changed", name, tt.want)
		}
	}
}

// A search for a long text ends soon after the run is stopped.
func TestASearchForALongTextIsStopped(t *testing.T) {
	text := strings.Repeat("some line of text here\n", 10_000)
	diff := "<<<<<<< SEARCH\n" + strings.Repeat("some line of text herf\n", 3000) + "=======\nx\n>>>>>>> REPLACE\n"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, _, err := ApplyDiff(ctx, text, diff, 0.9); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("got error %v after %s, want one within 10 s", err, time.Since(begun))
	}
}
