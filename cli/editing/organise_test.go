package editing

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// -TAG takes a tag away; what is a flag everywhere else stays one.
func TestRemovals(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"id +a -b":              "id +a --remove=b",
		"-b id":                 "--remove=b id",
		"id -q -v -h -qv":       "id -q -v -h -qv",
		"id -quick":             "id --remove=quick",
		"id --json -json":       "id --json --remove=json",
		"id - --":               "id - --",
		"id -a -- -a --json":    "id --remove=a -- -a --json",
		"id --remove q -ä":      "id --remove q --remove=ä",
		"":                      "",
		"--root /r id -a --b=c": "--root /r id --remove=a --b=c",
	} {
		if got := removals(strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// What is printed for getting a task back can be pasted into a shell.
func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"0199-abc": "0199-abc", "/home/me/a_b.md": "/home/me/a_b.md", "/a b": "'/a b'", "id~2": "id~2", "roo-1a:0199": "roo-1a:0199",
		"roo-1a:a b": "'roo-1a:a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "": "''", "~": "'~'", "-f": "'-f'", "a;b": "'a;b'", "a\nb": "'a\nb'",
	} {
		if got := failure.ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
