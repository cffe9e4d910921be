package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/workspace/shell"
)

func TestACommandLineRunsInTheWorkspaceAndGoesAlong(t *testing.T) {
	d := newDesk(t)
	d.says["!git status"] = Said{Out: "M main.go\n?? note.txt\n"}
	d.says["!make test"] = Said{Out: "broken\n", Code: 2}
	c := talking(t, d)
	c.Line("!git status")
	c.did("shell /w git status")
	c.shows("› !git status", "M main.go\n?? note.txt\n", "· done, goes along with your next words")
	c.Line("! make test ")
	c.did("shell /w make test")
	c.shows("exit code 2, goes along")
	c.Line("what is wrong?")
	call := c.did("start what is wrong?")
	for _, want := range []string{
		`what is wrong?\n\nWhat I ran in /w, and its output:\n`, `$ git status\nM main.go\n?? note.txt\n(exit code 0)\n`, `$ make test\nbroken\n(exit code 2)\n`,
	} {
		if !strings.Contains(call, want) {
			t.Errorf("%q is missing in %s", want, call)
		}
	}
	c.shows("› what is wrong?\n", "task t1")
	if n := strings.Count(c.text(), "M main.go"); n != 1 {
		t.Errorf("the output stands there %d times", n)
	}
	d.replies("t1", "run1", "this")
	c.idle()
	c.Line("thanks")
	if call := c.did("send t1", `"text":"thanks"`); strings.Contains(call, "main.go") {
		t.Errorf("it went along twice: %s", call)
	}
}

func TestAnOutputThatIsOnlyShown(t *testing.T) {
	d := newDesk(t)
	d.says["!ls"] = Said{Out: "a\n"}
	c := talking(t, d)
	c.Line("!!ls")
	c.did("shell /w ls")
	c.shows("a\n", "· done\n")
	c.Line("!")
	c.shows("no output goes along with the next words")
	c.Line("!ls")
	c.Line("!")
	c.shows("goes along: $ ls")
	c.Line("!!")
	c.shows("left out: $ ls")
	c.Line("hello")
	if call := c.did("start hello"); strings.Contains(call, "ran") {
		t.Errorf("it was sent: %s", call)
	}
}

// What could not be sent comes back, and what goes along still does.
func TestOutputsAreNotLostWithWordsThatCannotBeSent(t *testing.T) {
	d := newDesk(t)
	d.says["!ls"] = Said{Out: "a\n"}
	c := talking(t, d)
	c.Line("!ls")
	c.shows("goes along")
	d.mu.Lock()
	d.refuse = errNotNow
	d.mu.Unlock()
	c.Line("hello")
	c.when("back", func(st state) bool { return slices.Equal(st.Back, []string{"hello"}) })
	c.Line("hello again")
	c.did("start hello again", "$ ls")
}

// Words in the queue are shown as they were typed, and taken as they were sent.
func TestOutputsGoIntoTheQueue(t *testing.T) {
	d := newDesk(t)
	d.says["!ls"] = Said{Out: "a\n"}
	c := newWorkingChat(t, d)
	c.Line("!ls")
	c.shows("goes along")
	c.Line("look")
	c.did("send t1", `"delivery":"queue"`, "$ ls")
	whole, _ := "", 0
	for sent, typed := range c.Session.brief {
		if typed == "look" {
			whole = sent
		}
	}
	d.emit("t1", "input.queued", `"input":"i1","text":%q`, whole)
	c.when("queued", func(st state) bool { return len(st.Queue) == 1 })
	c.Line("/queue")
	c.shows("1. look\n")
	d.emit("t1", "input.taken", `"input":"i1"`)
	c.shows("› look\n")
	if strings.Contains(c.text(), "What I ran") {
		t.Errorf("the output is shown again:\n%s", c.text())
	}
}

// Esc stops the command, and not the run beside it.
func TestEscStopsTheCommandFirst(t *testing.T) {
	d := newDesk(t)
	d.says["!sleep 9"] = Said{Out: "begun\n", Code: -1}
	c := newWorkingChat(t, d)
	c.Line("!sleep 9")
	c.shows("begun")
	c.when("at the command", func(st state) bool { return st.Command })
	c.Interrupt()
	c.shows("· stopped, goes along")
	c.when("the run goes on", func(st state) bool { return st.Working && !st.Command })
	for _, call := range d.all() {
		if strings.HasPrefix(call, "cancel") {
			t.Error("the run was stopped, too")
		}
	}
	c.Interrupt()
	c.did("cancel t1")
}

func TestACommandAtAQuestionAnswersNothing(t *testing.T) {
	d := newDesk(t)
	d.says["!git diff"] = Said{Out: "+one\n"}
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("!git diff")
	c.did("shell /w git diff")
	c.shows("· done")
	if st := c.state(); !st.Asking {
		t.Error("the question is gone")
	}
	c.Line("n")
	c.Line("not so")
	c.did("answer t1.q1", `"approve":false`)
}

func TestACommandThatCannotRun(t *testing.T) {
	d := newDesk(t)
	d.refuse = errNotNow
	c := talking(t, d)
	c.Line("!ls")
	c.shows("✗ " + errNotNow.Error())
	c.Line("!")
	c.shows("no output goes along")
	nowhere := talking(t, newDesk(t), func(o *Options) { o.New.Workspace = "" })
	nowhere.Line("!ls")
	nowhere.shows("✗ the task has no workspace to run it in")
}

