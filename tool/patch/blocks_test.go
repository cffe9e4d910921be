package patch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// diffBlock writes one block of a diff; start 0 gives it no line hint.
func diffBlock(start int, search, replace string) string {
	hint := ""
	if start > 0 {
		hint = fmt.Sprintf(":start_line:%d\n-------\n", start)
	}
	if search != "" {
		search += "\n"
	}
	if replace != "" {
		replace += "\n"
	}
	return searchMark + "\n" + hint + search + middleMark + "\n" + replace + replaceMark + "\n"
}

// change is one replacement in a list of lines.
type change struct {
	at, n int
	fresh []string
}

// Several changes of a text that is told apart by its lines, in one diff in any
// order, give exactly the text that was meant.
func TestAGeneratedDiffGivesTheIntendedText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(r, "lines")
		lines := make([]string, n)
		for i := range lines {
			lines[i] = strings.Repeat("\t", rapid.IntRange(0, 3).Draw(r, "indent")) + fmt.Sprintf("line %d %s.", i, rapid.SampledFrom([]string{"", "{", "é 😀", "a | b", "// x", "\"q\""}).Draw(r, "text"))
		}
		var changes []change
		for at := rapid.IntRange(0, 3).Draw(r, "first"); at < n && len(changes) < 5; {
			c := change{at: at, n: rapid.IntRange(1, min(4, n-at)).Draw(r, "count")}
			indent := indentOf(lines[at])
			for i := range rapid.IntRange(0, 4).Draw(r, "fresh") {
				c.fresh = append(c.fresh, fmt.Sprintf("%snew %d %d", indent, at, i))
			}
			changes = append(changes, c)
			at += c.n + rapid.IntRange(1, 30).Draw(r, "gap")
		}
		ends := make([]string, n)
		for i := range ends {
			ends[i] = rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "end")
		}
		if rapid.Bool().Draw(r, "no line end at the end") {
			ends[n-1] = ""
		}
		var text strings.Builder
		for i, l := range lines {
			text.WriteString(l + ends[i])
		}

		var blocks []string
		var want strings.Builder
		done := 0
		for _, c := range changes {
			hint := 0
			if rapid.Bool().Draw(r, "hint") {
				hint = c.at + 1
			}
			blocks = append(blocks, diffBlock(hint, strings.Join(lines[c.at:c.at+c.n], "\n"), strings.Join(c.fresh, "\n")))
			for ; done < c.at; done++ {
				want.WriteString(lines[done] + ends[done])
			}
			end := ends[c.at]
			if end == "" && c.at > 0 {
				end = ends[c.at-1]
			} else if end == "" {
				end = "\n"
			}
			for i, l := range c.fresh {
				if last := c.at+c.n == n && ends[n-1] == "" && i == len(c.fresh)-1; last {
					end = ""
				}
				want.WriteString(l + end)
			}
			done = c.at + c.n
		}
		for ; done < n; done++ {
			want.WriteString(lines[done] + ends[done])
		}
		intended := want.String()
		if last := changes; len(last) > 0 && ends[n-1] == "" {
			// Lines taken from a text without a line end at its end leave one without.
			if c := last[len(last)-1]; c.at+c.n == n && len(c.fresh) == 0 {
				intended = strings.TrimSuffix(strings.TrimSuffix(intended, "\n"), "\r")
			}
		}
		if len(changes) == 0 {
			return
		}
		shuffled := rapid.Permutation(blocks).Draw(r, "order")
		got, bad, err := ApplyDiff(context.Background(), text.String(), strings.Join(shuffled, ""), Exact)
		if bad != nil || err != nil || len(got.Failures) > 0 {
			r.Fatalf("got %v %v %+v, want bad = nil and no error and len(got.Failures) <= 0", bad, err, got.Failures)
		}
		if got.Content != intended {
			r.Fatalf("%s", cmp.Diff(intended, got.Content))
		}
	})
}

