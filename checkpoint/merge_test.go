package checkpoint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMergeText(t *testing.T) {
	base := "a\nb\nc\nd\ne\nf\n"
	for name, c := range map[string]struct{ base, mine, theirs, want string }{
		"two places":                 {base, "A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\n", "A\nb\nc\nd\ne\nF\n"},
		"mine first, theirs first":   {base, "a\nb\nc\nd\ne\nF\n", "A\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n"},
		"insert and delete":          {base, "0\n" + base, "a\nb\nc\nd\ne\n", "0\na\nb\nc\nd\ne\n"},
		"a line between":             {base, "A\nb\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", "A\nb\nC\nd\ne\nf\n"},
		"side by side":               {base, "A\nb\nc\nd\ne\nf\n", "a\nB\nc\nd\ne\nf\n", "!"},
		"the same line":              {base, "A\nb\nc\nd\ne\nf\n", "x\nb\nc\nd\ne\nf\n", "!"},
		"the same change":            {base, "A\nb\nc\nd\ne\nF\n", "A\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nF\n"},
		"one within the other":       {base, "a\nX\nf\n", "a\nb\nC\nd\ne\nf\n", "!"},
		"two inserts at one place":   {base, "a\n1\nb\nc\nd\ne\nf\n", "a\n2\nb\nc\nd\ne\nf\n", "!"},
		"all deleted, nothing since": {base, "", base, ""},
		"all deleted, one changed":   {base, "", "A\nb\nc\nd\ne\nf\n", "!"},
		"the end gets a newline":     {"a\nb\nc", "a\nb\nc\n", "A\nb\nc", "A\nb\nc\n"},
		"append behind no newline":   {"a\nb\nc", "a\nb\nc\nd", "a\nb\nC", "!"},
		"windows lines":              {"a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"},
		"other line ends":            {base, strings.ReplaceAll(base, "\n", "\r\n"), "A\nb\nc\nd\ne\nf\n", "!"},
		"of nothing":                 {"", "a\n", "b\n", "!"},
		"bytes":                      {"a\x00\nb\nc\n", "A\x00\nb\nc\n", "a\x00\nb\nC\n", "!"},
		"bytes that one side left":   {"a\x00\n", "a\x00\n", "b\xff\n", "b\xff\n"},
		"not UTF-8":                  {base, "\xff\n" + base, base + "x\n", "!"},
	} {
		got, ok := MergeText([]byte(c.base), []byte(c.mine), []byte(c.theirs))
		if !ok {
			got = []byte("!")
		}
		if string(got) != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

func TestLargeTextsAreNotMerged(t *testing.T) {
	base := bytes.Repeat([]byte("line\n"), maxMerge/5+1)
	if _, ok := MergeText(base, append([]byte("a\n"), base...), append(base[:len(base):len(base)], "z\n"...)); ok {
		t.Error("merged")
	}
}

func anyText(t *rapid.T, label string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", ""}), 0, 14).Draw(t, label)
	text := strings.Join(lines, "\n")
	if rapid.Bool().Draw(t, label+" ends") {
		text += "\n"
	}
	return text
}

func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, x, y := anyText(t, "base"), anyText(t, "x"), anyText(t, "y")
		for name, c := range map[string]struct{ mine, theirs, want string }{
			"only theirs": {base, x, x}, "only mine": {x, base, x}, "both the same": {x, x, x},
		} {
			if got, ok := MergeText([]byte(base), []byte(c.mine), []byte(c.theirs)); !ok || string(got) != c.want {
				t.Fatalf("%s: got %q %t, want ok and string(got) = %v", name, got, ok, c.want)
			}
		}
		one, ok := MergeText([]byte(base), []byte(x), []byte(y))
		two, ok2 := MergeText([]byte(base), []byte(y), []byte(x))
		if ok != ok2 || !bytes.Equal(one, two) {
			t.Fatalf("sides matter: %q %t, %q %t", one, ok, two, ok2)
		}
	})
}

