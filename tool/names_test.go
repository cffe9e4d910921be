package tool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSafeNames(t *testing.T) {
	for name, want := range map[string]string{
		"a.go": "a.go", "é 日本 😀": "é 日本 😀", "a b": "a b", "-rf": "-rf", `a"b\c`: `a"b\c`,
		"a\nb":          `"a\nb"`,
		"tab\there":     `"tab\there"`,
		"\x1b[31mred":   `"\x1b[31mred"`,
		"caf\xe9":       `"caf\xe9"`,
		"x\u202egnp.js": `"x\u202egnp.js"`,
		"x\u2028y":      `"x\u2028y"`,
		"\u0085":        `"\u0085"`,
	} {
		if got := SafeName(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := string(rapid.SliceOf(rapid.Byte()).Draw(r, "name"))
		got := SafeName(name)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, misleading) {
			r.Fatalf("%q is shown as %q", name, got)
		}
	})
}
