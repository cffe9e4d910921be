package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/screen"
)

// frame is a terminal that pictures are kept of. Those of the usual size hold how each cell looks.
type frame struct {
	screen.Options
	looks bool
}

var frames = []frame{
	{screen.Options{Size: screen.Size{Columns: 80, Lines: 24}}, true},
	{screen.Options{Size: screen.Size{Columns: 80, Lines: 24}, Light: true}, true},
	{screen.Options{Size: screen.Size{Columns: 120, Lines: 35}}, false},
	{screen.Options{Size: screen.Size{Columns: 200, Lines: 60}}, false},
}

// String names a frame's files.
func (f frame) String() string {
	name := fmt.Sprintf("%dx%d", f.Columns, f.Lines)
	if f.looks {
		name += map[bool]string{false: "-dark", true: "-light"}[f.Light]
	}
	return name
}

// framed runs a test with each frame at once.
func framed(t *testing.T, test func(t *testing.T, f frame)) {
	t.Helper()
	all := frames
	if raced && testing.Short() {
		all = all[:1] // the same code runs in each
	}
	for _, f := range all {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// framed starts roost in a frame. Where looks are kept it has the colours of the frame's ground, else the sixteen by their
// names, which a drawn picture shows on both grounds.
func (s *sandbox) framed(t *testing.T, f frame, args ...string) *terminal {
	t.Helper()
	cmd := s.command(args...)
	if f.looks {
		cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORFGBG="+map[bool]string{false: "15;0", true: "0;15"}[f.Light])
	}
	return &terminal{Terminal: screen.On(t, cmd, f.Options), t: t, cmd: cmd}
}

// kept compares the screen with the picture of that name.
func (s *sandbox) kept(x *terminal, f frame, name string) {
	x.t.Helper()
	golden := screen.Golden
	if f.looks {
		golden = screen.GoldenLooks
	}
	golden(x.t, x.Terminal, "screens/"+name+"-"+f.String(), s.steady)
}

// told is a task of an editor, as a person left it.
type told struct {
	tool, folder, title, last string
	hours                     int
	cost                      float64
	kind                      string   // of the last row
	talk                      []string // of the model, between the title and the last
}

const (
	rooStorage   = "rooveterinaryinc.roo-cline"
	clineStorage = "saoudrizwan.claude-dev"
)

// talk is long, and Markdown.
var talk = append([]string{
	"I look at the test first, and at what it waits for.",
	"## What is wrong\n\nThe test reads the clock **twice**:\n\n| line | reads | gets |\n|---|---|---|\n| 14 | `time.Now()` | the real time |\n| 31 | `clock.Now()` | the time of the test |\n\n" +
		"So the cart expires when a second begins between them. Two ways out:\n\n1. give the clock to the cart,\n2. let the test wait.\n\n> Waiting makes it slow, and rarer, but not right.",
	"The change is small:\n\n```go\nfunc (c *Cart) expired() bool {\n\treturn c.clock.Now().After(c.until) // the clock of the test\n}\n```\n\nSee [the package time](https://pkg.go.dev/time#After).",
}, slices.Repeat([]string{"It ran another ten times: all of them passed."}, 15)...)

// street are made-up tasks: what the pictures show.
var street = []told{
	{rooStorage, "/home/ana/shop", "Add a discount code to the checkout", "Which currencies does the code hold for?", 2, 0.42, "followup", nil},
	{rooStorage, "/home/ana/shop", "Fix the flaky test of the cart", "The clock of the test stood still; it passes 200 times now.", 5, 1.08, "completion_result", talk},
	{clineStorage, "/home/ana/blog", "Move the blog to a static site generator", "All 84 posts are converted; links are checked.", 26, 3.5, "completion_result", nil},
	{rooStorage, "/home/ana/shop", "Auto-deploy script for the shop", "The script deploys to staging after each merge.", 50, 0.77, "completion_result", nil},
	{clineStorage, `C:\work\invoices`, "Invoices as PDF, with the new letterhead", "The letterhead is on every page.", 170, 0.19, "completion_result", nil},
	{rooStorage, "/home/ana/dotfiles", "Why does the shell take two seconds to start?", "nvm is loaded eagerly; it is lazy now.", 700, 0.03, "completion_result", nil},
}

// pictured is a sandbox in a folder whose name always has the same width: what a picture cuts and wraps stays.
func pictured(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t: t, dir: fmt.Sprintf("/tmp/roost%05d%03d", os.Getpid()%1e5, picturedSandboxes.Add(1))}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	s.root, s.store, s.ws = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "store"), filepath.Join(s.dir, "api")
	for _, d := range []string{s.store, s.ws, filepath.Join(s.dir, "home"), filepath.Join(s.dir, "tmp")} {
		must(t, os.MkdirAll(d, 0o700))
	}
	return s
}

