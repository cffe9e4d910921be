package chat

import (
	"slices"
	"testing"
)

func TestWhatGoesOnInTheNextLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		more bool
		want string
	}{
		{"one", false, "one"},
		{`one \`, true, `one \`},
		{"one \\\ntwo", false, "one \ntwo"},
		{`a path\\`, false, `a path\\`},
		{"```go\nx := 1", true, "```go\nx := 1"},
		{"```go\nx \\\n```", false, "```go\nx \\\n```"},
		{"a ``` in the middle", false, "a ``` in the middle"},
		{"```\na\n```\nand\\", true, "```\na\n```\nand\\"},
		{"one  \n\n", false, "one"},
	} {
		if got := unfinished(tt.text); got != tt.more {
			t.Errorf("%q goes on: %v", tt.text, got)
		}
		if got := whole(tt.text); got != tt.want {
			t.Errorf("%q means %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestFields(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    nil,
		"a  b\tc":             {"a", "b", "c"},
		`a "b c" 'd "e'`:      {"a", "b c", `d "e`},
		`x="1 2"y ""`:         {"x=1 2y", ""},
		`an "end that is not`: {"an", "end that is not"},
	} {
		if got := fields(text); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
