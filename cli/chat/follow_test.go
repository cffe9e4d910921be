package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

// still is a talk about t1 that no goroutine works on: the test does.
func stills(t *testing.T, d *desk) (*talk, *chatting) {
	t.Helper()
	c := talking(t, d)
	tk := &talk{
		s: c.Session, id: "t1", ctx: t.Context(), synced: make(chan error, 1), asked: make(chan *ask, 1),
		depth: map[string]int{"t1": 0}, inputs: map[string]string{}, closed: map[string]bool{},
	}
	tk.begin()
	return tk, c
}

func (t *talk) hears(typ, data string, args ...any) {
	t.take(incoming{Event: client.Event{Type: typ, Data: fmt.Appendf(nil, `{"type":%q,"at":"2026-01-02T03:04:05.000Z",%s}`, typ, fmt.Sprintf(data, args...))}, task: "t1"})
}

// Who worked on a run may be dead, and can say nothing: the task is looked at, and what
// is told then is not told twice when a server comes back and says so.
func TestARunThatNobodyWorksOnAnyMore(t *testing.T) {
	d := newDesk(t)
	tk, c := stills(t, d)
	tk.look() // nothing should be at work
	tk.hears("run.started", `"run":"run1"`)
	d.status = "running"
	tk.look()
	if c.text() != "" || !c.state().Working {
		t.Fatalf("it works, and this is told: %q", c.text())
	}
	d.unknown = errors.New("no connection")
	tk.look()
	if !c.state().Working {
		t.Fatal("what cannot be known counts as the end")
	}
	d.unknown = nil
	d.status = "interrupted"
	tk.look()
	if c.state().Working || !strings.Contains(c.text(), "interrupted\n  the process that worked on it has ended; /retry continues") {
		t.Fatalf("it is told as %q", c.text())
	}
	tk.hears("run.ended", `"run":"run1","outcome":"interrupted","reason":"the program ended"`)
	if n := strings.Count(c.text(), "interrupted"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, c.text())
	}
	tk.hears("run.started", `"run":"run2"`)
	tk.hears("run.ended", `"run":"run2","outcome":"interrupted","reason":"drained"`)
	if !strings.Contains(c.text(), "drained") {
		t.Errorf("the next one is not told:\n%s", c.text())
	}
}

// The end of a run closes a question, and waits for the next question, which was held: the end is shown once.
func TestTheEndOfARunWaitsForAHeldQuestion(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	tk.hears("run.started", `"run":"run1"`)
	tk.hears("question.opened", `"question":"q1","kind":"followup","text":"which?"`)
	tk.hears("question.opened", `"question":"q2","kind":"followup","text":"and which?"`)
	tk.hears("run.ended", `"run":"run1","outcome":"failed","reason":"no luck"`)
	if tk.ask == nil || tk.ask.q.Question != "q2" || len(tk.held) != 1 {
		t.Fatalf("%d events wait for the question %+v, want the end of the run to wait for q2", len(tk.held), tk.ask)
	}
	tk.hears("question.closed", `"question":"q2"`)
	if n := strings.Count(c.text(), "no luck"); n != 1 {
		t.Errorf("the end of the run is shown %d times:\n%s", n, c.text())
	}
}

func TestAStreamThatEnds(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	tk.hears("run.started", `"run":"run1"`)
	tk.take(incoming{task: "t2", err: errors.New("of a subtask")})
	if c.text() != "" {
		t.Errorf("a subtask's stream is told: %q", c.text())
	}
	synced := tk.synced
	tk.take(incoming{task: "t1", err: errors.New("no task")}) // who waits for the stream is told
	if err := <-synced; err == nil || c.text() != "" {
		t.Errorf("told as %v, %q", err, c.text())
	}
	tk.take(incoming{task: "t1", err: errors.New("gone\x1b[2J")})
	if got := c.text(); !strings.Contains(got, "✗ follow the task: gone\n") || c.state().Working {
		t.Errorf("it shows %q", got)
	}
}

// A new task's stream that ends for good is told the first time, and nobody waits for its run any
// more. So is a task that is gone.
func TestANewTaskThatCannotBeFollowedAnyMore(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(d *desk)
		told string
	}{
		"its stream": {func(d *desk) { d.cuts(errors.New("the token is another one now")) }, "✗ follow the task: the token is another one now\n"},
		"the task":   {func(d *desk) { d.emit("t1", "stream.end", `"reason":"deleted"`) }, "✗ follow the task: it was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			chat := newWorkingChat(t, d)
			c.ends(d)
			chat.shows(c.told)
			chat.when("nothing works", func(st state) bool { return !st.Working })

			// The task is there again: it is followed again, before words go out that the chat would not see answered.
			d.cuts(nil)
			for _, line := range []string{"go on", "go on"} {
				chat.idle()
				chat.Line(line)
			}
			chat.shows("✗ nothing was sent: the chat had lost the task, and follows it again")
			chat.did("send t1", "go on")
			d.replies("t1", "run2", "I am back")
			chat.shows("I am back", "completed")
			if n := strings.Count(strings.Join(d.all(), "\n"), "send t1"); n != 1 {
				t.Errorf("the words were sent %d times, want 1", n)
			}

			// The chat reports it again when it loses the task for the second time.
			d.cuts(errors.New("once more"))
			chat.shows("✗ follow the task: once more\n")
		})
	}
}

