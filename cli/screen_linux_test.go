package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// lines are the screen's, without colours.
func lines(screen string) []string {
	return strings.Split(strings.TrimRight(colours.ReplaceAllString(screen, ""), "\n"), "\n")
}

func TestListOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 45 {
		s.foreign(fmt.Sprintf("task-%02d", i), "日本語の長い題名 and a title that goes on and on and on without any end", 1776100000000+int64(i))
	}
	screen := s.onTerminal("list").exits(failure.ExitDone)
	got := lines(screen)
	if len(got) != 1+24+2 { // of 30
		t.Errorf("%d lines: a screenful is wanted", len(got))
	}
	for _, line := range got[:25] {
		if display.Columns(line) > 100 {
			t.Errorf("%d columns in a terminal of 100: %s", display.Columns(line), line)
		}
	}
	if !strings.Contains(screen, "more: roost list --cursor newest.0.1776100000022.0.") || !strings.Contains(screen, "\x1b[") {
		t.Errorf("no colour, or no hint:\n%s", screen)
	}
	if grouped := s.onTerminal("list", "--group", "workspace").exits(failure.ExitDone); !strings.Contains(grouped, " 45 tasks, ") {
		t.Errorf("a group's sum is not that of all its tasks:\n%s", grouped)
	}
	if all := lines(s.onTerminal("list", "--limit", "0").exits(failure.ExitDone)); len(all) != 1+45+1 {
		t.Errorf("--limit 0 shows %d lines", len(all))
	}
	for _, line := range lines(s.inShell("roost list 2>/dev/null").exits(failure.ExitDone)) {
		if display.Columns(line) > 100 {
			t.Errorf("%d columns when stderr is no terminal: %s", display.Columns(line), line)
		}
	}
	// In a pipe nothing is cut, coloured or left out.
	if piped := s.inShell("roost list | cat").exits(failure.ExitDone); len(lines(piped)) != 1+45+1 || strings.Contains(piped, "\x1b") || !strings.Contains(piped, "TITLE") {
		t.Errorf("in a pipe:\n%s", piped)
	}
	if plain := s.onTerminal("list", "--no-color").exits(failure.ExitDone); strings.Contains(plain, "\x1b") {
		t.Error("colours with --no-color")
	}
	s.env("NO_COLOR=1")
	if plain := s.onTerminal("list").exits(failure.ExitDone); strings.Contains(plain, "\x1b") {
		t.Error("colours with NO_COLOR")
	}
}

func TestShowOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("long", "begin", 1776100000000)
	var rows []string
	for i := range 510 {
		rows = append(rows, fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"message %d \u001b[2J\u009b31m"}`, 1776100000000+i, i+1))
	}
	name := filepath.Join(s.store, "tasks", "long", "ui_messages.json")
	must(t, os.WriteFile(name, []byte("["+strings.Join(rows, ",")+"]"), 0o600))
	screen := s.onTerminal("show", "long").exits(failure.ExitDone)
	if strings.Contains(screen, "message 10 ") || !strings.Contains(screen, "message 11 ") || !strings.Contains(screen, "10 messages above: roost show long --all, or --before 11") {
		t.Errorf("not the last 500 messages:\n%s", screen)
	}
	if strings.ContainsAny(colours.ReplaceAllString(screen, ""), "\x1b\u009b") || strings.Contains(screen, "\x1b[2J") {
		t.Errorf("an escape of a message reached the terminal: %q", screen)
	}
	if all := s.onTerminal("show", "long", "--tail", "0").exits(failure.ExitDone); !strings.Contains(all, "message 1 ") {
		t.Error("--tail 0 does not show all")
	}
	// Programs get all of it, whatever stdout is.
	if all := s.onTerminal("show", "long", "--ui", "--json").exits(failure.ExitDone); !strings.Contains(all, `"message 1 `) {
		t.Error("--json is cut on a terminal")
	}
}

// A terminal shows the Markdown of the model's words alone; a pipe, and who wants no colours, get the text as it is.
func TestShowRendersMarkdownOnATerminalOnly(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("marked", "do **all** of it", 1776100000000)
	rows := `[{"ts":1,"type":"say","say":"text","text":"do **all** of it"},{"ts":2,"type":"say","say":"text","text":"I **did** it:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n    whole\n"},` +
		`{"ts":3,"type":"say","say":"completion_result","text":"- \u0060x\u0060 is *made*"}]`
	must(t, os.WriteFile(filepath.Join(s.store, "tasks", "marked", "ui_messages.json"), []byte(rows), 0o600))
	const shown = "#1 you\n  do **all** of it\n#2 model\n  I did it:\n\n  a │ b\n  ──┼──\n  1 │ 2\n\n    whole\n#3 result\n  • x is made\n"
	if got := strings.Join(lines(s.onTerminal("show", "marked").exits(failure.ExitDone)), "\n") + "\n"; !strings.HasSuffix(got, shown) {
		t.Errorf("a terminal got\n%s\nwant at its end\n%s", got, shown)
	}
	if got := strings.Join(lines(s.onTerminal("show", "marked", "--at", "2").exits(failure.ExitDone)), "\n"); !strings.Contains(got, "\n▶ #2 model\n  I did it:\n") {
		t.Errorf("--at 2 got\n%s", got)
	}
	const raw = "#2 model\n  I **did** it:\n  \n  | a | b |\n  |---|---|\n  | 1 | 2 |\n  \n      whole\n#3 result\n  - `x` is *made*\n"
	if got := s.roost("show", "marked").out; !strings.HasSuffix(got, raw) {
		t.Errorf("a pipe got\n%s\nwant at its end\n%s", got, raw)
	}
	if got := strings.Join(lines(s.onTerminal("show", "marked", "--no-color").exits(failure.ExitDone)), "\n") + "\n"; !strings.HasSuffix(got, raw) {
		t.Errorf("--no-color got\n%s\nwant at its end\n%s", got, raw)
	}
}

