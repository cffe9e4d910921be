package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
)

// piped reads a chat's lines from a pipe, and answers each prompt.
func piped(t *testing.T, d *desk, in io.Reader, terminal bool) (*chatting, *bytes.Buffer, chan error) {
	t.Helper()
	var result bytes.Buffer
	c := &chatting{t: t, backend: d}
	c.Session = New(context.Background(), d, Options{Ask: terminal, New: api.NewTask{Workspace: "/w"}, Result: &result, Display: term.Options{}})
	done := make(chan error, 1)
	go func() { done <- c.Plain(context.Background(), in, c, terminal) }()
	t.Cleanup(c.Close)
	return c, &result, done
}

func TestLinesFromAPipeAreSentOneAfterTheOther(t *testing.T) {
	d := newDesk(t)
	c, result, done := piped(t, d, strings.NewReader("one \\\nand more\n\n/tree\n```\nx\n```\n"), false)
	c.did("start one", `one \nand more`)
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed","reason":"the first"`)
	c.did("roost show --tree t1")
	c.did("send t1", "```\\nx\\n```")
	d.emit("t1", "run.started", `"run":"run2"`)
	d.emit("t1", "run.ended", `"run":"run2","outcome":"failed","reason":"no luck","code":"provider"`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if result.String() != "the first\n" {
		t.Errorf("the results are %q", result.String())
	}
	if got := c.Last(); got != (Ending{"failed", "provider", "no luck"}) {
		t.Errorf("it ended as %+v", got)
	}
	if strings.Contains(c.text(), "›") {
		t.Errorf("a pipe got a prompt: %q", c.text())
	}
}

// A line of a pipe was not written for the question that came up.
func TestALineOfAPipeAnswersNoQuestion(t *testing.T) {
	d := newDesk(t)
	c, _, done := piped(t, d, strings.NewReader("write it\nyes\n"), false)
	c.did("start write it")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "question.opened", approval)
	var waiting *WaitingError
	if err := <-done; !errors.As(err, &waiting) || waiting.Task != "t1" {
		t.Fatalf("it ended with %v", err)
	}
	for _, call := range d.all() {
		if strings.HasPrefix(call, "answer") || strings.HasPrefix(call, "send") {
			t.Errorf("it did %s", call)
		}
	}
}

func TestAPipeAnswersWithTheCommand(t *testing.T) {
	d := newDesk(t)
	q := api.Question{ID: "t1.q1", Task: "t1"}
	q.QuestionOpened = api.QuestionOpened{Question: "q1", Kind: "approval"}
	d.open = []api.Question{q}
	c, _, done := piped(t, d, strings.NewReader("write it\n/answer yes\nthen this\n"), false)
	c.did("start write it")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "question.opened", approval)
	c.did("answer t1.q1", `"approve":true`)
	d.emit("t1", "question.closed", `"question":"q1","by":"cli"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed"`)
	d.emit("t1", "run.ended", `"run":"run9","outcome":"completed"`)
	c.did("send t1", "then this")
	d.replies("t1", "run2", "so be it")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A terminal that cannot be drawn on is asked line by line.
func TestADumbTerminal(t *testing.T) {
	d := newDesk(t)
	in, w := io.Pipe()
	c, _, done := piped(t, d, in, true)
	type_ := func(line string) {
		if _, err := io.WriteString(w, line); err != nil {
			t.Error(err)
		}
	}
	c.shows("› ")
	type_("begin\n")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "question.opened", approval)
	c.shows("q stop > ")
	type_("\n")
	c.shows("Enter alone is not an answer", "q stop > ")
	type_("y\n")
	c.did("answer t1.q1", `"approve":true`)
	d.emit("t1", "question.closed", `"question":"q1","by":"cli"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed"`)
	d.emit("t1", "run.ended", `"run":"run9","outcome":"completed"`)
	type_("/quit\n")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