func TestLinesThatAreNotReplacedKeepTheirBytes(t *testing.T) {
	for _, tt := range []struct{ name, text, search, replace, want string }{
		{"mixed line ends", "a\r\nb\nc\r\nd\n", "b", "B\nB2", "a\r\nB\nB2\nc\r\nd\n"},
		{"mixed, at a CRLF", "a\r\nb\nc\r\nd\n", "c", "C\nC2", "a\r\nb\nC\r\nC2\r\nd\n"},
		{"mixed, across", "a\r\nb\nc\r\nd", "b\nc", "x\ny\nz", "a\r\nx\ny\nz\nd"},
		{"the last line", "a\r\nb", "b", "c\nd", "a\r\nc\r\nd"},
		{"only one line", "a", "a", "b\nc", "b\nc"},
		{"deleting the last line", "a\nb", "b", "", "a"},
		{"deleting all", "a\nb", "a\nb", "", ""},
		{"deleting the first", "a\nb\n", "a", "", "b\n"},
		{"lone carriage returns", "a\rb\nc\n", "c", "d", "a\rb\nd\n"},
		{"blanks at line ends", "a  \nb\t\nc \n", "b", "x", "a  \nx\nc \n"},
		{"blank lines", "\n\na\n\n\n", "a", "b", "\n\nb\n\n\n"},
		{"form feed and other blanks", "a\fb\n\u00a0\u3000x\ny\n", "y", "z", "a\fb\n\u00a0\u3000x\nz\n"},
	} {
		got, bad, err := ApplyDiff(context.Background(), tt.text, diffBlock(0, tt.search, tt.replace), Exact)
		if bad != nil || err != nil || len(got.Failures) > 0 {
			t.Errorf("%s: got %v %v %+v, want bad = nil and no error and len(got.Failures) <= 0",
				tt.name, bad, err, got.Failures)
			continue
		}
		if got.Content != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.Content, tt.want)
		}
	}
}