func TestNoInputNeverAsks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("ask_followup_question", `{question: "Which colour?", follow_up: [{text: red, mode: null}]}`))
	for _, flag := range []string{"--no-input", "--json"} {
		screen := s.onTerminal("run", flag, "--provider", "script", "--model", model, "-C", s.ws, "paint").exits(failure.ExitInput)
		if strings.Contains(screen, "> ") || !strings.Contains(screen, "Which colour?") {
			t.Errorf(`%s: got %s, want not strings.Contains(screen, "> ") and strings.Contains(screen, "Which colour?")`,
				flag, screen)
		}
	}
}

func TestAnswersOnATerminal(t *testing.T) {
	t.Parallel()
	command := call("execute_command", `{command: "./count.sh", cwd: null, timeout: null}`)
	long := call("write_to_file", `{path: long.txt, content: "`+strings.Repeat(`line\n`, 40)+`last\n"}`)
	tests := []struct {
		name, model string
		keys        []string // each a prompt's beginning, or keys after "<"
		shown       string
		made        string
	}{
		{"always covers the next of its kind", command + command + finish("ok"), []string{"q stop > ", "<a\n"}, "ok", "ran\nran\n"},
		{"once is once", command + command + finish("ok"), []string{"q stop > ", "<y\n", "q stop > ", "<n", "reason", "<\n"}, "ok", "ran\n"},
		{"a no with its reason", command + "- expect: [not on a Sunday]\n  tools: [{name: attempt_completion, input: {result: rested}}]\n",
			[]string{"q stop > ", "<n not on a Sunday\n"}, "rested", ""},
		{"letters that mean nothing ask again", command + finish("ok"), []string{"q stop > ", "<m", "answer with one of the letters", "q stop > ", "<d\n", "? execute_command ./count.sh", "q stop > ", "<Y\n"}, "ok", "ran\n"},
		{"the whole diff", long + finish("ok"), []string{"more lines, d shows all", "q stop > ", "<d\n", "+last", "q stop > ", "<n no\n"}, "ok", ""},
		{"answers typed ahead answer nothing", command + command + finish("ok"), []string{"y once", "<y\ny\n", "q stop > ", "<y", "q stop > ", "<n no\n"}, "ok", "ran\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			must(t, os.WriteFile(filepath.Join(s.ws, "count.sh"), []byte("#!/bin/sh\necho ran >> made\n"), 0o700))
			x := s.onTerminal("run", "--provider", "script", "--model", s.script(tt.model), "-C", s.ws, "go")
			for _, step := range tt.keys {
				if keys, ok := strings.CutPrefix(step, "<"); ok {
					x.press(keys)
				} else {
					x.expect(step)
				}
			}
			x.expect(tt.shown)
			x.exits(failure.ExitDone)
			made, err := os.ReadFile(filepath.Join(s.ws, "made"))
			if err != nil && !os.IsNotExist(err) || string(made) != tt.made {
				t.Errorf("the command left %q, %v; want %q", made, err, tt.made)
			}
		})
	}
}

// Ctrl-C at a question stops and saves; the question is still there.
func TestCtrlCAtAQuestion(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("write_to_file", `{path: note.txt, content: "x\n"}`) + finish("written"))
	x := s.onTerminal("run", "--provider", "script", "--model", model, "-C", s.ws, "go")
	x.expect("q stop > ")
	began := time.Now()
	x.press("\x03")
	x.expect("stopping and saving")
	x.exits(failure.ExitInterrupt)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := os.Stat(filepath.Join(s.ws, "note.txt")); err == nil {
		t.Error("it was written")
	}
	x = s.onTerminal("continue", "-C", s.ws)
	x.expect("q stop > ")
	x.press("y\n")
	x.expect("written")
	x.exits(failure.ExitDone)
}

// A model's words and a command's output cannot drive the terminal.
func TestHostileRunOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(`- text: "see \u001b[2J\u001b]0;owned\u0007 this"
  tools: [{name: execute_command, input: {command: "printf '\\033[31mred\\033]52;c;eA==\\007'", cwd: null, timeout: null}}]
- tools: [{name: attempt_completion, input: {result: "all \u001b[8m\u009b5m hidden"}}]
`)
	screen := s.onTerminal("run", "-v", "--yes", "--provider", "script", "--model", model, "-C", s.ws, "go").exits(failure.ExitDone)
	if left := colours.ReplaceAllString(screen, ""); strings.ContainsAny(left, "\x1b\a\u009b") || strings.Contains(screen, "\x1b[8m") || strings.Contains(screen, "\x1b[5m") {
		t.Errorf("an escape got through: %q", screen)
	}
	// For a program the result is what the model said.
	if r := s.roost("run", "--yes", "--provider", "script", "--model", model, "-C", s.ws, "go"); r.out != "all \x1b[8m\u009b5m hidden\n" {
		t.Errorf("stdout: %q", r.out)
	}
}
