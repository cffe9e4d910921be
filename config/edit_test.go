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
		t.Fatalf("%q: got %v, want no error", text, err)
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
		{"beside dotted ones, which made the table", "t.u.a = 1\nb = 2\n", "t.u.x", text("3"), "t.u.a = 1\nt.u.x = 3\nb = 2\n"},
		{"beside dotted ones in a table", "[t]\nu.a = 1\n[v]\nb = 2\n", "t.u.x", text("3"), "[t]\nu.a = 1\nu.x = 3\n[v]\nb = 2\n"},
		{"a table above another one", "[t.u]\na = 1\n", "t.x", text("3"), "[t.u]\na = 1\n\n[t]\nx = 3\n"},
		{"no line break at the end", "a = 1", "model", text("m"), "a = 1\nmodel = \"m\"\n"},
		{"behind a byte order mark", "\ufeff[t]\nb = 2\n", "model", text("m"), "\ufeffmodel = \"m\"\n[t]\nb = 2\n"},
		{"behind a comment with a byte order mark", "\ufeff# a\n\n[t]\n", "model", text("m"), "\ufeff# a\n\nmodel = \"m\"\n[t]\n"},
		{"changed behind a byte order mark", "\ufeffmodel = \"x\"\n", "model", text("y"), "\ufeffmodel = \"y\"\n"},
		{"line breaks of Windows", "a = 1\r\n", "model", text("m"), "a = 1\r\nmodel = \"m\"\r\n"},
		{"numbers and booleans are bare", "", "n", text("12"), "n = 12\n"},
		{"an amount keeps its zeros", "", "n", text("0.50"), "n = \"0.50\"\n"},
		{"a number with zeros in front is a text", "", "n", text("007"), "n = \"007\"\n"},
		{"quotes and control characters", "", "n", text("a\"b\\c\x01\nd"), "n = \"a\\\"b\\\\c\\u0001\\nd\"\n"},
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

// A person edits by hand what a program wrote, and the other way round: many
// changes one after the other leave a file that a person would have written.
func TestAFileGrowsInOrder(t *testing.T) {
	t.Parallel()
	content := ""
	set := func(key string, v Value) { content = string(parse(t, content).With(key, v)) }
	unset := func(key string) { content = string(parse(t, content).Without(key)) }
	set("providers.anthropic.api_key", text("k"))
	set("model", text("m"))
	set("deny", texts("rm -rf", "git push"))
	set("providers.openai.base_url", text("http://x"))
	set("providers.anthropic.base_url", text("http://y"))
	set("max_turns", text("20"))
	content = strings.Replace(content, "max_turns = 20", "max_turns = 20   # enough", 1)
	set("model", text("n"))
	set("max_turns", text("30"))
	unset("deny")
	unset("providers.anthropic.api_key")
	want := lines(
		`model = "n"`,
		`max_turns = 30   # enough`,
		`[providers.anthropic]`,
		`base_url = "http://y"`,
		``,
		`[providers.openai]`,
		`base_url = "http://x"`,
		``,
	)
	if diff := cmp.Diff(want, content); diff != "" {
		t.Error(diff)
	}
}

// A value that stands over several lines goes and comes as one, and what stands
// around it does not move.
func TestListsOverLines(t *testing.T) {
	t.Parallel()
	const before = "a = 1\n# why\ndeny = [\n  \"x\", # first\n  \"y\",\n] # last\nb = 2\n"
	f := parse(t, before)
	for _, tt := range []struct{ name, got, want string }{
		{"changed", string(f.With("deny", texts("z"))), "a = 1\n# why\ndeny = [\"z\"]\nb = 2\n"},
		{"removed", string(f.Without("deny")), "a = 1\n# why\nb = 2\n"},
		{"before it", string(f.With("a", text("9"))), strings.Replace(before, "a = 1", "a = 9", 1)},
		{"behind it", string(f.With("b", text("9"))), strings.Replace(before, "b = 2", "b = 9", 1)},
		{"added", string(f.With("c", text("3"))), before + "c = 3\n"},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.name, diff)
		}
	}
}

// A table is removed with its settings and its header; settings below it that are another table's keep theirs.
func TestRemovedTables(t *testing.T) {
	t.Parallel()
	const file = "a = 1\n# mine\n[profiles.x]\nmodel = 'm'\nlist = [\n 'b',\n]\n[profiles.x.y]\nmodel = 'n'\n[z]\nc.d = 4\ne = 5\n"
	const rest = "[profiles.x.y]\nmodel = 'n'\n[z]\nc.d = 4\ne = 5\n"
	for _, tt := range []struct{ key, want string }{
		{"profiles.x", "a = 1\n# mine\n" + rest},
		{"profiles.x.y", strings.Replace(file, "[profiles.x.y]\nmodel = 'n'\n", "", 1)},
		{"profiles", file},
		{"profile", file},
		{"z", strings.Replace(file, "e = 5\n", "", 1)},
		{"z.c", strings.Replace(file, "c.d = 4\n", "", 1)},
	} {
		if diff := cmp.Diff(tt.want, string(parse(t, file).Without(tt.key))); diff != "" {
			t.Errorf("without %s: (-want +got)\n%s", tt.key, diff)
		}
	}
	for _, tt := range []struct{ key, file, want string }{ // a profile's name may have dots
		{"profiles.a", "[profiles]\na = 'k'\n'a.b' = 'l'\n", "[profiles]\n'a.b' = 'l'\n"},
		{"profiles.a", "[profiles]\n'a.b' = 'l'\n", "[profiles]\n'a.b' = 'l'\n"},
		{"profiles.a.model", "[profiles.a]\nmodel = 'm'\n[profiles.'a.model']\nmodel = 'n'\n", "[profiles.a]\n[profiles.'a.model']\nmodel = 'n'\n"},
	} {
		if diff := cmp.Diff(tt.want, string(parse(t, tt.file).Without(tt.key))); diff != "" {
			t.Errorf("without %s of two profiles: (-want +got)\n%s", tt.key, diff)
		}
	}
}

// Removing what is there and adding it again keeps its value and everybody else's.
func TestRemovedAndAddedAgain(t *testing.T) {
	t.Parallel()
	const file = "# top\n\na = 'x'\n[t]\nb = [\"1\", '2'] # two\n[u]\nc = 3\n"
	for _, e := range parse(t, file).Entries {
		without := parse(t, string(parse(t, file).Without(e.Key)))
		if _, there := without.Get(e.Key); there {
			t.Errorf("%s is still there", e.Key)
		}
		again := parse(t, string(without.With(e.Key, e.Value)))
		for _, was := range parse(t, file).Entries {
			if got, ok := again.Get(was.Key); !ok || !cmp.Equal(got.Value, was.Value) {
				t.Errorf("%s removed and added: %s is %+v, %v", e.Key, was.Key, got.Value, ok)
			}
		}
	}
}
