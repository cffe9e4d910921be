package api_test

import (
	"testing"

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
