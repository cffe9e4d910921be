package mode

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPatternsAreJavaScript(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{`\.md$`, "docs/a.md", true},
		{`\.md$`, "docs/a.mdx", false},
		{`\.md$`, "a.md\n", false}, // the end is the end, not the last line's
		{`^src/`, "src/a.go", true},
		{`^src/`, "lib/src/a.go", false},
		{`\.(ts|tsx)$`, "a.tsx", true},
		{`^(?!.*secret).*\.md$`, "a.md", true},
		{`^(?!.*secret).*\.md$`, "secret/a.md", false},
		{`(?<=docs/)a`, "docs/a", true},
		{`(?<dir>docs)/\k<dir>`, "docs/docs", true},
		{`^\d+$`, "١٢", false}, // digits are ASCII
		{`^\w$`, "é", false},
		{`\u0061`, "a", true},
		{`^[^/]+$`, "a/b", false},
		{`a{2}`, "aa", true},
		{`A`, "a", false},
		{`[]`, "a", false},
		{`[^]`, "\n", true},
		{`[^]]`, "\n", false}, // anything, and a bracket behind it
		{`[^]]`, "a]", true},
		{`x[]a]`, "x]", false}, // nothing, and more behind it
		{`\/`, "/", true},
		{`^((\d{4})-){1}(a){2}(b){2}(?!c)(d){1,2}(e){2}$`, "2026-aabbdee", true},
	} {
		p, err := compile(c.pattern)
		if err != nil {
			t.Errorf("%s: got %v, want no error", c.pattern, err)
			continue
		}
		if got := p.match(c.path); got != c.want {
			t.Errorf("%s matches %q: %v", c.pattern, c.path, got)
		}
	}
	for _, bad := range []string{`[`, `(`, `a)`, `*a`, `a**`, `(?i)a`, `(?P<n>a)`, `(?#x)`, `(?>a)`,
		strings.Repeat("(a*)*", 50_000), strings.Repeat("(", 30) + "a" + strings.Repeat("{9})", 30) + "{9}", // the beginning of a match has 4^30 bytes
		`(?x)` + strings.Repeat("(", 30) + "a" + strings.Repeat(") {9}", 30)} {
		if _, err := compile(bad); err == nil {
			t.Errorf("%s is a pattern", bad)
		}
	}
}

// noDigitOrWord is a class with \D or \W in it, which the other engine takes for none of their
// characters (regexp2 v2, as ECMAScript): [\D/] does not find "/" there, and should.
var noDigitOrWord = regexp.MustCompile(`\[[^\]]*\\[DW]`)

// Where a pattern is matched by Go's engine, the other one says the same.
func TestBothEnginesAgree(t *testing.T) {
	fast := 0
	rapid.Check(t, func(r *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b", "/", ".", `\.`, "^", "$", "*", "+", "?", "|", "(", ")", "(?:", "[", "]", "[^", "-", `\d`, `\w`, `\D`, `\W`, `\/`, " ", "_", "0"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(r, "pattern"), "")
		path := rapid.StringMatching(`[ab/._0 \n-]{0,8}`).Draw(r, "path")
		p, err := compile(text)
		if err != nil || p.plain == nil || noDigitOrWord.MatchString(text) {
			return
		}
		fast++
		want, err := p.full.MatchString(path)
		if got := p.match(path); err != nil || got != want {
			r.Fatalf("%q in %q: %v, and %v (%v) with the other engine", text, path, got, want, err)
		}
	})
	if fast == 0 {
		t.Error("no pattern was matched by Go's engine")
	}
}

// A pattern that would take years is given up, and does not match.
func TestHostilePatternsEnd(t *testing.T) {
	for _, text := range []string{`(a+)+$`, `(?=x|(a+)+$)(a+)+$`, `(\w+\s?)*!(?!a)`} {
		p, err := compile(text)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		p.match(strings.Repeat("a", 60) + "b")
		if took := time.Since(begun); took > 300*matchTime { // a busy machine may need long; without a bound it is years
			t.Errorf("%s took %v", text, took)
		}
	}
}