var picturedSandboxes atomic.Int32

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
		rows := []any{map[string]any{"ts": ts - 1000, "type": "say", "say": "text", "text": t.title}}
		for i, words := range t.talk {
			rows = append(rows, map[string]any{"ts": ts - 999 + int64(i), "type": "say", "say": "text", "text": words})
		}
		files := map[string]any{
			"ui_messages.json":              append(rows, last...),
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
	shortID   = regexp.MustCompile(`(?m)^resume: roost resume [0-9a-f]{6}$`)
	sourceID  = regexp.MustCompile(`(roo-cline|claude-dev)-[0-9a-f]{6}`) // made of the path
	anID      = regexp.MustCompile(`01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	rowID     = regexp.MustCompile(`(?m)^[0-9a-f]{6} +\d+[sm]  `)
	rowMoment = regexp.MustCompile(`(?m)^(..) *\d+[sm] `)
	moment    = regexp.MustCompile(`· \d+[sm] ·`)
	callTook  = regexp.MustCompile(`(?m)(^ *[✓✗] .*| · exit \d) · [0-9.]+m?s$`) // quick calls show none
	took      = regexp.MustCompile(`(?m) · [0-9.]+m?s$`)
	spinning  = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ([^·\n]*)( · \d+s)?`)
)

// steady makes a picture the same in each run: folders, ids, times, and the spinner.
func (s *sandbox) steady(text string) string {
	for i := range s.dir { // a folder that is cut at its beginning
		text = strings.ReplaceAll(text, "…"+s.dir[i:]+"/", "…"+"/home/ana/projects"[i:]+"/")
	}
	text = rowMoment.ReplaceAllString(strings.ReplaceAll(text, s.dir, "/home/ana/projects"), "$1  0s ")
	text = took.ReplaceAllString(moment.ReplaceAllString(text, "· 0s ·"), " · 0.1s")
	text = sourceID.ReplaceAllString(text, "$1-abcdef")
	text = callTook.ReplaceAllString(text, "$1")
	text = spinning.ReplaceAllString(rowID.ReplaceAllString(text, "abcdef   0s  "), "⠋ $1")
	text = shortID.ReplaceAllString(text, "resume: roost resume abcdef")
	return anID.ReplaceAllString(text, "01a00000-0000-7000-8000-000000000000")
}

// The pictures of the picker are kept in testdata/screens. ROOST_GOLDEN=rewrite makes them anew.
func TestScreensOfThePicker(t *testing.T) {
	t.Parallel()
	framed(t, func(t *testing.T, f frame) {
		s := pictured(t)
		s.furnish()
		x := s.framed(t, f)
		picture := func(name string) {
			t.Helper()
			s.kept(x, f, name)
		}
		x.until("Rename the endpoint", "Shall the old endpoint stay?", "Import copies?")
		picture("picker")
		x.press("nf")
		picture("picker-filter")
		x.press("\x1b")
		x.until("!Show only")
		x.press("/deploy")
		x.until("Auto-deploy script", "hits in 1")
		picture("picker-search")
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
	})
}

// Who starts Roost for the first time sees what it is, and is led to a model.
func TestScreensOfAFirstStart(t *testing.T) {
	t.Parallel()
	framed(t, func(t *testing.T, f frame) {
		s := pictured(t)
		x := s.framed(t, f)
		s.kept(x, f, "picker-empty")
		x.press("q")
		x.exits(failure.ExitDone)
		x = s.framed(t, f, "chat")
		x.until("a number (q goes on without) >")
		s.kept(x, f, "chat-setup")
		x.press("1\r")
		x.until("(not shown)")
		s.kept(x, f, "chat-setup-key")
		x.press("\x03")
		x.exits(failure.ExitInterrupt)
	})
}

