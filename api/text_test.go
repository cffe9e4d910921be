package api_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
)

// A command that Roost prints can be pasted into a shell.
func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"0199-abc": "0199-abc", "/home/me/a_b.md": "/home/me/a_b.md", "/a b": "'/a b'", "id~2": "id~2", "roo-1a:0199": "roo-1a:0199",
		"roo-1a:a b": "'roo-1a:a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "": "''", "~": "'~'", "-f": "'-f'", "a;b": "'a;b'", "a\nb": "'a\nb'",
	} {
		if got := api.ShellWord(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"rewind", "resume", "redo", "undo", "mode", "model"}
	for name, want := range map[string]string{"rewnid": "rewind", "rewinding": "", "mod": "mode", "res": "resume", "und": "undo", "qqqqq": "", "x": ""} {
		if got := api.Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

// The distance is one: none to itself, the same in both directions, at most the longer
// word, and one for each small slip.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{{"", "ab"}: 2, {"jsn", "json"}: 1, {"same", "same"}: 0, {"kitten", "sitting"}: 3, {"ab", "ba"}: 1, {"jsno", "json"}: 1} {
		if got := api.Distance(pair[0], pair[1]); got != want {
			t.Errorf("%v: got %d, want %d", pair, got, want)
		}
	}
	words := rapid.StringOfN(rapid.SampledFrom([]rune("abcé1")), 0, 8, -1)
	rapid.Check(t, func(r *rapid.T) {
		a, b := words.Draw(r, "a"), words.Draw(r, "b")
		d, x, y := api.Distance(a, b), []rune(a), []rune(b)
		if d != api.Distance(b, a) || (d == 0) != (a == b) || d > max(len(x), len(y)) || d < max(len(x), len(y))-min(len(x), len(y)) {
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
		if api.Distance(a, without) != 1 || api.Distance(a, string(other)) != 1 || j == i+1 && api.Distance(a, string(swapped)) > 1 {
			r.Fatalf("%q: got %q %q %q, want api.Distance(a, without) = 1 and api.Distance(a, string(other)) = 1 and (j != i+1 or api.Distance(a, string(swapped)) <= 1)",
				a, without, string(other), string(swapped))
		}
	})
}
