package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
)

// hidden is a call whose first line is harmless.
const hidden = `{command: "git log --oneline -3\nid > PWNED", cwd: null, timeout: null}`

// A person who is asked about a command sees all of it, and where it runs.
func TestTheWholeCommandIsAsked(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	outside := t.TempDir()
	blanks := `{command: "git log` + strings.Repeat(" ", 300) + `; id > PWNED", cwd: ` + outside + `, timeout: null}`
	model := s.script(call("execute_command", hidden) + call("execute_command", blanks) + call("execute_command", `{command: "git log -1", cwd: null, timeout: null}`) + finish("all is refused"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "look")
	x.expect("? execute_command")
	x.expect("      git log --oneline -3")
	x.expect("      id > PWNED")
	x.expect("  y once, n no (reason), d whole command, q stop > ")
	x.press("a\n")
	x.expect("nothing that always allows this would hold")
	x.expect("q stop > ")
	x.press("d\n")
	x.expect("      id > PWNED")
	x.expect("q stop > ")
	x.press("n not that\n")
	x.expect("? execute_command «in " + outside + "» git log«300 blanks»; id > PWNED")
	x.expect("q stop > ")
	x.press("n nor that\n")
	x.expect("? execute_command git log -1")
	x.expect("a: always allow `git log` commands in this task")
	x.expect("y once, a always")
	x.expect("q stop > ")
	x.press("n nor that\n")
	x.expect("all is refused")
	x.exits(failure.ExitDone)
	for _, dir := range []string{s.ws, outside} {
		if _, err := os.Stat(filepath.Join(dir, "PWNED")); err == nil {
			t.Errorf("it ran in %s", dir)
		}
	}
}

// The question says the same to those who are not on the terminal.
func TestTheWholeCommandStandsInTheQuestion(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("execute_command", hidden) + finish("done"))
	r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "look")
	if r.code != failure.ExitInput || !strings.Contains(r.err, "? execute_command\n    git log --oneline -3\n    id > PWNED\n") {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	if r = s.roost("questions"); !strings.Contains(r.out, "    git log --oneline -3\n") || !strings.Contains(r.out, "    id > PWNED\n") {
		t.Errorf("roost questions:\n%s", r.out)
	}
	var page api.Page[api.Question]
	r = s.roost("questions", "--json")
	must(t, json.Unmarshal([]byte(r.out), &page))
	if len(page.Items) != 1 || page.Items[0].Command != "git log --oneline -3\nid > PWNED" || page.Items[0].Dir != s.ws || page.Items[0].Always != "" {
		t.Errorf("roost questions --json:\n%s", r.out)
	}
	x := s.onTerminal("chat", "--provider", "script", "--model", model, "-C", s.ws, page.Items[0].Task)
	x.expect("git log --oneline -3")
	x.expect("id > PWNED")
	x.expect("d whole command")
}