func TestWhatIsACommandLine(t *testing.T) {
	for text, want := range map[string]bool{
		"!ls": true, "!": true, "!!": true, "!!ls -la": true, "! ls": true,
		" !ls": false, "ls !": false, "": false, "!one\ntwo": false, "![a picture](x.png)\nand words": false, "//!": false,
	} {
		if got := isShell(text); got != want {
			t.Errorf("%q: got %v, want got = %v", text, got, want)
		}
	}
}

// Where nobody types, a "!" is the beginning of words like any other.
func TestALineOfAPipeRunsNothing(t *testing.T) {
	d := newDesk(t)
	c, _, done := piped(t, d, strings.NewReader("!rm -rf x\n"), false)
	c.did("start !rm -rf x")
	d.replies("t1", "run1", "no")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, call := range d.all() {
		if strings.HasPrefix(call, "shell") {
			t.Errorf("it did %s", call)
		}
	}
}

// The model learns no secret, and nothing in an output is looked up or run by the engine.
func TestWhatTheModelIsToldOfAnOutput(t *testing.T) {
	c := talking(t, newDesk(t))
	got := c.carry("/w", "env", "key=hunter2\n\x1b[31mred\x1b[0m\n50%\r100%\nsee @/etc/passwd and /init now\n```\nx\n", Ran{Exit: 1})
	want := "What I ran in /w, and its output:\n````\n$ env\nkey=[REDACTED]\nred\n100%\nsee \\@/etc/passwd and \\/init now\n```\nx\n(exit code 1)\n````"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := c.carry("/w", "sleep 9", "", Ran{Exit: 143, Cancelled: true}); !strings.Contains(got, "$ sleep 9\n(stopped by the person)\n") {
		t.Errorf("a stopped one: %s", got)
	}
	if got := c.carry("/w", "cat @/main.go", "\xff\n", Ran{}); !strings.Contains(got, "$ cat \\@/main.go\n\uFFFD\n") {
		t.Errorf("the line itself: %q", got)
	}
	long := c.carry("/w", "seq", strings.Repeat("a line of words\n", 1<<16), Ran{})
	if len(long) > 2*carriedChars {
		t.Errorf("%d bytes go along", len(long))
	}
	if lines := c.carry("/w", "seq", strings.Repeat("a\n", 5000), Ran{}); strings.Count(lines, "\n") > carriedLines+20 {
		t.Errorf("%d lines go along", strings.Count(lines, "\n"))
	}
}

func TestNothingLiteralIsAMention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"@/a", "@", "/", "/init", " ", "\n", `\`, "@problems", "a", "@git-changes", "@https://x", ".", "\t", "@deadbeef"})).Draw(t, "words")
		text := strings.Join(words, "")
		got := literally(text)
		if m, c := mention.Scan("x\n"+got), mention.Commands("x\n"+got); len(m)+len(c) > 0 {
			t.Fatalf("%q becomes %q with %v %v", text, got, m, c)
		}
		if strings.ReplaceAll(got, `\`, "") != strings.ReplaceAll(text, `\`, "") {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

func TestOutputIsShownALineAtATime(t *testing.T) {
	var shown []string
	o := &output{show: func(text string) { shown = append(shown, text) }}
	for _, p := range []string{"on", "e\ntwo \x1b[3", "1mred\x1b[0m\n", "\n10%\r20%\nrest"} {
		if n, err := o.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	o.end()
	if want := []string{"one", "two red", " \n20%", "rest"}; fmt.Sprint(shown) != fmt.Sprint(want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
	if want := "one\ntwo \x1b[31mred\x1b[0m\n\n10%\r20%\nrest"; o.text() != want {
		t.Errorf("kept %q", o.text())
	}
}

// A command that prints without end costs neither memory nor the terminal.
func TestMuchOutputIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and some time")
	}
	var shown []string
	o := &output{show: func(text string) { shown = append(shown, strings.Split(text, "\n")...) }}
	const lines = 40000
	for i := range lines {
		fmt.Fprintf(o, "line %d %s\n", i, strings.Repeat("x", 90))
	}
	fmt.Fprint(o, strings.Repeat("y", 3*lineLength))
	o.end()
	if len(shown) > shownLines+lastLines+1 {
		t.Errorf("%d lines are shown", len(shown))
	}
	if !strings.HasPrefix(shown[0], "line 0 ") || !strings.Contains(strings.Join(shown, "\n"), "lines are not shown …") || !strings.HasPrefix(shown[len(shown)-1], "y") {
		t.Errorf("shown from %q to %q", shown[0], shown[len(shown)-1])
	}
	if kept := len(o.head) + len(o.tail); kept > 3*keptOutput || cap(o.line) > 3*lineLength {
		t.Errorf("%d bytes are kept", kept)
	}
	text := o.text()
	if !strings.HasPrefix(text, "line 0 ") || !strings.Contains(text, "much output is left out") || !strings.HasSuffix(text, "yyy") {
		t.Error("not both ends of the output are kept")
	}
}

func TestHowACommandEnded(t *testing.T) {
	for want, r := range map[string]Ran{
		"done":              {},
		"exit code 3, 2.0s": {Exit: 3, Duration: 2e9},
		"stopped":           {Cancelled: true, Exit: 143},
		"done, 2 of its processes were left behind and ended": {Ended: make([]shell.Member, 2)},
	} {
		if got := strings.Join(ending(r), ", "); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}
