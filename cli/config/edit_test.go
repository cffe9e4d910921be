package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f
}

func TestWith(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before, key string
		value             Value
		want              string
	}{
		{"into nothing", "", "model", text("m"), "model = \"m\"\n"},
		{"changed in its place", "a = 1\nmodel = \"x\"\nb = 2\n", "model", text("y"), "a = 1\nmodel = \"y\"\nb = 2\n"},
		{"its comment stays", "model = \"x # y\"   # why\n", "model", text("y"), "model = \"y\"   # why\n"},
		{"a comment behind a number stays", "max_turns = 3 # few\n", "max_turns", text("9"), "max_turns = 9 # few\n"},
		{"its indentation stays", "  model=\"x\"\n", "model", text("y"), "  model = \"y\"\n"},
		{"a list over lines becomes one line", "deny = [\n\"a\",\n]\nb = 1\n", "deny", texts("c"), "deny = [\"c\"]\nb = 1\n"},
		{"behind the others of the top", "a = 1\n\n# t\n[t]\nb = 2\n", "model", text("m"), "a = 1\nmodel = \"m\"\n\n# t\n[t]\nb = 2\n"},
		{"before the first table", "[t]\nb = 2\n", "model", text("m"), "model = \"m\"\n[t]\nb = 2\n"},
		{"behind the comment at the top", "# mine\n\n# t\n[t]\nb = 2\n", "model", text("m"), "# mine\n\nmodel = \"m\"\n# t\n[t]\nb = 2\n"},
		{"only comments", "# mine\n# all of it\n", "model", text("m"), "# mine\n# all of it\nmodel = \"m\"\n"},
		{"into its table", "[t]\nb = 2\n[u]\nc = 3\n", "t.x", text("m"), "[t]\nb = 2\nx = \"m\"\n[u]\nc = 3\n"},
		{"into an empty table", "[t]\n[u]\n", "t.x", text("m"), "[t]\nx = \"m\"\n[u]\n"},
		{"a new table", "a = 1\n", "t.u.x", text("m"), "a = 1\n\n[t.u]\nx = \"m\"\n"},
		{"a dotted one is changed where it is", "t.x = 1\n", "t.x", text("2"), "t.x = 2\n"},
		{"no line break at the end", "a = 1", "model", text("m"), "a = 1\nmodel = \"m\"\n"},
		{"line breaks of Windows", "a = 1\r\n", "model", text("m"), "a = 1\r\nmodel = \"m\"\r\n"},
		{"numbers and booleans are bare", "", "n", text("12"), "n = 12\n"},
		{"an amount keeps its zeros", "", "n", text("0.50"), "n = \"0.50\"\n"},
		{"a number with zeros in front is a text", "", "n", text("007"), "n = \"007\"\n"},
		{"quotes and control characters", "", "n", text("a\"b\\c\x01\nd"), "n = \"a\\\"b\\\\c\\u0001\\u000ad\"\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := parse(t, tt.before).With(tt.key, tt.value)
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if e, ok := parse(t, string(got)).Get(tt.key); !ok || !cmp.Equal(e.Value, tt.value) {
				t.Errorf("it reads back as %+v, %v", e.Value, ok)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	const file = "# top\na = 1\nb = [\n\"x\",\n] # c\n[t]\nc = 3\n"
	for key, want := range map[string]string{
		"a": "# top\nb = [\n\"x\",\n] # c\n[t]\nc = 3\n", "b": "# top\na = 1\n[t]\nc = 3\n", "t.c": "# top\na = 1\nb = [\n\"x\",\n] # c\n[t]\n", "nothing": file,
	} {
		if diff := cmp.Diff(want, string(parse(t, file).Without(key))); diff != "" {
			t.Errorf("without %s: %s", key, diff)
		}
	}
}

// Changing one setting changes that one: the others, their order and every
// comment stay, whatever the file looks like.
func TestChangesTouchOneSetting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"model", "deny", "mode", "t.x", "t.y", "u.v.w"}
		value := rapid.Custom(func(t *rapid.T) Value {
			if rapid.Bool().Draw(t, "list") {
				return Value{IsList: true, List: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "texts")}
			}
			return Value{Text: rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9]{1,5}(\.[0-9]{1,3})?`), rapid.Just("true")).Draw(t, "text")}
		})
		content := "# a comment # with a hash\n\n"
		f, err := Parse([]byte(content))
		want := map[string]Value{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			if err != nil {
				t.Fatalf("%q cannot be read: %v", content, err)
			}
			key := rapid.SampledFrom(keys).Draw(t, "key")
			if rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
				content = string(f.Without(key))
				delete(want, key)
			} else {
				v := value.Draw(t, "value")
				content = string(f.With(key, v))
				want[key] = v
			}
			f, err = Parse([]byte(content))
		}
		if err != nil {
			t.Fatalf("%q cannot be read: %v", content, err)
		}
		got := map[string]Value{}
		for _, e := range f.Entries {
			got[e.Key] = e.Value
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\nof the file:\n%s", diff, content)
		}
		if !strings.HasPrefix(content, "# a comment # with a hash\n\n") {
			t.Fatalf("the comment at the top is gone:\n%s", content)
		}
	})
}
