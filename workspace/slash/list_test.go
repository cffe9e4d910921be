package slash

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The forms in which YAML writes a list of texts. What is no such list is none, and is
// never half of one: a skill must not be taken for one of more modes than it names.
func TestFrontMatterLists(t *testing.T) {
	for value, want := range map[string][]string{
		"[a]": {"a"}, "[a, b]": {"a", "b"}, `["a", 'b c' , d]`: {"a", "b c", "d"}, "[a, b,]": {"a", "b"}, "[a] # remark": {"a"},
		"\n- a\n- b":                       {"a", "b"},
		"\n  - a\n\n  # remark\n  - \"b\"": {"a", "b"},
		"\n- a # remark":                   {"a"},
		"# remark\n- a":                    nil,
		"":                                 nil,
		"a":                                nil,
		"[]":                               nil,
		"[a":                               nil,
		"a]":                               nil,
		"[a, ]b":                           nil,
		"[a, 3]":                           nil,
		"[a, [b]]":                         nil,
		"[a, {b: c}]":                      nil,
		`["a, b"]`:                         nil,
		"[a]\n  b":                         nil,
		"\n- a\nb: c":                      {"a"},
		"\n- a\n-b":                        nil,
		"\n- a\n  b":                       nil,
		"\n- [a]":                          nil,
		"{a: b}":                           nil,
		"|\n  - a":                         nil,
		"*alias":                           nil,
	} {
		f, body := Front("---\nlist: " + value + "\nname: x\n---\nbody")
		if strings.Contains(value, "\n-b") { // no list of fields any more
			if f != nil {
				t.Errorf("%q: got %v, want f = nil", value, f)
			}
			continue
		}
		if d := cmp.Diff(want, f.List("list")); d != "" || f.Text("name") != "x" && f.Text("b") == "" || body != "body" {
			t.Errorf(`%q: got %s (%v, %q), want d = "" and (f.Text("name") = "x" or f.Text("b") != "") and body = "body"`,
				value, d, f, body)
		}
	}
	if f, body := Front("no fields"); f != nil || f.Text("x") != "" || f.List("x") != nil || body != "no fields" {
		t.Errorf(`got %v %q, want f = nil and f.Text("x") = "" and f.List("x") = nil and body = "no fields"`,
			f, body)
	}
}

// A word that Go would read as a number is a word where YAML does.
func TestWordsAndNumbers(t *testing.T) {
	for word, text := range map[string]bool{
		"inf": true, "infinity": true, "nan": true, "NaN": true, "-inf": true, "e5": true, "x1": true, "1.2.3": true, "+-1": true, "-": false, "1a": true,
		"0x1f": false, "1": false, "-2.5e3": false, "+7": false, ".5": false, "1_000": false, ".inf": false, "-.Inf": false, ".NAN": false, "0b11": false, "99999999999999999999": false,
	} {
		f, _ := Front("---\nx: " + word + "\n---\n")
		if got := f.Text("x"); got != map[bool]string{true: word}[text] {
			t.Errorf("%s becomes %q", word, got)
		}
	}
}

// A list comes out as it was put in, in a line as in lines.
func TestListsSurvive(t *testing.T) {
	slugs := rapid.SliceOfN(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`).Filter(func(s string) bool { return s != "true" && s != "false" && s != "null" }), 1, 5)
	rapid.Check(t, func(r *rapid.T) {
		list := slugs.Draw(r, "list")
		for _, form := range []string{"[" + strings.Join(list, ", ") + "]", "\n- " + strings.Join(list, "\n- "), "\n   - '" + strings.Join(list, "'\n   - '") + "'"} {
			if f, _ := Front("---\nx: y\nmodeSlugs: " + form + "\n---\n"); cmp.Diff(list, f.List("modeSlugs")) != "" {
				r.Fatalf("%q becomes %q", form, f.List("modeSlugs"))
			}
		}
	})
}
