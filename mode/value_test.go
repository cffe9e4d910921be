package mode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// What a plain word is depends on the version of YAML. Roo's is 1.2, and a word that
// is taken for something else costs a mode.
func TestPlainWords(t *testing.T) {
	for kind, words := range map[kind]string{
		aString: "yes no on off y n Yes 1_000 0b1 12:30 2001-01-01 1.2.3 .a +a 1a 0x 0o8 0xg e5 1e .e1 nil None tRUE",
		aNumber: "0 -1 +1 007 12.5 .5 1. 1e3 -1.5E-3 0o17 0xFf .inf -.INF .nan .NaN 1.0",
		aBool:   "true True TRUE false False FALSE",
		aNull:   "~ null Null NULL",
	} {
		for _, word := range strings.Fields(words) {
			v, err := readYAML("k: " + word + "\n")
			if got := v.member("k"); err != nil || got == nil || got.kind != kind {
				t.Errorf("%s: %+v, %v; want %s", word, got, err, kind)
			}
			for _, quoted := range []string{`"` + word + `"`, "'" + word + "'", "!!str " + word, "|-\n  " + word} {
				v, err := readYAML("k: " + quoted + "\n")
				if got := v.member("k"); err != nil || got == nil || got.kind != aString || got.text != word {
					t.Errorf("%s: got %+v, %v, want no error and got != nil and got.kind = aString and got.text = word",
						quoted, got, err)
				}
			}
		}
	}
}

// A tag makes no text of a map or a list.
func TestATagOfAMap(t *testing.T) {
	for _, text := range []string{"!!str {a: 1}", "!!str [a]", "!!str *x", "!!str\n  a: 1", "!!str\n  - a"} {
		v, err := readYAML("x: &x {a: 1}\nk: " + text + "\n")
		if got := v.member("k"); err == nil && got.kind == aString {
			t.Errorf("%s: got the text %q, want an error, a map or a list", text, got.text)
		}
	}
}

func TestKindsOfJSON(t *testing.T) {
	for text, want := range map[string]kind{
		`{}`: aMap, `[]`: aList, `"null"`: aString, `null`: aNull, `-1.5`: aNumber, `true`: aBool, `false`: aBool,
	} {
		v, err := readJSON(`{"k":` + text + `}`)
		if got := v.member("k"); err != nil || got == nil || got.kind != want {
			t.Errorf("%s: got %+v, %v, want %s", text, got, err, want)
		}
	}
}

// A file that a program wrote as JSON and one that a person wrote as YAML say the
// same, whatever the texts hold that YAML has a meaning for.
func TestJSONAndYAMLSayTheSame(t *testing.T) {
	word := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "B9", ": ", " #", "'", `"`, `\`, "\n", "\t", "- ", "*x", "&y", "{", "]", "%", "@", "é", "😀", "~", "12", "yes", "<<"}), 1, 6), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(r *rapid.T) {
		var jsonModes []string
		yaml := "customModes:\n"
		var want []Mode
		quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
		for i := range rapid.IntRange(1, 3).Draw(r, "modes") {
			m := Mode{
				Slug: fmt.Sprintf("m-%d", i), Name: word.Draw(r, "name"), RoleDefinition: word.Draw(r, "role"), WhenToUse: word.Draw(r, "when"),
				Source: Global, Path: "p", Groups: []Group{{Name: "read"}, {Name: "edit", FileRegex: rapid.SampledFrom([]string{`\.md$`, `^(?!x)`, "a b"}).Draw(r, "pattern"), Description: word.Draw(r, "description")}},
			}
			want = append(want, m)
			edit := fmt.Sprintf(`["edit",{"fileRegex":%s,"description":%s}]`, quote(m.Groups[1].FileRegex), quote(m.Groups[1].Description))
			jsonModes = append(jsonModes, fmt.Sprintf(`{"slug":%q,"name":%s,"roleDefinition":%s,"whenToUse":%s,"groups":["read",%s]}`,
				m.Slug, quote(m.Name), quote(m.RoleDefinition), quote(m.WhenToUse), edit))
			yaml += fmt.Sprintf("  - slug: %s\n    name: %s\n    roleDefinition: %s\n    whenToUse: %s\n    groups:\n      - read\n      - - edit\n        - fileRegex: '%s'\n          description: %s\n",
				m.Slug, quote(m.Name), quote(m.RoleDefinition), quote(m.WhenToUse), m.Groups[1].FileRegex, quote(m.Groups[1].Description))
		}
		for _, text := range []string{`{"customModes":[` + strings.Join(jsonModes, ",") + `]}`, yaml} {
			f := Parse(text, Global, "p")
			if d := cmp.Diff(want, f.Modes, cmpopts.IgnoreUnexported(Group{})); d != "" || len(f.Problems) > 0 {
				r.Fatalf("got %s\n%q\n%s, want d = \"\" and len(f.Problems) <= 0", text, f.Problems, d)
			}
		}
	})
}

// The bound of nesting is the same for both forms of a file: what is as deep as it is read, and one level more is not.
func TestFilesNestAsDeepAsTheBound(t *testing.T) {
	for _, read := range []struct {
		name string
		file func(string) (*value, error)
	}{{"JSON", readJSON}, {"YAML", readYAML}} {
		for depth, want := range map[int]error{maxDepth: nil, maxDepth + 1: errDeep} {
			_, err := read.file(strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth))
			if !errors.Is(err, want) {
				t.Errorf("%s, %d levels: got %v, want %v", read.name, depth, err, want)
			}
		}
	}
}
