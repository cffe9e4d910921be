package search

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/workspace"
	"pgregory.net/rapid"
)

func TestGlobsAreWrittenOut(t *testing.T) {
	for glob, want := range map[string][]string{
		"*.go":          {"*.go"},
		"*.{a,b}":       {"*.a", "*.b"},
		"{a,b}{1,2}":    {"a1", "a2", "b1", "b2"},
		"x{a,{b,c}}y":   {"xay", "xby", "xcy"},
		"{}":            {""},
		"{a}":           {"a"},
		"a{b":           {"a{b"},
		"a}b":           {"a}b"},
		"{a,}":          {"a", ""},
		"{a,b}{c":       {"a{c", "b{c"},
		"":              {""},
		"{,,}":          {"", "", ""},
		"src/{x/**,y}/": {"src/x/**/", "src/y/"},
	} {
		if d := cmp.Diff(want, expandBraces(glob, 256)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", glob, d)
		}
	}
	if got := expandBraces(strings.Repeat("{a,b}", 20), 256); got != nil {
		t.Errorf("a million alternatives give %d", len(got))
	}
	if _, err := CompileGlob(strings.Repeat("{a,b}", 20)); err == nil || !strings.Contains(err.Error(), "too many alternatives") {
		t.Errorf("compileGlob: %v", err)
	}
}

func TestWhichNamesAGlobMeans(t *testing.T) {
	for glob, want := range map[string]string{
		"":           "a.go #b !c d/a.go",
		"*":          "a.go #b !c d/a.go",
		" *.go\t":    "a.go d/a.go",
		"!*.go":      "#b !c",
		"! *.go":     "a.go #b !c d/a.go",
		"./a.go":     "a.go d/a.go",
		"./d/*":      "d/a.go",
		"!./d/*":     "a.go #b !c",
		"#b":         "#b",
		"{#b,!c}":    "#b !c",
		"!!c":        "a.go #b d/a.go",
		"{,a.go}":    "a.go d/a.go",
		"!{#b,a.go}": "!c",
	} {
		means, err := CompileGlob(glob)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"a.go", "#b", "!c", "d/a.go"} {
			if means(name) {
				got = append(got, name)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", glob, d)
		}
	}
}

// Whether a line is matched whole or piece by piece makes no difference.
func TestLongLinesMatchLikeShortOnes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pad := strings.Repeat(rapid.SampledFrom([]string{" ", "é", "\xff", "ab"}).Draw(r, "pad"), longLine)
		text := rapid.SampledFrom([]string{"needle", "Needle", "needles", "", "é", "\xc3"}).Draw(r, "text")
		line := []byte(pad + text)
		if rapid.Bool().Draw(r, "at the start") {
			line = []byte(text + pad)
		}
		re := regexp.MustCompile(rapid.SampledFrom([]string{"needle", "^needle", "needle$", `\bneedle\b`, "(?i)NEEDLE", "é$", "^é"}).Draw(r, "pattern"))
		got, err := match(context.Background(), re, line)
		if want := re.Match(line); err != nil || got != want {
			r.Fatalf("%s: %v, %v, want %v", re, got, err, want)
		}
	})
}

func FuzzSearch(f *testing.F) {
	f.Add("a\nb\r\n\xff\n\x00", "b|", "*.{a,b}")
	f.Add("x", "(?s).", "!{")
	f.Fuzz(func(t *testing.T, text, pattern, glob string) {
		if _, err := CompileGlob(glob); err != nil && !strings.Contains(err.Error(), "alternatives") {
			t.Errorf("%q: got %v, want no error or strings.Contains(err.Error(), \"alternatives\")", glob, err)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ws, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Files(t.Context(), ws, ws.Root(), re, func(string) bool { return true })
		if err != nil || !utf8.ValidString(got) {
			t.Errorf("got %q %v, want no error and utf8.ValidString(got)", got, err)
		}
	})
}
