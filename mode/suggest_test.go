package mode

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a person may have meant.
func TestWhatWasMeant(t *testing.T) {
	docs := Parse(`{"customModes":[{"slug":"docs-writer","name":"📝 Docs Writer","roleDefinition":"R","groups":[]},{"slug":"é-no","name":"x","roleDefinition":"R","groups":[]}]}`, Project, "")
	set := Merge(docs.Modes, nil)
	for given, want := range map[string]string{
		"cod": "code", "Code": "code", "CODE": "code", "coed": "code", "codee": "code", "💻 Code": "code", "c o d e": "code",
		"architekt": "architect", "arch": "architect", "orchestrate": "orchestrator", "debugger": "debug", "aks": "ask",
		"docs": "docs-writer", "docswriter": "docs-writer", "Docs Writer": "docs-writer", "docs_writer": "docs-writer",
		"": "", "zzz": "", "😀": "", strings.Repeat("x", 1000): "", "\x00": "",
	} {
		m, err := set.Lookup(given)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Slug != given || m.Slug != "" {
			t.Errorf("%q: got %+v %v, want errors.As(err, &unknown) and unknown.Slug = given and m.Slug = \"\"",
				given, m, err)
			continue
		}
		first := ""
		if len(unknown.Closest) > 0 {
			first = unknown.Closest[0]
		}
		if first != want {
			t.Errorf("%.20q: %q, want %q", given, unknown.Closest, want)
		}
		if d := slices.Compare(unknown.Known, set.Slugs()); d != 0 || !strings.Contains(err.Error(), "architect, code, ask") {
			t.Errorf("got %v, want d = 0 and strings.Contains(err.Error(), \"architect, code, ask\")", err)
		}
	}
	if m, err := set.Lookup("docs-writer"); err != nil || m.Name != "📝 Docs Writer" {
		t.Errorf("got %+v %v, want no error and m.Name = \"📝 Docs Writer\"", m, err)
	}
}

// Whatever is asked for, known slugs are found and suggestions are known slugs, each
// once.
func TestSuggestionsExist(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var set Set
		given := rapid.OneOf(rapid.String(), rapid.SampledFrom(set.Slugs())).Draw(r, "given")
		_, err := set.Lookup(given)
		if (err == nil) != slices.Contains(set.Slugs(), given) {
			r.Fatalf("%q: got %v, want (err == nil) = slices.Contains(set.Slugs(), given)", given, err)
		}
		var unknown *UnknownError
		if errors.As(err, &unknown) {
			for i, s := range unknown.Closest {
				if !slices.Contains(set.Slugs(), s) || slices.Contains(unknown.Closest[:i], s) {
					r.Fatalf("%q: got %q, want slices.Contains(set.Slugs(), s) and not slices.Contains(unknown.Closest[:i], s)",
						given, unknown.Closest)
				}
			}
		}
	})
}
