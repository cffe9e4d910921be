package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/screen"
)

// pictureSizes are those that pictures of screens are kept of.
var pictureSizes = []screen.Size{{Columns: 80, Lines: 24}, {Columns: 120, Lines: 35}, {Columns: 200, Lines: 60}}

// told is a task of an editor, as a person left it.
type told struct {
	tool, folder, title, last string
	hours                     int
	cost                      float64
	kind                      string // of the last row
}

const (
	rooStorage   = "rooveterinaryinc.roo-cline"
	clineStorage = "saoudrizwan.claude-dev"
)

// street are made-up tasks: what the pictures show.
var street = []told{
	{rooStorage, "/home/ana/shop", "Add a discount code to the checkout", "Which currencies does the code hold for?", 2, 0.42, "followup"},
	{rooStorage, "/home/ana/shop", "Fix the flaky test of the cart", "The clock of the test stood still; it passes 200 times now.", 5, 1.08, "completion_result"},
	{clineStorage, "/home/ana/blog", "Move the blog to a static site generator", "All 84 posts are converted; links are checked.", 26, 3.5, "completion_result"},
	{rooStorage, "/home/ana/shop", "Auto-deploy script for the shop", "The script deploys to staging after each merge.", 50, 0.77, "completion_result"},
	{clineStorage, `C:\work\invoices`, "Invoices as PDF, with the new letterhead", "The letterhead is on every page.", 170, 0.19, "completion_result"},
	{rooStorage, "/home/ana/dotfiles", "Why does the shell take two seconds to start?", "nvm is loaded eagerly; it is lazy now.", 700, 0.03, "completion_result"},
}

// pictured is a sandbox in a folder whose name always has the same width: what a picture cuts and wraps stays.
func pictured(t *testing.T) *sandbox {
	t.Helper()
	pictures.Lock() // it may be made once at a time
	s := newSandbox(t)
	s.dir = fmt.Sprintf("/tmp/roost%08d", os.Getpid()%1e8)
	t.Cleanup(func() {
		_ = os.RemoveAll(s.dir)
		pictures.Unlock()
	})
	s.root, s.store, s.ws = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "store"), filepath.Join(s.dir, "api")
	for _, d := range []string{s.store, s.ws, filepath.Join(s.dir, "home"), filepath.Join(s.dir, "tmp")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	return s
}

var pictures sync.Mutex

// furnish puts the street into the storages of VS Code, and one task that waits for an answer into Roost's own root.
func (s *sandbox) furnish() {
	s.t.Helper()
	s.env("ROOST_SOURCES=auto", "ROOST_PROVIDER=script")
	storages := filepath.Join(s.dir, "home", ".config", "Code", "User", "globalStorage")
	for i, t := range street {
		ts := time.Now().Add(-time.Duration(t.hours)*time.Hour - 30*time.Minute).UnixMilli()
		id := fmt.Sprintf("0b5e7c1%d-3d52-4c8e-9a10-6f2d4b8e7a0%d", i, i)
		last := []any{map[string]any{"ts": ts, "type": "ask", "ask": t.kind, "text": t.last}}
		if t.kind == "completion_result" {
			last = []any{map[string]any{"ts": ts, "type": "say", "say": t.kind, "text": t.last}, map[string]any{"ts": ts, "type": "ask", "ask": t.kind, "text": ""}}
		}
		files := map[string]any{
			"ui_messages.json":              append([]any{map[string]any{"ts": ts - 1, "type": "say", "say": "text", "text": t.title}}, last...),
			"api_conversation_history.json": []any{map[string]any{"role": "user", "content": t.title, "ts": ts - 1}, map[string]any{"role": "assistant", "content": t.last, "ts": ts}},
			"history_item.json": map[string]any{"id": id, "number": i + 1, "ts": ts, "task": t.title, "tokensIn": 1200 * (i + 1), "tokensOut": 90,
				"totalCost": t.cost, "workspace": t.folder},
		}
		for name, v := range files {
			data, err := json.Marshal(v)
			must(s.t, err)
			name = filepath.Join(storages, t.tool, "tasks", id, name)
			must(s.t, os.MkdirAll(filepath.Dir(name), 0o700))
			must(s.t, os.WriteFile(name, data, 0o600))
			must(s.t, os.Chtimes(name, yesterday, yesterday))
		}
	}
	model := s.script(call("ask_followup_question", `{question: "Shall the old endpoint stay?", follow_up: [{text: yes, mode: null}, {text: no, mode: null}]}`))
	if r := s.roost("run", "--model", model, "Rename the endpoint /orders to /purchases"); r.code != failure.ExitInput {
		s.t.Fatalf("a run that asks: exit %d\n%s", r.code, r.err)
	}
}

