package roofmt_test

import (
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

func TestUsersWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		words string
		own   bool
	}{
		"<task>\nmow\n</task>":                                    {"mow", true},
		"<user_message>\nmow </user_message> x":                   {"mow", true},
		"<task>\nmow":                                             {"mow", true},
		`<user_input mode="act">dig</user_input>`:                 {"dig", true},
		"<feedback>no</feedback><environment_details>":            {"no", true},
		"<environment_details>\n# Files":                          {"", false},
		"<environment_details>a <task>b</environment_details>\nc": {"c", false},
		"what is <environment_details>?":                          {"what is <environment_details>?", false},
		"<tasks>mow</tasks>":                                      {"<tasks>mow</tasks>", false},
		" a < b\n":                                                {"a < b", false},
		"":                                                        {"", false},
	} {
		if words, own := roofmt.UsersWords(text); words != want.words || own != want.own {
			t.Errorf("%q: got %q, %v, want %+v", text, words, own, want)
		}
	}
}
