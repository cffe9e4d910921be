package linetext

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace/terminal"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// wide gives texts in which surrogates stand alone (in three bytes), as JSON of
// JavaScript may hold them.
func wide() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "é", "日", "😀", "\xed\xa0\xbd", "\xed\xb8\x80", " ", "\n"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(p []string) string { return strings.Join(p, "") })
}

func TestUnitsAreThoseOfJavaScript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := wide().Draw(r, "s")
		u := terminal.UTF16(s)
		if terminal.Units(s) != len(u) {
			r.Fatalf("%q has %d units, as a slice %d", s, terminal.Units(s), len(u))
		}
		if utf8.ValidString(s) {
			if d := cmp.Diff(utf16.Encode([]rune(s)), u); d != "" && len(u) > 0 {
				r.Fatal(d)
			}
		}
	})
	for s, want := range map[string]int{"": 0, "é": 1, "😀": 2, "\xed\xa0\xbd": 1, "\xff": 1, "\xed\xa0": 2} {
		if got := terminal.Units(s); got != want {
			t.Errorf("%q: %d units, want %d", s, got, want)
		}
	}
}

func TestBlanksAreThoseOfJavaScript(t *testing.T) {
	for _, r := range "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff" {
		if !IsSpace(r) {
			t.Errorf("%U is none", r)
		}
	}
	for _, r := range "a\u0085\u200b\u180e\x00" {
		if IsSpace(r) {
			t.Errorf("%U is one", r)
		}
	}
	if got := Trim("\ufeff\u3000 a b\u00a0\n"); got != "a b" {
		t.Errorf("trimmed to %q", got)
	}
}

func TestNormalLines(t *testing.T) {
	for in, want := range map[string]string{
		"  a \t b  ": "a b", "“a” ‘b’": `"a" 'b'`, "a—b–c": "a-b-c", "wait…": "wait...", "a\u00a0\u3000b": "a b", "": "", " \t": "", "a": "a", "\ufeffa": "a",
	} {
		if got := NormalLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("ab \t“–…\u00a0é")), 0, 20, -1).Draw(r, "s")
		once := NormalLine(s)
		if NormalLine(once) != once {
			r.Fatalf("%q becomes %q and then %q", s, once, NormalLine(once))
		}
	})
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, n := rapid.String().Draw(r, "s"), rapid.IntRange(0, 40).Draw(r, "n")
		got := Cut(s, n)
		if !strings.HasPrefix(s, got) || terminal.Units(got) > n || got != s && terminal.Units(got) < n-1 {
			r.Fatalf("cut(%q, %d) = %q", s, n, got)
		}
	})
}

// However the bytes come, the lines are the same, with their ends; an error ends them, and of a line that is too long the
// beginning comes, and the end.
func TestLinesComeInAnyPieces(t *testing.T) {
	const limit = 100 << 10
	text := "one\n\ntwo\r\n" + strings.Repeat("y", 70<<10) + "\n" + strings.Repeat("z", 3*limit) + "\nend"
	want := []string{"one\n", "\n", "two\r\n", strings.Repeat("y", 70<<10) + "\n", strings.Repeat("z", limit) + "\n", "end"}
	collect := func(r io.Reader) (out []string, err error) {
		for line, e := range Lines(r, limit) {
			if e != nil {
				return out, e
			}
			out = append(out, string(line))
		}
		return out, nil
	}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		"halves": iotest.HalfReader(strings.NewReader(text)), "the end with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		if got, err := collect(r); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %d lines, %v, want %d", name, len(got), err, len(want))
		}
	}
	gone := errors.New("the disk is gone")
	got, err := collect(io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(gone)))
	if !errors.Is(err, gone) || !slices.Equal(got, []string{"one\n"}) {
		t.Errorf("got %q, %v, want one line and the error", got, err)
	}
	for range Lines(strings.NewReader("a\nb\n"), limit) {
		break
	}
}
