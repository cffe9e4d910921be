package main

import (
	"slices"
	"testing"
)

func TestChangesOfAFile(t *testing.T) {
	const source = `package p

func f(a, b int, s string) bool {
	if a < b && !done {
		a++
		return true
	}
	for a != 3 {
		if s == "x" {
			continue
		}
		b = a - b
		g(a)
	}
	return s+"text" == s
}
`
	found, err := inFile("p/f.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.What)
	}
	want := []string{
		"`a < b && !done` becomes `true || a < b && !done`",
		"`a < b && !done` becomes `false && (a < b && !done)`",
		"`a < b && !done` becomes `a < b || !done`",
		"`a < b` becomes `a <= b`",
		"`!done` becomes `done`",
		"`a++` becomes ``",
		"`true` becomes `false`",
		"`a != 3` becomes `a == 3`",
		"`3` becomes `(3 + 1)`",
		"`s == \"x\"` becomes `true || s == \"x\"`",
		"`s == \"x\"` becomes `false && (s == \"x\")`",
		"`s == \"x\"` becomes `s != \"x\"`",
		"`continue` becomes ``",
		"`b = a - b` becomes `_ = a - b`",
		"`a - b` becomes `a + b`",
		"`g(a)` becomes ``",
		"`s+\"text\" == s` becomes `s+\"text\" != s`",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	m := found[3]
	if changed := source[:m.from] + m.text + source[m.to:]; m.Place() != "p/f.go:4 (f)" || changed[m.from-2:m.from+4] != "a <= b" {
		t.Errorf("got %s and %q, want p/f.go:4 (f) and the change in its place", m.Place(), changed[m.from-2:m.from+4])
	}
}

func TestExplained(t *testing.T) {
	for text, want := range map[string]bool{
		"# a remark\n\np f `a` becomes `b` :: the same":  true,
		"p f `a` becomes `b`":                            false,
		"p f `a` becomes `b` :: ":                        false,
		"p f `a` becomes `b` :: one\nwithout a reason\n": false,
		"": true,
	} {
		got, err := parseExplained(text)
		if (err == nil) != want {
			t.Errorf("%q: got %v %v, want accepted = %v", text, got, err, want)
		}
	}
	if _, err := parseExplained(explainedText); err != nil {
		t.Errorf("explained.txt: got %v, want no error", err)
	}
}
