package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// Words of a task never act on a terminal, whatever form prints them; a pipe gets their bytes.
func TestNoFormActsOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const words = "begin\x1b]52;c;eA==\x07\x1b]0;title\x07\x1b[2J\x1bPq\x1b\\\x7f\u009b2J\u202egnp\u2066end"
	s.foreign("evil", words, 1776300000000)
	for _, args := range [][]string{
		{"export", "evil"},
		{"export", "evil", "--format", "md", "-o", "-"},
		{"export", "evil", "--format", "html"},
		{"export", "evil", "--format", "json"},
		{"export", "evil", "--json", "-o", "-"},
		{"list", "--json"},
		{"show", "evil", "--json"},
		{"show", "evil", "--ui", "--json"},
		{"show", "evil", "--api", "--json"},
		{"search", "begin", "--json"},
		{"doctor", "--json"},
		{"show", "ev\u009b2J\x7f\u202eil", "--json"}, // the error says it back
	} {
		x := s.onTerminal(args...)
		done := make(chan struct{})
		go func() { defer close(done); _ = x.cmd.Wait() }()
		<-done
		const end = "<end of the screen>"
		_, err := x.Device().WriteString(end)
		must(t, err)
		x.expect(end)
		if shown := x.screen(); strings.ContainsAny(shown, "\x1b\x07\x7f\u009b\u202e\u2066") {
			t.Errorf("roost %q shows %q", args, shown)
		}
	}
	x := s.onTerminal("export")
	x.expect("begin") // the task's row: while the picker looks for tasks, enter has none to act on
	x.press("\r")
	x.exits(failure.ExitDone)
	if shown := x.screen(); strings.ContainsAny(shown, "\u009b\u202e\u2066\x7f") || strings.Contains(shown, "]52;") || strings.Contains(shown, "]0;") || !strings.Contains(shown, "**User:**") {
		t.Errorf("the picker's export shows %q", shown)
	}
	if r := s.roost("export", "evil", "--no-redact"); !strings.Contains(r.out, words) {
		t.Errorf("a pipe gets other bytes than the task's: %q", r.out)
	}
	var list struct{ Items []struct{ Title string } }
	if r := s.roost("list", "--json"); json.Unmarshal([]byte(r.out), &list) != nil || !strings.Contains(r.out, "\u009b") {
		t.Errorf("list --json to a pipe: %q", r.out)
	}
}
