package tool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"make test":              "make test",
		"make\r\ntest":           "make",
		"\r\n\nmake":             "make",
		"tab\there":              "tab\ufffdhere",
		"\x1b[2K\rrm -rf /":      "\ufffd[2K\ufffdrm -rf /",
		"a\u202eb\u2066c\u200fd": "a\ufffdb\ufffdc\ufffdd",
		"a\u2028b":               "a\ufffdb",
		"caf\xe9":                "caf\ufffd",
		"é 日本 👩\u200d💻":          "é 日本 👩\u200d💻",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(r, "s"))
		got := OneLine(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x1b\u202e") || OneLine(got) != got {
			r.Fatalf("%q becomes %q", s, got)
		}
	})
}

// A mistake of the model stays one however it is wrapped on its way.
func TestInputErrorIsFound(t *testing.T) {
	err := fmt.Errorf("plan the call: %w", &InputError{Tool: "read_file", Reason: "no path"})
	var wrong *InputError
	if !errors.As(err, &wrong) || wrong.Error() != "read_file: no path" {
		t.Errorf("got %v", err)
	}
}

func ExampleOneLine() {
	fmt.Println(OneLine("echo \x1b[31mred\nrm -rf /"))
	// Output: echo �[31mred
}
