package filetool

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
	if d := distance(utf16of("😀"), utf16of("😁")); d != 1 {
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
		got, bad, err := applyDiff(context.Background(), strings.Join(lines, eol)+tail, diff, exact)
		if bad != nil || err != nil || got.applied != 1 {
			r.Fatalf("%+v %v %v", got, bad, err)
		}
		if n == 1 && tail == "" {
			eol = "\n" // nothing shows which line end is meant
		}
		want := strings.Join(slices.Concat(lines[:at], []string{fresh, "", fresh}, lines[at+count:]), eol) + tail
		if got.content != want {
			r.Fatalf("got  %q\nwant %q", got.content, want)
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
		got, bad, err := applyDiff(context.Background(), tt.text, tt.diff, exact)
		if bad != nil || err != nil {
			t.Errorf("%s: %v %v", tt.name, bad, err)
			continue
		}
		if got.content != tt.want || tt.fail != "" && (len(got.fails) != 1 || got.fails[0].reason != tt.fail) {
			t.Errorf("%s: %q %v", tt.name, got.content, got.fails)
		}
	}
}

// A block that fits nowhere in a large file must fail in reasonable time.
func TestApplyDiffIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("does nothing at the same time, and is slow when watched for races")
	}
	text := strings.Repeat("func something(a int) { return compute(a, b, c) }\n", 40000)
	search := strings.Repeat("func another(z string) { return render(x, y) }\n", 60)
	start := time.Now()
	got, bad, err := applyDiff(context.Background(), text, searchMark+"\n"+search+middleMark+"\nx\n"+replaceMark, exact)
	if bad != nil || err != nil || len(got.fails) != 1 {
		t.Fatalf("%+v %v %v", got.fails, bad, err)
	}
	t.Logf("40,000 lines, 60 searched: %v", time.Since(start))
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := applyDiff(ctx, text, searchMark+"\n"+search+middleMark+"\nx\n"+replaceMark, 0.9); err == nil {
		t.Error("it cannot be cancelled")
	}
}

func TestCompareNames(t *testing.T) {
	ordered := []string{" x", "_a", "-a", ".a", "(a", "@a", "+a", "$a", "1", "02", "3a", "10", "a", "a-b", "a.b", "a1", "a02", "a10", "ab", "É1", "e2", "zz", "ω", "ж", "ა", "ա", "א", "ا", "अ", "ก", "한국", "あ", "カー", "かあ", "き", "ㄅ", "一", "中文", "日本", "龥"}
	for i := range ordered {
		for j := range ordered {
			got := compareNames(ordered[i], ordered[j])
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q against %q: %d", ordered[i], ordered[j], got)
			}
		}
	}
	for _, pair := range [][2]string{{"README", "readme"}, {"é", "E"}, {"e\u0301", "e"}, {"a01", "a1"}, {"が", "か"}, {"ア", "あ"}, {"ヅ", "っ"}} {
		if compareNames(pair[0], pair[1]) != 0 {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
}

func TestStripFence(t *testing.T) {
	for in, want := range map[string]string{
		"x\n": "x\n", "```go\nx\n```": "x\n", "```\nx\n```\n": "x\n", "a\n```\nb\n```\nc\n": "a\n```\nb\n```\nc\n", "": "", "```": "", "no ```": "no ```",
	} {
		if got := stripFence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, n := rapid.String().Draw(r, "s"), rapid.IntRange(0, 40).Draw(r, "n")
		got := cut(s, n)
		if !strings.HasPrefix(s, got) || units(got) > n || got != s && units(got) < n-1 {
			r.Fatalf("cut(%q, %d) = %q", s, n, got)
		}
	})
}

func FuzzApplyDiff(f *testing.F) {
	f.Add("a\r\nb\n", "<<<<<<< SEARCH\n:start_line:1\n-------\na\n=======\nc\n>>>>>>> REPLACE")
	f.Add("1\n2\n3", "<<<<<<< SEARCH>\n\n1 | 1\n=======\n\n>>>>>>> REPLACE\n<<<<<<< SEARCH\n:start_line:99999999999999999999\n|  3\n=======\n\xff\n>>>>>>> REPLACE")
	f.Fuzz(func(t *testing.T, text, diff string) {
		got, bad, err := applyDiff(context.Background(), text, diff, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if (bad != nil || got.applied == 0) && got.content != "" {
			t.Errorf("failed and changed: %q", got.content)
		}
	})
}
