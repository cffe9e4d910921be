//go:build unix

package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command reads the file that it is given, and its two outputs can be kept apart. A file that it does not read, and a
// background process that holds stderr, keep nobody waiting.
func TestInputAndErrors(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte(strings.Repeat("line\n", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][2]string{
		"head -n 1; echo bad >&2":                {"line\n", "bad\n"},
		"wc -l | tr -d ' '":                      {"100000\n", ""},
		"echo out; sleep 1000 & echo held >&2":   {"out\n", "held\n"},
		"exec 2>&-; echo out":                    {"out\n", ""},
		"echo a >&2; echo b; echo c >&2; exit 3": {"b\n", "a\nc\n"},
	} {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var out, complaints bytes.Buffer
		_, err = Run(t.Context(), Command{Line: line, Dir: t.TempDir(), Input: file, Output: &out, Errors: &complaints})
		_ = file.Close()
		if got := [2]string{out.String(), complaints.String()}; err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", line, got, err, want)
		}
	}
}
