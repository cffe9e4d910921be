package chat

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

func TestPromptAfterPromptInOneTask(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.New.Mode = "ask" })
	c.Line("hello")
	c.did("start hello", `"mode":"ask"`, `"workspace":"/w"`)
	c.when("at work", func(st state) bool { return st.Working })
	d.replies("t1", "run1", "good day")
	c.shows("› hello", "task t1", "good day\n", "completed")
	c.idle()
	c.Line("and again")
	c.did("send t1", `"text":"and again"`)
	d.replies("t1", "run2", "at your service")
	c.shows("› and again", "at your service")
	c.idle()
	if got := c.Task(); got != "t1" {
		t.Errorf("the task is %q", got)
	}
}

func TestARunThatEndsBeforeItsStartIsKnown(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Line("one")
	c.did("start one")
	d.replies("t1", "run1", "done")
	d.replies("t1", "run2", "done, too") // before anybody asked for it
	c.shows("done, too")
	c.idle()
	c.Line("two")
	c.did("send t1")
	c.idle()
}

func TestWordsAreQueuedWhileARunWorks(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Line("begin")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working })
	c.Line("also this")
	c.did("send t1", `"delivery":"queue"`, "also this")
	d.emit("t1", "input.queued", `"input":"i1","text":"also this"`)
	d.emit("t1", "input.queued", `"input":"i2","text":"and that"`)
	c.when("two queued", func(st state) bool { return len(st.Queue) == 2 && st.Queue[0].Text == "also this" })
	c.Line("/queue")
	c.shows("1. also this", "2. and that")
	c.Line("/queue 2 something else")
	c.did("queue t1 i2", `"something else"`)
	c.Line("/queue drop 2")
	c.did("queue t1 i2", "null")
	d.emit("t1", "input.taken", `"input":"i2","dropped":true`)
	c.when("one queued", func(st state) bool { return len(st.Queue) == 1 })
	c.Line("/queue 7 x")
	c.shows("nothing is queued in place 7")
	d.emit("t1", "input.taken", `"input":"i1"`)
	c.shows("› also this")
	d.replies("t1", "run1", "all done")
	c.idle()
	if strings.Contains(c.text(), "› and that") {
		t.Error("words that were taken back stand there as said")
	}
}

func TestTheQueueOfWordsThatStartedARunIsNotShown(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Line("begin")
	c.did("start begin")
	d.emit("t1", "input.queued", `"input":"i0","text":"begin"`)
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "input.taken", `"input":"i0"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed","reason":"the result"`)
	c.shows("the result", "completed")
	if n := strings.Count(c.text(), "› begin"); n != 1 {
		t.Errorf("the words stand there %d times", n)
	}
}

// The words that start a run hide only their own queued input, if there is one: the same words, sent again while the run
// works, wait for it like any others.
func TestTheSameWordsAgainAreQueued(t *testing.T) {
	for _, own := range []bool{true, false} {
		d := newDesk(t)
		c := talking(t, d)
		c.Line("go on")
		c.did("start go on")
		if own {
			d.emit("t1", "input.queued", `"input":"i0","text":"go on"`)
		}
		d.emit("t1", "run.started", `"run":"run1"`)
		c.when("at work", func(st state) bool { return !st.Live.Since.IsZero() }) // the event came
		for i, queued := range []string{"i1", "i2"} {
			c.Line("go on")
			c.did("send t1", `"delivery":"queue"`, "go on")
			d.emit("t1", "input.queued", `"input":%q,"text":"go on"`, queued)
			c.when("queued", func(st state) bool { return len(st.Queue) == i+1 })
		}
		d.emit("t1", "input.taken", `"input":"i1"`)
		d.emit("t1", "input.taken", `"input":"i2"`)
		d.emit("t1", "run.ended", `"run":"run1","outcome":"completed","reason":"the result"`)
		c.shows("the result", "completed")
		if got := strings.Count(c.text(), "› go on"); got != 3 {
			t.Errorf("own input %t: the words stand there %d times, want 3", own, got)
		}
	}
}