var (
	anID      = regexp.MustCompile(`01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	rowMoment = regexp.MustCompile(`(?m)^(..) *\d+[sm] `)
	moment    = regexp.MustCompile(`· \d+[sm] ·`)
)

// steady makes a picture the same in each run: folders, ids and the moments since the task of Roost was made.
func (s *sandbox) steady(text string) string {
	text = rowMoment.ReplaceAllString(strings.ReplaceAll(text, s.dir, "/home/ana/projects"), "$1  0s ")
	return anID.ReplaceAllString(moment.ReplaceAllString(text, "· 0s ·"), "01a00000-0000-7000-8000-000000000000")
}

// The pictures of the picker are kept in testdata/screens. ROOST_GOLDEN=rewrite makes them anew.
func TestScreensOfThePicker(t *testing.T) {
	t.Parallel()
	s := pictured(t)
	s.furnish()
	for i, size := range pictureSizes {
		x := s.attach(s.command())
		must(t, x.Resize(size))
		picture := func(name string) {
			t.Helper()
			screen.Golden(t, x.Terminal, fmt.Sprintf("screens/%s-%dx%d", name, size.Columns, size.Lines), s.steady)
		}
		x.until("Rename the endpoint", "Shall the old endpoint stay?")
		if i == 0 { // it is offered once by itself
			x.until("Import copies?")
		} else {
			x.press("I")
		}
		picture("picker")
		if c := x.Picture().Find("Rename the"); c == nil || !c.Look.Reverse {
			t.Errorf("the row under the cursor looks %+v, want it reversed", c)
		}
		x.press("nf")
		picture("picker-filter")
		x.press("\x1b")
		x.until("!Show only")
		x.press("/deploy")
		x.until("Auto-deploy script", "hits in 1")
		picture("picker-search")
		if c := x.Picture().Find("deploy script"); c == nil || c.Look.Fg != screen.Palette(2) {
			t.Errorf("what is searched for looks %+v, want it green", c)
		}
		x.press("\x1b")
		x.until("? keys")
		x.press("\x1b")
		x.until("/ searches")
		x.press("jd")
		picture("picker-delete")
		x.press("nr")
		x.until("Folder to use")
		picture("picker-folder")
		x.press("\x1b")
		x.until("!Folder to use")
		x.press("?")
		picture("picker-keys")
		x.press("qq")
		x.exits(failure.ExitDone)
		x.left()
	}
}

func TestScreensWithoutATask(t *testing.T) {
	t.Parallel()
	s := pictured(t)
	for _, size := range pictureSizes {
		x := s.attach(s.command())
		must(t, x.Resize(size))
		screen.Golden(t, x.Terminal, fmt.Sprintf("screens/picker-empty-%dx%d", size.Columns, size.Lines), s.steady)
		x.press("q")
		x.exits(failure.ExitDone)
	}
}

// What the commands of a day show: a question with its diff, the end of a run, a list of commands in a chat, and what
// was found.
func TestScreensOfADay(t *testing.T) {
	t.Parallel()
	s := pictured(t)
	s.furnish()
	must(t, os.WriteFile(filepath.Join(s.ws, "index.html"), []byte("<html>\n<h1>Hello</h1>\n</html>\n"), 0o600))
	s.env("ROOST_SOURCES=auto", "ROOST_PROVIDER=script", "NO_COLOR=", "COLORFGBG=15;0", "ROOST_MODEL="+s.script(`
- text: "The **greeting** is on the first page:\n\n| file | line |\n|---|---|\n| index.html | 2 |\n\nI will change it."
  usage: {input: 1200, output: 80}
  tools: [{name: write_to_file, input: {path: index.html, content: "<html>\n<h1>Good morning</h1>\n</html>\n"}}]
- usage: {input: 1400, output: 30}
  tools: [{name: attempt_completion, input: {result: "The greeting is **changed**."}}]
`))
	for _, size := range pictureSizes {
		at := func(args ...string) *terminal { return s.attachAt(s.command(args...), size) }
		picture := func(x *terminal, name string) {
			t.Helper()
			screen.Golden(t, x.Terminal, fmt.Sprintf("screens/%s-%dx%d", name, size.Columns, size.Lines), s.steady)
		}
		for name, line := range map[string]string{
			"search": "search the --source cline", "show": "show 0b5e7c12", "usage": "usage --by folder --source cline",
		} {
			x := at(strings.Fields(line)...)
			x.exits(failure.ExitDone)
			picture(x, name)
		}
		x := at("run", "-C", s.ws, "Greet with good morning")
		x.until("q stop >")
		picture(x, "approval")
		if c := x.Picture().Find("+<h1>Good"); c == nil || c.Look.Fg == x.Picture().Find("<html>").Look.Fg {
			t.Error("an added line looks like one that stays")
		}
		x.press("n")
		x.until("reason for the model")
		x.press("say good evening\r")
		x.until("completed")
		x.exits(failure.ExitDone)

		x = at("chat", "-C", s.ws)
		x.until("? for all keys")
		x.press("/mo")
		x.until("/model")
		picture(x, "chat-popup")
		x.press("\x1b")
		x.until("!the mode of the next run")
		x.press("\x15")
		x.until("!/mo")
		x.press("\x04")
		x.exits(failure.ExitDone)
	}
}