func TestHowARunEnds(t *testing.T) {
	usage := `"run":"run1","usage":{"input":1200,"output":30},"cost":"0.0123"`
	for _, tt := range []struct {
		ended string
		want  []string
		not   string
	}{
		{`"outcome":"completed","reason":"all\u001b[2J done"`, []string{"all done\n", "completed"}, "/retry"},
		{`"outcome":"failed","code":"provider","reason":"no answer"`, []string{"failed", "  no answer\n", "  /retry tries again\n"}, ""},
		{`"outcome":"limit","code":"turns","reason":"3 turns"`, []string{"limit", "  3 turns\n", "/limits turns=N cost=USD gives it more"}, ""},
		{`"outcome":"cancelled"`, []string{"cancelled"}, "/retry"},
		{`"outcome":"denied","reason":"n"`, []string{"denied", "  n\n"}, ""},
	} {
		tk, c := stills(t, newDesk(t))
		tk.hears("run.started", `"run":"run1"`)
		tk.hears("turn.ended", "%s", usage)
		tk.hears("run.ended", `"run":"run1",%s`, tt.ended)
		for _, want := range tt.want {
			if !strings.Contains(c.text(), want) {
				t.Errorf("%s: %q is missing in\n%s", tt.ended, want, c.text())
			}
		}
		if tt.not != "" && strings.Contains(c.text(), tt.not) || strings.Contains(c.text(), "\x1b") {
			t.Errorf("%s shows\n%q", tt.ended, c.text())
		}
		if c.state().Working {
			t.Errorf("%s: it works on", tt.ended)
		}
	}
}

func TestWhatARunTook(t *testing.T) {
	for want, u := range map[string]display.Totals{
		"done":                                    {},
		"done · 1 turn · $0.00":                   {Turns: 1},
		"done · 2 turns · cost unknown":           {Turns: 2, Unknown: true},
		"done · 2 turns · $0.50 and more":         {Turns: 2, Unknown: true, Cost: 500000},
		"done · 3 turns · $1.25 · 1.5s":           {Turns: 3, Cost: 1250000, Started: 1000, LastSeen: 2500},
		"done · 1 turn · 1.2k in, 30 out · $0.00": {Turns: 1, In: 1200, Out: 30},
	} {
		if got := u.Text("done"); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// What cannot be read is no reason to stop, or to show it.
func TestEventsThatCannotBeRead(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	for _, data := range []string{``, `{`, `null`, `[]`, `{"run":7}`, `{"at":7,"content":[]}`, `{"question":{}}`, "\xff"} {
		for _, typ := range []string{"run.started", "run.ended", "question.opened", "question.closed", "input.queued", "input.taken", "message.added", "message.delta",
			"tool.started", "tool.finished", "subtask.started", "stream.end", "notice", "never.heard"} {
			if typ == "run.ended" && strings.Contains(data, "run") {
				continue
			}
			tk.take(incoming{Event: client.Event{Type: typ, Data: []byte(data)}, task: "t1"})
		}
	}
	if strings.ContainsRune(c.text(), 0x1b) || !utf8.ValidString(c.text()) {
		t.Errorf("it shows %q", c.text())
	}
}

// Queued words that are changed elsewhere are changed here; those that are dropped never
// stand there as said.
func TestTheQueueFollowsItsEvents(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	queue := func() string {
		var all []string
		for _, q := range c.state().Queue {
			all = append(all, q.Text)
		}
		return strings.Join(all, "|")
	}
	for _, tt := range []struct{ typ, data, want string }{
		{"input.queued", `"input":"i1","text":"one"`, "one"},
		{"input.queued", `"input":"i2","text":"two"`, "one|two"},
		{"input.queued", `"input":"i1","text":"another"`, "another|two"},
		{"input.taken", `"input":"i9"`, "another|two"},
		{"input.taken", `"input":"i2","dropped":true`, "another"},
		{"input.taken", `"input":"i1"`, ""},
		{"input.taken", `"input":"i1"`, ""},
	} {
		if tk.hears(tt.typ, "%s", tt.data); queue() != tt.want {
			t.Errorf("after %s %s: %q, want %q", tt.typ, tt.data, queue(), tt.want)
		}
	}
	if got := c.text(); got != "› another\n" {
		t.Errorf("it shows %q", got)
	}
}

// A plan of what a request costs is told at the end; what a person must know at once.
func TestNotices(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	tk.hears("notice", `"kind":"plan","text":"about $0.10"`)
	if c.text() != "" {
		t.Errorf("a plan is told: %q", c.text())
	}
	c.o.Display.Verbose = true
	tk.begin()
	tk.hears("notice", `"kind":"plan","text":"about $0.10"`)
	tk.shown.Flush()
	if !strings.Contains(c.text(), "about $0.10") {
		t.Errorf("with -v it is not: %q", c.text())
	}
}
