package approval

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-dev/roost/tool"
)

// testdata/hostile.txt holds lines that run, write or change something called "evil",
// each as a shell, or the program that it names, really reads it. A line in quotes is a
// Go string, for what cannot be typed; "# " names what follows.

// listFor is an allow list of every word of a line and every two neighbours, but for what
// is evil: whatever of the line a person may have meant to allow, it is there.
func listFor(line string) []string {
	var list []string
	add := func(p string) {
		if !strings.Contains(p, "evil") {
			list = append(list, p)
		}
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()", r) })
	for i, w := range words {
		w = strings.Trim(w, `"'`)
		add(w)
		if i > 0 {
			add(strings.Trim(words[i-1], `"'`) + " " + w)
		}
	}
	return append(list, "ls", "cat", "git", "git log", "echo", "true", "*")
}

// TestNoHostileLineIsAllowed gives each line to an allow list that names every program and
// every word in it but the one that it smuggles in.
func TestNoHostileLineIsAllowed(t *testing.T) {
	group, count := "", 0
	seen := map[string]bool{}
	hostile, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(hostile)) {
		line := strings.TrimSuffix(text, "\n")
		if name, ok := strings.CutPrefix(line, "# "); ok {
			group = name
			continue
		}
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, `"`) {
			var err error
			if line, err = strconv.Unquote(line); err != nil {
				t.Fatalf("%s: got %s: %v, want no error", group, text, err)
			}
		}
		if seen[line] {
			t.Errorf("%s: %q is there twice", group, line)
		}
		seen[line] = true
		count++
		allow := listFor(line)
		if v := Command(line, allow, nil); v.State == Allow {
			t.Errorf("%s: %q is allowed: %s", group, line, v.Reason)
		}
		for _, mode := range []string{ModeAsk, ModeRead, ModeEdits} {
			p := Policy{Mode: mode, Allow: allow, AllowTools: []string{"*", "execute_command", "write", "write(/**)"}}
			ask := askOf(line)
			ask.Tool = "execute_command"
			if d := Decide(p, tool.Command, ask); d.State == Allow {
				t.Errorf("%s: %q is allowed under %s: %+v", group, line, mode, d)
			}
		}
		if p := Pattern(line); p != "" && Command(line, []string{p}, nil).State == Allow && !strings.Contains(p, "evil") {
			t.Errorf("%s: \"always\" would allow %q for %q", group, p, line)
		}
	}
	if count < 400 {
		t.Errorf("only %d lines", count)
	}
	t.Logf("%d lines", count)
}
