package filetool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace/terminal"
	"pgregory.net/rapid"
)

const program = `package x

// A is first.
type A struct {
	n int
}

// Do does it.
// It takes long.
func (a *A) Do() {
	if a.n > 0 {
		for i := range a.n {
			use(i)
		}
	}
	end()
}

func other() {
	nothing()
}
`

// blockAt gives the numbers of the lines that are shown.
func blockAt(o indentOptions) string {
	if o.limit == 0 {
		o.limit = defaultLines
	}
	e := indentLines(program, o)
	if len(e.ranges) == 0 {
		return e.reason
	}
	return fmt.Sprintf("%d-%d", e.ranges[0][0], e.ranges[0][1])
}

func TestBlockAroundALine(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    indentOptions
		want string
	}{
		{"the innermost level", indentOptions{anchor: 13, levels: 1}, "12-14"},
		{"two levels", indentOptions{anchor: 13, levels: 2}, "11-15"},
		{"with siblings", indentOptions{anchor: 13, levels: 2, siblings: true}, "11-16"},
		// As in Roo: the way up ends with the way down.
		{"near the end of a function", indentOptions{anchor: 16, levels: 1}, "14-17"},
		{"a function", indentOptions{anchor: 11, levels: 1}, "10-17"},
		{"with the comments above", indentOptions{anchor: 11, levels: 1, header: true}, "8-17"},
		{"everything", indentOptions{anchor: 13, siblings: true}, "1-21"},
		{"a limit", indentOptions{anchor: 13, siblings: true, limit: 3}, "12-14"},
		{"one line", indentOptions{anchor: 13, limit: 1}, "13-13"},
		{"the other limit", indentOptions{anchor: 13, siblings: true, maxLines: 3}, "12-14"},
		{"before the file", indentOptions{anchor: 0}, "bad_anchor"},
		{"behind the file", indentOptions{anchor: 23}, "bad_anchor"},
	} {
		if got := blockAt(tt.o); got != tt.want {
			t.Errorf("%s: lines %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Whatever is asked for, the block holds its line (unless that is blank), stays in
// the file, has no blank ends, and keeps to the limit.
func TestBlocksHoldTheirLine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", " ", "a {", "    b", "\tc", "        d", "\t\te", "// x", "    # y", "}"}), 1, 40).Draw(r, "lines")
		o := indentOptions{
			anchor: rapid.IntRange(1, len(lines)).Draw(r, "anchor"), levels: rapid.IntRange(0, 3).Draw(r, "levels"),
			siblings: rapid.Bool().Draw(r, "siblings"), header: rapid.Bool().Draw(r, "header"),
			limit: rapid.IntRange(1, 30).Draw(r, "limit"), maxLines: rapid.IntRange(0, 30).Draw(r, "most"),
		}
		e := indentLines(strings.Join(lines, "\n"), o)
		if e.total != len(lines) || e.returned > o.limit || o.maxLines > 0 && e.returned > o.maxLines {
			r.Fatalf("%d lines of %d for %+v", e.returned, e.total, o)
		}
		if len(e.ranges) == 0 {
			if !isBlank(lines[o.anchor-1]) {
				r.Fatalf("nothing is shown for %+v of %q", o, lines)
			}
			return
		}
		first, last := e.ranges[0][0], e.ranges[0][1]
		if first < 1 || last > len(lines) || last-first+1 != e.returned || strings.Count(e.text, "\n") != last-first {
			r.Fatalf("%d-%d of %d, %d returned", first, last, len(lines), e.returned)
		}
		if !isBlank(lines[o.anchor-1]) && (o.anchor < first || o.anchor > last) {
			r.Fatalf("line %d is not in %d-%d", o.anchor, first, last)
		}
		if e.returned > 1 && (isBlank(lines[first-1]) || isBlank(lines[last-1])) {
			r.Fatalf("a blank end of %d-%d in %q", first, last, lines)
		}
	})
}

func TestDepths(t *testing.T) {
	got := depths([]string{"a", "    b", "\tc", "\t    d", "", "  e", "   f", "\u00a0\u00a0\u00a0\u00a0g"})
	want := []int{0, 1, 1, 2, 2, 0, 0, 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSlices(t *testing.T) {
	for _, tt := range []struct {
		name, text    string
		offset, limit int
		want          string
		total         int
		truncated     bool
		reason        string
	}{
		{"all", "a\nb", 0, 10, "1 | a\n2 | b", 2, false, ""},
		{"a line end at the end is one more line", "a\n", 0, 10, "1 | a\n2 | ", 2, false, ""},
		{"an empty file is one empty line", "", 0, 10, "1 | ", 1, false, ""},
		{"the middle", "a\nb\nc\nd", 1, 2, "2 | b\n3 | c", 4, true, ""},
		{"the end", "a\nb\nc", 1, 2, "2 | b\n3 | c", 3, false, ""},
		{"beyond", "a\nb", 2, 1, "Error: offset 2 is beyond file end (2 lines)", 2, false, "past_end"},
		{"nothing wanted", "a\nb", 0, 0, "", 2, true, ""},
		{"before the start", "a\nb", -5, 1, "1 | a", 2, true, ""},
		{"carriage returns stay", "a\r\nb", 0, 1, "1 | a\r", 2, true, ""},
		{"numbers are aligned", strings.Repeat("x\n", 11), 8, 3, " 9 | x\n10 | x\n11 | x", 12, true, ""},
	} {
		e, err := sliceLines(strings.NewReader(tt.text), tt.offset, tt.limit)
		if err != nil || e.text != tt.want || e.total != tt.total || e.truncated != tt.truncated || e.reason != tt.reason {
			t.Errorf("%s: got %+v, %v, want no error and e.text = %v and e.total = tt.total and e.truncated = tt.truncated and e.reason = tt.reason",
				tt.name, e, err, tt.want)
		}
	}
}

func TestLongLinesAreShortened(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{strings.Repeat("x", linetext.MaxLine), strings.Repeat("x", linetext.MaxLine)},
		{strings.Repeat("x", linetext.MaxLine+1), strings.Repeat("x", linetext.MaxLine-3) + "..."},
		{strings.Repeat("é", linetext.MaxLine), strings.Repeat("é", linetext.MaxLine)},
		{strings.Repeat("😀", linetext.MaxLine/2), strings.Repeat("😀", linetext.MaxLine/2)},
		{strings.Repeat("😀", linetext.MaxLine/2+1), strings.Repeat("😀", linetext.MaxLine/2-2) + "..."},
		{"a" + strings.Repeat("😀", linetext.MaxLine), "a" + strings.Repeat("😀", linetext.MaxLine/2-2) + "..."},
	} {
		if got := linetext.Shorten(tt.line); got != tt.want {
			t.Errorf("%d units become %d, want %d", terminal.Units(tt.line), terminal.Units(got), terminal.Units(tt.want))
		}
		e, err := sliceLines(strings.NewReader(tt.line+"\n"+tt.line), 0, 2)
		if want := "1 | " + tt.want + "\n2 | " + tt.want; err != nil || e.text != want {
			t.Errorf("read from a file: %d bytes, want %d, %v", len(e.text), len(want), err)
		}
	}
}
