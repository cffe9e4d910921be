package approval

import (
	"os"
	"strings"
	"testing"
)

// grouped calls check with each line of a file in testdata, and the pattern above it.
func grouped(t *testing.T, name string, check func(pattern, line string)) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	pattern, count := "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if p, ok := strings.CutPrefix(line, "# "); ok {
			pattern = p
			continue
		}
		count++
		check(pattern, line)
	}
	if count < 300 {
		t.Errorf("%s has %d lines only", name, count)
	}
}

// TestEverydayLinesAreAllowed: what people do all day needs no question once its pattern
// is there.
func TestEverydayLinesAreAllowed(t *testing.T) {
	grouped(t, "everyday.txt", func(pattern, line string) {
		if v := Command(line, []string{pattern}, nil); v.State != Allow {
			t.Errorf("%q does not allow %q: %s", pattern, line, v.Reason)
		}
	})
}

// TestOptionsThatRunOrWriteAreAsked: the pattern names the program, and the line makes it
// run another program, or write or read where it should not.
func TestOptionsThatRunOrWriteAreAsked(t *testing.T) {
	grouped(t, "attacks.txt", func(pattern, line string) {
		if v := Command(line, []string{pattern}, nil); v.State != Ask || v.Reason == "" || v.Reason == "no pattern allows it" {
			t.Errorf("%q: %q is %s: %s", pattern, line, v.State, v.Reason)
		}
	})
}
