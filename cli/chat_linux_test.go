package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
)

// chats starts a chat on a terminal.
func (s *sandbox) chats(args ...string) *terminal {
	s.t.Helper()
	s.slow()
	if len(args) == 0 { // without a model it leads through setting one up
		args = []string{"--provider", "script"}
	}
	x := s.onTerminal(append([]string{"chat"}, args...)...)
	x.until("Ctrl-D leaves", "›")
	return x
}

// says types a line when the editor is empty.
func (x *terminal) says(line string) {
	x.t.Helper()
	x.empty()
	x.press(line + "\r")
}

// empty waits for an editor with nothing in it.
func (x *terminal) empty() {
	x.t.Helper()
	x.holds("")
}

// holds waits for an editor with a text in it.
func (x *terminal) holds(text string) {
	x.t.Helper()
	x.when("an editor with "+text, func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		for _, line := range lines[max(len(lines)-4, 0):] { // the status line is below it, and maybe a hint
			if strings.TrimRight(line, " ") == strings.TrimRight("› "+text, " ") {
				return true
			}
		}
		return false
	})
}

// quits leaves with Ctrl-D, and gives the task.
func (x *terminal) quits() (task string) {
	x.t.Helper()
	x.empty()
	x.press("\x04")
	end := x.exits(failure.ExitDone)
	m := regexp.MustCompile(`go on: roost chat ([0-9a-f-]+), or roost resume`).FindStringSubmatch(end)
	if m == nil {
		x.t.Fatalf("it does not say how to go on:\n%s", end)
	}
	return m[1]
}

func TestChat(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- text: Good day to you\n" + finish("the first is done") + "- text: Good evening\n" + finish("the second is done") + finish("the third is done"))
	x := s.chats("--provider", "script", "--model", model)
	x.says("hello\x1b\rin two lines") // alt+enter
	x.until("› hello\n  in two lines", "Good day to you", "the first is done", "completed")
	x.says("go on")
	x.until("› go on", "Good evening", "the second is done")
	x.says("/cost")
	x.until("tokens in")
	x.says("/nonsense")
	x.until("there is no command /nonsense")
	x.empty()
	x.press("\x1b[A")
	x.holds("/nonsense") // Up brings it back to be mended
	x.press("\x15/title two\x7f\x7f\x7fthe chat\r")
	x.until("the chat", "!there is no command /title")
	x.says("/rew\t~1 --dry-run")
	x.until("would take back")
	id := x.quits()
	if items := s.list(); len(items) != 1 || items[0].ID != id || items[0].Title != "the chat" || items[0].Status != "completed" {
		t.Errorf("the tasks: %+v", items)
	}
	if shown := s.roost("show", id, "--ui"); !strings.Contains(shown.out, "go on") || !strings.Contains(shown.out, "in two lines") {
		t.Errorf("the task holds:\n%s", shown.out)
	}
	r := s.roost("resume", id, "and now")
	if r.code != failure.ExitDone || !strings.Contains(r.out, "the third is done") {
		t.Errorf("resume: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestChatQueuesWhileItWorks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	ready := filepath.Join(s.dir, "go")
	model := s.script(call("execute_command", `{command: "while [ ! -e `+ready+` ]; do sleep 0.05; done", cwd: null, timeout: null}`) +
		"- expect: [\"also this\"]\n  tools: [{name: attempt_completion, input: {result: both are done}}]\n")
	x := s.chats("--provider", "script", "--model", model, "--yes")
	x.says("wait")
	x.until("working; Esc stops it", "$ while")
	x.press("also this\r")
	x.until("queued 1: also this")
	must(t, os.WriteFile(ready, nil, 0o600))
	x.until("› also this", "both are done", "completed", "!queued 1")
	x.quits()
}

func TestChatIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	mark := filepath.Join(s.dir, "running")
	model := s.script(call("execute_command", `{command: "echo $$ > `+mark+`; sleep 60", cwd: null, timeout: null}`) + finish("after all"))
	x := s.chats("--provider", "script", "--model", model, "--yes")
	x.says("wait")
	pid := s.pid(mark)
	began := time.Now()
	x.press("\x1b")
	x.until("stopping and saving", "cancelled", "!working;")
	s.gone(pid)
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	x.says("go on then")
	x.until("after all", "completed")
	x.press("\x03")
	x.until("Ctrl-C again leaves")
	x.press("\x03\x03") // on a busy machine the first of them comes too late to be the second
	x.expect("all is saved; go on: roost chat ")
	x.exits(failure.ExitDone)
}

func TestChatAsks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("write_to_file", `{path: note.txt, content: "one\n"}`) +
		call("ask_followup_question", `{question: "Which colour?", follow_up: [{text: red, mode: null}, {text: blue, mode: null}]}`) + finish("written"))
	x := s.chats("--provider", "script", "--model", model)
	x.says("write it")
	x.until("note.txt", "+one", "q stop >")
	x.press("\r")
	x.until("Enter alone is not an answer", "q stop >")
	if _, err := os.Stat(filepath.Join(s.ws, "note.txt")); err == nil {
		t.Fatal("it was written before the yes")
	}
	x.press("y")
	x.until("Which colour?", "2. blue", "your own words (q alone stops) >")
	x.press("2\r")
	x.until("written", "completed")
	if data, err := os.ReadFile(filepath.Join(s.ws, "note.txt")); err != nil || string(data) != "one\n" {
		t.Errorf("note.txt: %q, %v", data, err)
	}
	x.quits()
}

