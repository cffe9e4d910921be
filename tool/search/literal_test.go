package search

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWhatEveryMatchHolds(t *testing.T) {
	for pattern, want := range map[string]string{
		"needle":                     "[needle] false",
		`func [a-z]+Needle\(`:        "[Needle(] false",
		"(?i)Needle":                 "[needle] true",
		"(?i)asks":                   "[] false", // a long s is an s too
		"(?i)makefile":               "[efile] true",
		"(?i)İstanbul":               "[tanbul] true",
		"(foo|barb)":                 "[foo barb] false",
		"a+bc(de)*":                  "[bc] false",
		"(abc){2,}x":                 "[abc] false",
		"(abc)?":                     "[] false",
		"(?i:ab)longer":              "[longer] false",
		"x":                          "[] false",
		"[ab]":                       "[] false",
		"foo|.":                      "[] false",
		"foo|(?i)bar":                "[] false",
		"caf\ufffd":                  "[] false",
		"^$":                         "[] false",
		"été":                        "[été] false",
		"a1|b2|c3|d4|e5|f6|g7|h8|i9": "[] false",
	} {
		f := newMatcher(regexp.MustCompile(pattern))
		texts := []string{}
		for _, s := range f.texts {
			texts = append(texts, string(s))
		}
		if got := fmt.Sprint(texts, f.fold); got != want {
			t.Errorf("%q: %s, want %s", pattern, got, want)
		}
	}
}

// Looking ahead never loses a line: a text that some pattern matches is one that may.
func TestNoMatchIsLost(t *testing.T) {
	patterns := rapid.SampledFrom([]string{"ab", "(?i)ab", "(?i)ask", "a+b", "(ab|ba)+", "(?i)(ab|cd)x?", `\bab`, "^ab$", "(?i)K\u017f", "a.b", "ab{2}", "(?i)é+ab", "[^a]ab", `\xffab`, "(ab)?b"})
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "A", "B", "ab", "k", "\u212a", "\u017f", "s", "é", "É", "\xff", "\ufffd", " ", "x", "cd", "CD"}))
	rapid.Check(t, func(r *rapid.T) {
		re := regexp.MustCompile(patterns.Draw(r, "pattern"))
		text := []byte(strings.Join(pieces.Draw(r, "text"), ""))
		if f := newMatcher(re); re.Match(text) && !f.possible(text) {
			r.Fatalf("%s matches %q, which holds none of %q", re, text, f.texts)
		}
	})
}
