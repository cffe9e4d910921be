package catalog

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// wordsOf are the words that the index keeps of a text.
func wordsOf(text string) []string {
	var f features
	f.text(strings.ToLower(text))
	return strings.Fields(string(f.words))
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil}, {" \n.,;(){}", nil},
		{"Paint the fence, the FENCE", []string{"paint", "the", "fence"}},
		{"handle_click2(x)", []string{"handle", "click2", "x"}},
		{"src/a-b.go:12", []string{"src", "a", "b", "go", "12"}},
		{"éCOLE", []string{"école"}},
		{"修复a登", []string{"修", "复", "修复", "a", "登"}},
		{"コード", []string{"コ", "ー", "ド"}},
		{"🙂ok", []string{"🙂ok"}},
		{"e\u0301te\u0301", []string{"e\u0301te\u0301"}},
		{"a\xffb", []string{"a\ufffdb"}},
	} {
		got, want := wordsOf(c.text), slices.Clone(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" && len(got)+len(want) > 0 {
			t.Errorf("%q: got %s, want diff = \"\" or len(got)+len(want) <= 0", c.text, diff)
		}
	}
}

// However long a word is, no piece of it is much longer than a word may be, and each
// half piece of it stands whole in one.
func TestLongWordsAreCutIntoPieces(t *testing.T) {
	long := ""
	for i := range 500 {
		long += string(rune('a'+i*7%26)) + string(rune('a'+i*i%26))
	}
	pieces := wordsOf(long)
	for _, p := range pieces {
		if len(p) > longWord {
			t.Errorf("a piece of %d bytes", len(p))
		}
	}
	if len(pieces) > len(long)/halfWord+1 {
		t.Errorf("%d pieces of %d bytes", len(pieces), len(long))
	}
	for at := 0; at+halfWord <= len(long); at++ {
		if !slices.ContainsFunc(pieces, func(p string) bool { return strings.Contains(p, long[at:at+halfWord]) }) {
			t.Fatalf("what stands at %d is in no piece", at)
		}
	}
}

// What is wanted of a part for a term is in each text that holds the term: else a hit
// would be lost.
func TestWantedIsInEveryTextWithTheTerm(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "ab", "abc", "Fence", "_", "__", " ", "  ", "-", "/", ".", "\n", "登", "登录", "コード", "한", "é", "e\u0301", "İ", "ſ", "K", "ß", "\xff", "🙂", "👨‍👩‍👧", "٣", "Ⅷ", strings.Repeat("x", 31), strings.Repeat("yz", 40)}),
		rapid.StringN(0, 4, 16),
	)
	rapid.Check(t, func(r *rapid.T) {
		text := strings.ToLower(strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(r, "text"), ""))
		if text == "" {
			return
		}
		from := rapid.IntRange(0, len(text)-1).Draw(r, "from")
		to := rapid.IntRange(from+1, len(text)).Draw(r, "to")
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		for to < len(text) && !utf8.RuneStart(text[to]) {
			to++
		}
		var f features
		f.text(text)
		list := "\n" + string(f.words)
		var w wanted
		w.want(text[from:to])
		for _, word := range w.words {
			if !strings.Contains(list, word) {
				r.Errorf("%q of %q wants %q, and there are %q", text[from:to], text, word, list)
			}
		}
		for _, j := range w.joints {
			if !slices.Contains(f.joints, j) {
				r.Errorf("%q of %q wants a joint that is not there", text[from:to], text)
			}
		}
	})
}

// What is wanted tells texts apart that a list of their words would not.
func TestWantedLeavesOutOthers(t *testing.T) {
	for _, c := range []struct{ term, text string }{
		{"fence", "the hedge"}, {"red fence", "the fence was red"}, {"fence.go", "fences.gold"}, {"area/src/bed", "area src bed"},
		{"handle_click", "handle click"}, {"登录", "录登"}, {"复错", "修复登录错误"}, {"the red fence", "red, the fence"},
		{strings.Repeat("ab", 40), strings.Repeat("ba", 15)},
	} {
		var f features
		f.text(strings.ToLower(c.text))
		var w wanted
		w.want(strings.ToLower(c.term))
		missing := slices.ContainsFunc(w.words, func(s string) bool { return !strings.Contains("\n"+string(f.words), s) }) ||
			slices.ContainsFunc(w.joints, func(j uint32) bool { return !slices.Contains(f.joints, j) })
		if !missing {
			t.Errorf("a part with %q may hold %q", c.text, c.term)
		}
	}
}

func TestFeaturesBeginAnew(t *testing.T) {
	var f features
	f.text("red fence")
	f.reset()
	f.text("green hedge")
	var fresh features
	fresh.text("green hedge")
	if string(f.words) != string(fresh.words) || !slices.Equal(f.joints, fresh.joints) {
		t.Errorf("%q %v, want %q %v", f.words, f.joints, fresh.words, fresh.joints)
	}
}