func TestWordsThatCannotBeSentComeBack(t *testing.T) {
	d := newDesk(t)
	d.refuse = &client.Problem{Status: 422, Code: "unknown_mode", Title: "There is no such mode", Detail: "nope",
		Suggestions: []string{`give "mode", as to POST /v1/tasks/{id}/runs`, "/mode code"}}
	c := talking(t, d)
	c.Line("hello")
	c.shows("✗ There is no such mode: nope\n  /mode code") // advice for programs is no help here
	c.when("back", func(st state) bool { return slices.Equal(st.Back, []string{"hello"}) && st.Task == "" })
}

func TestSomebodyElseWasFaster(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d, func(o *Options) { o.Task, o.Again = "t1", api.NewRun{Settings: api.Settings{Mode: "ask"}} })
	c.did("roost show own:t1 --tail")
	c.idle()
	d.mu.Lock()
	d.refuse = &client.Problem{Status: 409, Code: "task_busy", Title: "A run works on it"}
	d.mu.Unlock()
	c.Line("me too")
	c.did("resume t1", `"mode":"ask"`)
	c.did("send t1", `"delivery":"queue"`, "me too")
}

func TestEscStopsTheRun(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Interrupt() // there is nothing: nothing happens
	c.Line("begin")
	c.when("at work", func(st state) bool { return st.Working })
	c.Interrupt()
	c.did("cancel t1")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"cancelled"`)
	c.shows("stopping and saving", "cancelled")
	c.idle()
	if got := c.Last(); got.Outcome != "cancelled" {
		t.Errorf("it ended as %+v", got)
	}
}

func TestASubtaskIsShownBelow(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	c.Line("begin")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "subtask.started", `"child":"t2","mode":"ask","title":"look around"`)
	c.shows("subtask t2 in ask mode: look around")
	d.emit("t2", "message.added", `"history":"ui","message":2,"content":{"ts":1,"type":"say","say":"text","text":"I looked"}`)
	d.emit("t2", "run.ended", `"run":"run7","outcome":"completed","reason":"seen"`)
	c.shows("│ I looked")
	if !c.state().Working {
		t.Error("the end of a subtask is not the task's")
	}
	d.emit("t1", "run.ended", `"run":"run1","outcome":"completed"`)
	c.idle()
}

// What a model writes does not reach the terminal raw.
func TestWhatIsShownIsHarmless(t *testing.T) {
	d := newDesk(t)
	d.says["list"] = Said{Out: "id \x1b]0;title\a evil\u202e\n"}
	c := talking(t, d)
	c.Line("/tasks")
	c.shows("id ")
	c.Line("begin")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	d.emit("t1", "message.added", `"history":"ui","message":3,"content":{"ts":1,"type":"say","say":"text","text":"a\u001b[2Jb\u0007"}`)
	d.emit("t1", "input.queued", `"input":"i1","text":"x\u001b[31my","by":"api"`)
	d.emit("t1", "input.taken", `"input":"i1"`)
	d.emit("t1", "run.ended", `"run":"run1","outcome":"failed","reason":"r\u001b[2Jr"`)
	c.shows("ab", "› xy", "failed", "rr")
	if text := c.text(); strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "\u202e") {
		t.Errorf("it shows %q", text)
	}
}

func TestTurningToAnotherTask(t *testing.T) {
	d := newDesk(t)
	d.says["show"] = Said{Out: "what was said before\n"}
	c := talking(t, d)
	c.Line("begin")
	c.when("at work", func(st state) bool { return st.Working })
	c.Line("/resume t7")
	c.shows("what was said before")
	c.when("there", func(st state) bool { return st.Task == "t7" && !st.Working && !st.Busy })
	d.emit("t1", "message.added", `"history":"ui","message":9,"content":{"ts":1,"type":"say","say":"text","text":"unheard"}`)
	d.replies("t7", "run5", "heard")
	c.shows("heard")
	c.Line("/new")
	c.when("a new one", func(st state) bool { return st.Task == "" })
	c.Line("fresh")
	c.did("start fresh")
	if strings.Contains(c.text(), "unheard") {
		t.Error("the task that was left is shown")
	}
}

func TestATaskThatIsAtWorkIsJoined(t *testing.T) {
	d := newDesk(t)
	d.status = "running"
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.when("joined", func(st state) bool { return st.Task == "t1" && st.Working })
	c.Line("for the queue")
	c.did("send t1", `"delivery":"queue"`)
}