// Changes of lines that are apart merge to both of them; of the same line they conflict.
func TestEditsOfTheirOwnLinesMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		var base, mine, theirs, want strings.Builder
		fight := false
		for i := range n {
			still := fmt.Sprintf("still %d\n", i)
			slot, m, th, w := fmt.Sprintf("slot %d\n", i), "", "", ""
			m, th, w = slot, slot, slot
			mineNew := rapid.SampledFrom([]string{"", "mine\n", fmt.Sprintf("mine %d\nand more\n", i)}).Draw(t, "mine")
			theirsNew := rapid.SampledFrom([]string{"", "theirs\n", fmt.Sprintf("theirs %d\n", i)}).Draw(t, "theirs")
			switch rapid.IntRange(0, 12).Draw(t, "who") {
			case 0, 1, 2:
				m, w = mineNew, mineNew
			case 3, 4, 5:
				th, w = theirsNew, theirsNew
			case 6:
				m, th, w = "both\n", "both\n", "both\n"
			case 7:
				m, th = "mine\n", "theirs\n"
				fight = true
			}
			base.WriteString(slot + still)
			mine.WriteString(m + still)
			theirs.WriteString(th + still)
			want.WriteString(w + still)
		}
		got, ok := MergeText([]byte(base.String()), []byte(mine.String()), []byte(theirs.String()))
		if ok == fight || ok && string(got) != want.String() {
			t.Fatalf("%t\n%s\nnot\n%s", ok, got, want.String())
		}
	})
}

// longest is the length of the longest common subsequence, by the plain table.
func longest(a, b [][]byte) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			up := row[j+1]
			if bytes.Equal(a[i], b[j]) {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diagonal = up
		}
	}
	return row[len(b)]
}

// edited applies edits, and fails where they are not in order or not apart.
func edited(t interface{ Fatalf(string, ...any) }, a, b [][]byte, edits []edit) []byte {
	var out []byte
	at, newAt := 0, 0
	for i, e := range edits {
		if e.from < at || e.to < e.from || e.newFrom-newAt != e.from-at || i > 0 && e.from == at {
			t.Fatalf("edit %d is out of order: %+v", i, edits)
		}
		out = apply(out, a[at:e.from], b[e.newFrom:e.newTo])
		at, newAt = e.to, e.newTo
	}
	return apply(out, a[at:], nil)
}

func TestDiffLinesIsRightAndShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := anyText(t, "x"), anyText(t, "y")
		a, b := splitLines([]byte(x)), splitLines([]byte(y))
		edits := diffLines(a, b)
		if got := edited(t, a, b, edits); string(got) != y {
			t.Fatalf("%q, not %q", got, y)
		}
		work := 0
		for _, e := range edits {
			work += e.to - e.from + e.newTo - e.newFrom
		}
		if best := len(a) + len(b) - 2*longest(a, b); work != best {
			t.Fatalf("%d lines go or come, %d would do: %+v", work, best, edits)
		}
	})
}

// Texts with nothing in common take no longer than the bound allows, and still come out
// right.
func TestDiffLinesIsBounded(t *testing.T) {
	var x, y strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&x, "%d\n", i)
		fmt.Fprintf(&y, "%d\n", (i*7919)%40_000)
	}
	a, b := splitLines([]byte(x.String())), splitLines([]byte(y.String()))
	if got := edited(t, a, b, diffLines(a, b)); string(got) != y.String() {
		t.Error("it is another text")
	}
}

func FuzzMergeText(f *testing.F) {
	f.Add("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
	f.Add("a", "a\n", "\na")
	f.Add("", "\n", "x")
	f.Fuzz(func(t *testing.T, base, mine, theirs string) {
		a, b := splitLines([]byte(base)), splitLines([]byte(mine))
		if got := edited(t, a, b, diffLines(a, b)); string(got) != mine {
			t.Fatalf("%q, not %q", got, mine)
		}
		got, ok := MergeText([]byte(base), []byte(mine), []byte(theirs))
		other, ok2 := MergeText([]byte(base), []byte(theirs), []byte(mine))
		if ok != ok2 || !bytes.Equal(got, other) {
			t.Fatalf("sides matter: %q %t, %q %t", got, ok, other, ok2)
		}
		if !ok {
			return
		}
		// Every line of the result is one that somebody wrote.
		known := map[string]bool{}
		for _, text := range []string{base, mine, theirs} {
			for _, l := range splitLines([]byte(text)) {
				known[string(l)] = true
			}
		}
		for _, l := range splitLines(got) {
			if !known[string(l)] {
				t.Fatalf("nobody wrote %q", l)
			}
		}
	})
}

// apply adds lines to a text.
func apply(out []byte, kept, added [][]byte) []byte {
	return append(append(out, bytes.Join(kept, nil)...), bytes.Join(added, nil)...)
}
