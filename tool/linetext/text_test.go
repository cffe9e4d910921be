package linetext

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

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
		u := UTF16(s)
		if Units(s) != len(u) {
			r.Fatalf("%q has %d units, as a slice %d", s, Units(s), len(u))
		}
		if utf8.ValidString(s) {
			if d := cmp.Diff(utf16.Encode([]rune(s)), u); d != "" && len(u) > 0 {
				r.Fatal(d)
			}
		}
	})
	for s, want := range map[string]int{"": 0, "é": 1, "😀": 2, "\xed\xa0\xbd": 1, "\xff": 1, "\xed\xa0": 2} {
		if got := Units(s); got != want {
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
		// A text is the same whether its lines are joined before or after.
		lines := strings.Split(strings.ReplaceAll(s, "a", "\n"), "\n")
		if got, want := NormalText(lines), NormalLine(strings.Join(lines, "\n")); got != want {
			r.Fatalf("%q: %q, want %q", lines, got, want)
		}
	})
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, n := rapid.String().Draw(r, "s"), rapid.IntRange(0, 40).Draw(r, "n")
		got := Cut(s, n)
		if !strings.HasPrefix(s, got) || Units(got) > n || got != s && Units(got) < n-1 {
			r.Fatalf("cut(%q, %d) = %q", s, n, got)
		}
	})
}