// What the search part may differ by: blanks, typography, line numbers.
func TestWhereABlockFits(t *testing.T) {
	for _, tt := range []struct{ name, text, diff, want, fail string }{
		{"other indentation", "\tif x {\n\t\ty()\n\t}\n", diffBlock(0, "if x {\n\ty()\n}", "if z {\n\ty()\n\tw()\n}"), "\tif z {\n\t\ty()\n\t\tw()\n\t}\n", ""},
		{"less indented than searched", "if x {\n}\n", diffBlock(0, "    if x {\n    }", "    if y {\n    }"), "if y {\n}\n", ""},
		{"typographic quotes", "say “hi” – it’s…\n", diffBlock(0, "say \"hi\" - it's...", "bye"), "bye\n", ""},
		{"runs of blanks", "a  =  1\n", diffBlock(0, "a = 1", "a = 2"), "a = 2\n", ""},
		{"numbers on every line", "a\nb\nc\n", diffBlock(0, "2 | b\n3 | c", "2 | B\n3 | C"), "a\nB\nC\n", ""},
		{"numbers give the place", "x\nx\nx\n", diffBlock(0, "2 | x", "2 | y"), "x\ny\nx\n", ""},
		{"a table stays a table", "1 | one\n", diffBlock(0, "1 | one", "1 | uno"), "1 | uno\n", ""},
		{"within the margin of the hint", strings.Repeat("f\n", 35) + "here\n" + strings.Repeat("f\n", 50), diffBlock(1, "here", "there"), strings.Repeat("f\n", 35) + "there\n" + strings.Repeat("f\n", 50), ""},
		{"beyond the margin", strings.Repeat("f\n", 90) + "here\n", diffBlock(1, "here", "there"), "", failNoMatch},
		{"a hint past the end", "a\nb\n", diffBlock(99, "a", "b"), "", failNoMatch},
		{"letter case counts", "Word\n", diffBlock(0, "word", "x"), "", failNoMatch},
		{"nothing to find", "a\n", diffBlock(0, "", "x"), "", failEmpty},
		{"nothing to change", "a\n", diffBlock(0, "a", "a"), "", failIdentical},
		{"a part of a line", "abc\n", diffBlock(0, "b", "x"), "", failNoMatch},
		{"an empty file", "", diffBlock(0, "a", "x"), "", failNoMatch},
		{"two places", "a\nb\na\n", diffBlock(0, "a", "x"), "", failAmbiguous},
		{"two places, one near the hint", "a\n" + strings.Repeat("f\n", 60) + "a\n", diffBlock(60, "a", "x"), "a\n" + strings.Repeat("f\n", 60) + "x\n", ""},
		{"bars without numbers", "a\nb\n", diffBlock(0, "| a", "| x"), "x\nb\n", ""},
		{"numbers on some lines", "a\nb\nc\n", diffBlock(0, "1 | a\nb", "1 | x\ny"), "x\ny\nc\n", ""},
		{"bars that the file has", "| a\na\n", diffBlock(0, "| a", "| x"), "| x\na\n", ""},
		{"bars, and it is not there", "a\n", diffBlock(0, "| c", "| x"), "", failNoMatch},
		{"bars, nearly there", "some line\n", diffBlock(0, "| some lime", "| x"), "", failNoMatch},
		{"bars before nothing", "a\n\nb\n", diffBlock(0, "| ", "| x"), "", failNoMatch},
		{"bars, two places", "a\nb\na\n", diffBlock(0, "| a", "| x"), "", failAmbiguous},
		{"bars, two places, one near the hint", "a\n" + strings.Repeat("f\n", 60) + "a\n", diffBlock(60, "| a", "| x"), "a\n" + strings.Repeat("f\n", 60) + "x\n", ""},
		{"escaped markers", "=======\n>>>>>>> x\n", diffBlock(0, "\\=======\n\\>>>>>>> x", "\\<<<<<<< y"), "<<<<<<< y\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, bad, err := ApplyDiff(context.Background(), tt.text, tt.diff, Exact)
			if bad != nil || err != nil {
				t.Fatal(bad, err)
			}
			if tt.fail != "" {
				if got.Applied != 0 || len(got.Failures) != 1 || got.Failures[0].Reason != tt.fail || got.Content != "" {
					t.Errorf("got %+v, want %s", got, tt.fail)
				}
				return
			}
			if got.Content != tt.want || len(got.Failures) > 0 {
				t.Errorf("got %q %+v, want %q", got.Content, got.Failures, tt.want)
			}
		})
	}
}

func TestBlocksThatAreNoDiff(t *testing.T) {
	for _, tt := range []struct{ name, diff, kind, says string }{
		{"no block", "just text", noBlocks, "no complete block"},
		{"empty", "", noBlocks, "no complete block"},
		{"no end", searchMark + "\na\n" + middleMark + "\nb\n", unterminated, `ends before ">>>>>>> REPLACE"`},
		{"no middle", searchMark + "\na\n" + replaceMark, malformed, `line 3 is ">>>>>>> REPLACE" where "======="`},
		{"only a middle", middleMark, unescapedMarker, `line 1 of the diff is the marker "======="`},
		{"two searches", searchMark + "\na\n" + searchMark + "\nb\n" + middleMark + "\nc\n" + replaceMark, malformed, "line 3"},
		{"a conflict in the search", searchMark + "\n<<<<<<< HEAD\na\n" + middleMark + "\nb\n" + replaceMark, unescapedMarker, `escape it with a backslash: "\\<<<<<<< HEAD"`},
		{"a conflict in the replacement", searchMark + "\na\n" + middleMark + "\n>>>>>>> theirs\n" + replaceMark, unescapedMarker, "line 4"},
		{"a second middle", searchMark + "\na\n" + middleMark + "\nb\n" + middleMark + "\nc\n" + replaceMark, unescapedMarker, "line 5"},
		{"a line marker in the replacement", searchMark + "\na\n" + middleMark + "\n:start_line:3\nb\n" + replaceMark, lineMarker, `line marker ":start_line:3"`},
		{"markers indented", "  " + searchMark + "\n  a\n  " + middleMark + "\n  b\n  " + replaceMark, noBlocks, "at the start of its line"},
	} {
		_, bad, err := ApplyDiff(context.Background(), "a\n", tt.diff, Exact)
		if err != nil || bad == nil {
			t.Errorf("%s: got %v %v, want no error and bad != nil", tt.name, bad, err)
			continue
		}
		if bad.Kind != tt.kind || !strings.Contains(strings.ToLower(bad.Reason), strings.ToLower(tt.says)) {
			t.Errorf("%s: got %s: %s, want bad.Kind = tt.kind and strings.Contains(strings.ToLower(bad.Reason), strings.ToLower(tt.says))",
				tt.name, bad.Kind, bad.Reason)
		}
	}
}

