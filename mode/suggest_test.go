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

// The distance is one: none to itself, the same in both directions, at most the longer
// word, and one for each small slip.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{{"", "ab"}: 2, {"jsn", "json"}: 1, {"same", "same"}: 0, {"kitten", "sitting"}: 3, {"ab", "ba"}: 1, {"jsno", "json"}: 1} {
		if got := Distance(pair[0], pair[1]); got != want {
			t.Errorf("%v: got %d, want %d", pair, got, want)
		}
	}
	words := rapid.StringOfN(rapid.SampledFrom([]rune("abcé1")), 0, 8, -1)
	rapid.Check(t, func(r *rapid.T) {
		a, b := words.Draw(r, "a"), words.Draw(r, "b")
		d, x, y := Distance(a, b), []rune(a), []rune(b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(x), len(y)) || d < max(len(x), len(y))-min(len(x), len(y)) {
			r.Fatalf("got %q %q: %d, want d = Distance(b, a) and (d == 0) = (a == b) and d <= max(len(x), len(y)) and d >= max(len(x), len(y))-min(len(x), len(y))",
				a, b, d)
		}
		if len(x) == 0 {
			return
		}
		i := rapid.IntRange(0, len(x)-1).Draw(r, "i")
		without := string(slices.Delete(slices.Clone(x), i, i+1))
		other := slices.Clone(x)
		other[i] = 'z'
		swapped := slices.Clone(x)
		j := (i + 1) % len(x)
		swapped[i], swapped[j] = swapped[j], swapped[i]
		if Distance(a, without) != 1 || Distance(a, string(other)) != 1 || j == i+1 && Distance(a, string(swapped)) > 1 {
			r.Fatalf("%q: got %q %q %q, want Distance(a, without) = 1 and Distance(a, string(other)) = 1 and (j != i+1 or Distance(a, string(swapped)) <= 1)",
				a, without, string(other), string(swapped))
		}
	})
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