// What the commands that only look print.
func TestScreensOfWhatIsThere(t *testing.T) {
	t.Parallel()
	s := pictured(t)
	s.furnish()
	for name, line := range map[string]string{
		"list": "list", "sources": "sources", "doctor": "doctor", "help": "help", "help-run": "help run",
		"search": "search the --source cline", "usage": "usage --by folder --source cline",
		"show": "show 0b5e7c12", "show-markdown": "show 0b5e7c11 --tail 4 --before 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			framed(t, func(t *testing.T, f frame) {
				x := s.framed(t, f, strings.Fields(line)...)
				x.exits(failure.ExitDone)
				s.kept(x, f, name)
			})
		})
	}
	t.Run("pager", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("less"); err != nil {
			t.Skip("no less here")
		}
		framed(t, func(t *testing.T, f frame) {
			at := *s
			at.env("NO_PAGER=", "PAGER=less")
			x := at.framed(t, f, "show", "0b5e7c11", "--at", "3", "--find", "clock")
			x.until("▶ #3")
			s.kept(x, f, "pager")
			x.press("q")
			x.exits(failure.ExitDone)
		})
	})
}

// What a run shows: two questions, and its end.
func TestScreensOfARun(t *testing.T) {
	t.Parallel()
	framed(t, func(t *testing.T, f frame) {
		s := pictured(t)
		must(t, os.WriteFile(filepath.Join(s.ws, "index.html"), []byte("<html>\n<h1>Hello</h1>\n</html>\n"), 0o600))
		s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script(`
- text: "The **greeting** is on the first page:\n\n| file | line |\n|---|---|\n| index.html | 2 |\n\nI will change it."
  usage: {input: 1200, output: 80}
  tools: [{name: write_to_file, input: {path: index.html, content: "<html>\n<h1>Good morning</h1>\n</html>\n"}}]
- usage: {input: 1400, output: 30}
  tools: [{name: execute_command, input: {command: "grep -c morning index.html", cwd: null, timeout: null}}]
- usage: {input: 1500, output: 40}
  tools: [{name: read_file, input: {path: nowhere.html, mode: slice}}]
- usage: {input: 1600, output: 40}
  tools: [{name: attempt_completion, input: {result: "The greeting is **changed** in `+"`index.html`"+`:\n\n- line 2 says *Good morning*\n- nothing else differs"}}]
`))
		x := s.framed(t, f, "run", "-C", s.ws, "Greet with good morning")
		x.until("+<h1>Good morning", "q stop >")
		s.kept(x, f, "approval")
		x.press("y\r")
		x.until("? execute_command grep -c", "q stop >")
		s.kept(x, f, "approval-command")
		x.press("y\r")
		x.exits(failure.ExitDone)
		s.kept(x, f, "run")
	})
}

// What a chat shows: its commands, a run that works, a reply, a question.
func TestScreensOfAChat(t *testing.T) {
	t.Parallel()
	framed(t, func(t *testing.T, f frame) {
		s := pictured(t)
		ready := filepath.Join(s.ws, "go")
		s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script(`
- text: I count the posts.
  usage: {input: 1200, output: 80}
  tools: [{name: execute_command, input: {command: "until test -e go; do sleep 0.02; done", cwd: null, timeout: null}}]
- text: "## What is there\n\nThe blog has **84 posts** in two forms:\n\n| form | posts | with pictures |\n|:--|--:|--:|\n| Markdown | 61 | 12 |\n| HTML | 23 | 20 |\n\n- Markdown stays as it is\n- HTML is converted by `+"`pandoc`"+`:\n\n`+"```sh\\npandoc -f html -t gfm \\\"$post\\\"  # one after the other\\n```"+`\n"
  usage: {input: 1400, output: 30}
  tools: [{name: attempt_completion, input: {result: "All 84 posts are counted."}}]
- text: One thing is open.
  usage: {input: 1500, output: 20}
  tools: [{name: ask_followup_question, input: {question: "Which generator shall it be?", follow_up: [{text: "Hugo, it is the fastest", mode: null}, {text: "Eleventy, it is the simplest", mode: null}]}}]
- usage: {input: 1600, output: 20}
  tools: [{name: attempt_completion, input: {result: "Hugo it is."}}]
`))
		x := s.framed(t, f, "chat", "-C", s.ws, "--yes")
		x.until("? for all keys", "›")
		x.press("/mo")
		x.until("/model")
		s.kept(x, f, "chat-popup")
		x.press("\x1b")
		x.until("!the mode of the next run")
		x.press("\x15")
		x.says("Count the posts of the blog")
		x.until("$ until", "Esc stops it")
		s.kept(x, f, "chat-working")
		must(t, os.WriteFile(ready, nil, 0o600))
		x.until("All 84 posts are counted", "completed")
		s.kept(x, f, "chat-reply")
		x.says("Then move it")
		x.until("2. Eleventy", "your own words")
		s.kept(x, f, "chat-question")
		x.press("1\r")
		x.until("Hugo it is", "completed")
		x.empty()
		x.press("\x04")
		x.exits(failure.ExitDone)
	})
}