func TestParsedBlocks(t *testing.T) {
	for _, tt := range []struct {
		name, diff string
		want       []Block
	}{
		{"hint", diffBlock(7, "a", "b"), []Block{{7, "a", "b"}}},
		{"both hints and no dashes", searchMark + "\n:start_line: 7 \n:end_line:9\na\n" + middleMark + "\nb\n" + replaceMark, []Block{{7, "a", "b"}}},
		{"an older mark", searchMark + ">\na\n" + middleMark + "\nb\n" + replaceMark, []Block{{0, "a", "b"}}},
		{"text around", "Here is the change:\n" + diffBlock(0, "a", "b") + "Done.", []Block{{0, "a", "b"}}},
		{"blank lines inside stay", diffBlock(0, "a\n\nb", "c\n\n\nd"), []Block{{0, "a\n\nb", "c\n\n\nd"}}},
		{"both parts empty", diffBlock(0, "", ""), []Block{{0, "", ""}}},
		{"by hint, those without first", diffBlock(9, "x", "1") + diffBlock(0, "y", "2") + diffBlock(3, "z", "3"), []Block{{0, "y", "2"}, {3, "z", "3"}, {9, "x", "1"}}},
		{"side by side", strings.TrimSuffix(diffBlock(0, "a", "b"), "\n") + "\n" + diffBlock(0, "c", "d"), []Block{{0, "a", "b"}, {0, "c", "d"}}},
		{"a number too large", searchMark + "\n:start_line:99999999999999999999\na\n" + middleMark + "\nb\n" + replaceMark, []Block{{1<<31 - 1, "a", "b"}}},
	} {
		got, bad := ParseDiff(tt.diff)
		if bad != nil {
			t.Errorf("%s: got %v, want bad = nil", tt.name, bad)
			continue
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Why a block failed, in words from which a model can do better.
func TestFailureSaysWhatIsThere(t *testing.T) {
	text := "func a() {\n\treturn 1\n}\n\nfunc b() {\n\tquite(other)\n}\n"
	got, _, err := ApplyDiff(context.Background(), text, diffBlock(2, "\treturn 7", "\treturn 8"), Exact)
	if err != nil || len(got.Failures) != 1 {
		t.Fatal(got, err)
	}
	want := "The search part was not found near line 2 (best place is 87% similar, 100% is needed). Read the file again and copy its lines exactly.\n\n" +
		"Search part:\n\treturn 7\n\nMost similar place:\n2 | \treturn 1\n\n" +
		"The file around line 2:\n1 | func a() {\n2 | \treturn 1\n3 | }\n4 | \n5 | func b() {\n6 | \tquite(other)\n7 | }\n8 | "
	if d := cmp.Diff(want, got.Failures[0].Message); d != "" {
		t.Error(d)
	}
}