func TestChatRewindsAndUndoes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(finish("the first") + finish("the second"))
	x := s.chats("--provider", "script", "--model", model)
	x.says("one")
	x.until("the first", "completed")
	x.says("two")
	x.until("the second")
	x.says("/rewind")
	x.until("took back", "back: roost undo")
	x.says("/undo")
	x.until("/undo", "rewind")
	x.says("/show 50")
	x.until("#8 result\n  the second")
	x.quits()
}

// What was typed is there in the next chat, but for what began with a blank.
func TestChatKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	x := s.chats()
	x.says("/help resume")
	x.until("turn to another task")
	x.says(" /a secret \x15/queue")
	x.until("needs a task")
	x.press("\x15")
	x.empty()
	x.press("\x04")
	x.exits(failure.ExitDone)
	x = s.chats()
	x.press("\x1b[A")
	x.until("› /queue")
	x.press("\x1b[A")
	x.until("› /help resume")
	x.press("\x15\x12que")
	x.until("(search: que) /queue")
	x.press("\x07")
	x.empty()
	x.press("\x04")
	x.exits(failure.ExitDone)
	info, err := os.Stat(filepath.Join(s.dir, "home", ".local", "state", "roost", "chat_history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
}

// What is pasted stays whole, and is sent by nobody but the person.
func TestChatPaste(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- expect: [\"line one\\nline two\"]\n  tools: [{name: attempt_completion, input: {result: got both}}]\n")
	x := s.chats("--provider", "script", "--model", model)
	x.press("\x1b[200~line one\rline two\r\x1b[201~")
	x.until("› line one\n  line two")
	x.press("\r")
	x.until("got both")
	x.quits()
}

func TestChatFromAPipe(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(finish("the first") + call("write_to_file", `{path: note.txt, content: "one\n"}`) + finish("the second"))
	pipe := func(in string, args ...string) result {
		cmd := s.command(append([]string{"chat", "--provider", "script", "--model", model}, args...)...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
		_ = cmd.Run() // the exit code says it
		return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	r := pipe("one\nwrite it\nyes\n")
	if r.code != failure.ExitInput || r.out != "the first\n" || !strings.Contains(r.err, "note.txt") || !strings.Contains(r.err, "waits for an answer") {
		t.Fatalf("exit %d\n%s---\n%s", r.code, r.out, r.err)
	}
	items := s.list()
	if len(items) != 1 {
		t.Fatalf("tasks: %+v", items)
	}
	r = pipe("/answer yes\n", items[0].ID)
	if data, err := os.ReadFile(filepath.Join(s.ws, "note.txt")); r.code != failure.ExitDone || !strings.Contains(r.out, "the second") || err != nil || string(data) != "one\n" {
		t.Errorf("exit %d\n%s---\n%s\nnote.txt %q, %v", r.code, r.out, r.err, data, err)
	}
}

// A line of a pipe that cannot be done ends the chat, with the exit code of what was wrong.
func TestAPipeEndsWithWhatWasWrong(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	model := s.script(finish("the first") + finish("the second"))
	for _, c := range []struct {
		in, told string
		args     []string
		code     int
	}{
		{"one\ntwo\n", "nowhere.yaml", []string{"--model", "nowhere.yaml"}, failure.ExitConfig},
		{"one\ntwo\n", "reach the server", []string{"--server", "http://127.0.0.1:1"}, failure.ExitServer},
		{"one\ntwo\n", "find the task", []string{"nothing", "--model", model}, failure.ExitNotFound},
		{"/nonsense\ntwo\n", "there is no command /nonsense", []string{"--model", model}, failure.ExitUsage},
		{"/show\ntwo\n", "there is none yet", []string{"--model", model}, failure.ExitFailed},
	} {
		cmd := s.command(append([]string{"chat", "--provider", "script"}, c.args...)...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.in), &out, &errs
		_ = cmd.Run() // the exit code says it
		if code := cmd.ProcessState.ExitCode(); code != c.code || out.String() != "" || strings.Count(errs.String(), "roost: ") != 1 || strings.Contains(errs.String(), "✗") || !strings.Contains(errs.String(), c.told) || !strings.Contains(errs.String(), "\n  try: ") {
			t.Errorf("%q %q: exit %d, want %d\n%s---\n%s", c.in, c.args, code, c.code, out.String(), errs.String())
		}
	}
	if items := s.list(); len(items) != 0 {
		t.Errorf("tasks were made: %+v", items)
	}
}

// Whatever ends it, the terminal is as it was.
func TestChatGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	x := s.chats()
	x.press("some words")
	x.until("› some words")
	must(t, x.cmd.Process.Signal(syscall.SIGTERM))
	x.exits(failure.ExitTerminated)
	x.left()
	x = s.chats()
	x.press("/quit\r")
	x.exits(failure.ExitDone)
	x.left()
}

// With a server the chat is the same, and the run outlives it.
func TestChatWithAServer(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	ready := filepath.Join(s.dir, "go")
	model := s.script(finish("the first") + call("execute_command", `{command: "while [ ! -e `+ready+` ]; do sleep 0.05; done", cwd: null, timeout: null}`) + finish("the second"))
	server := s.command("serve", "--listen", "127.0.0.1:0", "--json")
	out, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	var at struct{ URL string }
	must(t, json.NewDecoder(out).Decode(&at))
	s.env("ROOST_SERVER=" + at.URL)
	x := s.chats("--provider", "script", "--model", model, "--yes")
	x.says("one")
	x.until("the first", "completed")
	x.says("two")
	x.until("working; Esc stops it", "$ while")
	x.press("\x03")
	x.until("Ctrl-C again leaves")
	x.press("\x03\x03") // on a busy machine the first of them comes too late to be the second
	x.expect("the run continues at the server; follow it: roost chat ")
	x.exits(failure.ExitDone)
	x.left()
	must(t, os.WriteFile(ready, nil, 0o600))
	s.within(time.Minute, "the run at the server ended", func() bool {
		items := s.list()
		return len(items) == 1 && items[0].Status == "completed"
	})
	x = s.chats(s.list()[0].ID)
	x.until("the second")
	x.says("/cost")
	x.until("tokens in")
	x.empty()
	x.press("\x04")
	x.exits(failure.ExitDone)
}
