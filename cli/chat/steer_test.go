package chat

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

func question(id, kind, text string) api.Question {
	q := api.Question{ID: "t1." + id, Task: "t1", Event: "1.2-0"}
	q.QuestionOpened = api.QuestionOpened{Question: id, Kind: kind, Text: text}
	return q
}

func (d *desk) opens(list ...api.Question) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = list
}

func TestRejectSaysNoAndWhy(t *testing.T) {
	for _, kind := range []string{"approval", "limit", "damage"} {
		t.Run(kind, func(t *testing.T) {
			d := newDesk(t)
			c := newWorkingChat(t, d)
			d.emit("t1", "question.opened", `"question":"q1","kind":%q,"text":"write note.txt"`, kind)
			c.when("asking", func(st state) bool { return st.Asking })
			d.opens(question("q1", kind, "write note.txt"))
			c.Line("/reject not that file")
			call := c.did("answer t1.q1", `"approve":false`, `"text":"not that file"`, `"seen":"1.2-0"`)
			if strings.Contains(call, "always") {
				t.Errorf("it says more than no: %s", call)
			}
			d.emit("t1", "question.closed", `"question":"q1","approve":false,"by":"api"`)
			c.when("answered", func(st state) bool { return !st.Asking })
			d.replies("t1", "run1", "then not")
			c.shows("then not")
			if strings.Contains(c.text(), "elsewhere") {
				t.Error("our own answer is told as another's")
			}
		})
	}
}

func TestThereIsNothingToReject(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	c.Line("/reject")
	c.shows("✗ no question is open")
	d.opens(question("q1", "followup", "which colour?"))
	c.Line("/reject")
	c.shows("the open question wants words, not a yes: /answer WORDS")
	for _, call := range d.all() {
		if strings.HasPrefix(call, "answer") {
			t.Errorf("it did %s", call)
		}
	}
}

// Of many open questions the one that is asked is meant.
func TestRejectIsForTheQuestionThatIsAsked(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.opens(question("q1", "approval", "write"), question("q2", "approval", "of a subtask"))
	c.Line("/reject")
	c.did("answer t1.q1", `"approve":false`)
}

// An answer that comes too late says whose was first, and somebody else's stays theirs.
func TestARejectionThatIsTooLate(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.opens(question("q1", "approval", "write"))
	d.mu.Lock()
	d.refuse = &client.Problem{Status: 409, Code: "answered", Title: "The question was answered already", Detail: "by api"}
	d.mu.Unlock()
	c.Line("/reject no")
	c.shows("✗ answer: The question was answered already: by api")
	d.emit("t1", "question.closed", `"question":"q1","approve":true,"by":"api"`)
	c.shows("answered by api elsewhere")
}

func TestAnswersByCommand(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	with := question("q1", "followup", "which?")
	with.Choices = []string{"red", "blue"}
	for _, tt := range []struct {
		q    api.Question
		line string
		want []string
	}{
		{with, "/answer 2", []string{`"text":"blue"`}},
		{with, "/answer 3", []string{`"text":"3"`}},
		{with, "/answer both of them", []string{`"text":"both of them"`}},
		{question("q2", "approval", ""), "/answer Y", []string{`"approve":true`}},
		{question("q3", "limit", ""), "/answer no that is enough", []string{`"approve":false`, `"text":"that is enough"`}},
	} {
		d.opens(tt.q)
		c.Line(tt.line)
		c.did(append(tt.want, "answer "+tt.q.ID)...)
	}
	d.opens(question("q4", "followup", ""))
	c.Line("/answer")
	c.shows("want /answer WORDS")
}

// Words reach the run at its next request, also past a question that stays open.
func TestSteer(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	c.Line("/steer")
	c.shows("want /steer WORDS")
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("/steer and mind the tests")
	c.did("send t1", `"text":"and mind the tests"`, `"delivery":"queue"`)
	if !c.state().Asking {
		t.Error("the question is gone")
	}
}

func TestSteerWithoutARun(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.replies("t1", "run1", "done")
	c.idle()
	c.Line("/steer this way")
	if call := c.did("send t1", "this way"); strings.Contains(call, "queue") {
		t.Errorf("nothing works, and it waits: %s", call)
	}
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.emit("t1", "run.waiting", `"run":"run2","question":"q1"`)
	c.when("let go", func(st state) bool { return !st.Working })
	c.Line("/steer that way")
	c.shows("it waits for an answer")
}

// /now breaks off what is done; a question is no work that could be broken off.
func TestNow(t *testing.T) {
	d := newDesk(t)
	d.says["!ls"] = Said{Out: "a\n"}
	c := newWorkingChat(t, d)
	c.Line("!ls")
	c.shows("goes along")
	c.Line("/now stop that, do this")
	c.did("send t1", `"delivery":"interrupt"`, "stop that, do this", "$ ls")
	d.emit("t1", "run.ended", `"run":"run1","outcome":"interrupted","reason":"somebody said something"`)
	d.replies("t1", "run2", "on it")
	c.shows("interrupted and saved; the run continues with your words", "on it")
	c.idle()
	c.Line("/now again")
	c.did("send t1", `"text":"again"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("/now never mind")
	c.shows("a question is open: /reject WHY or /answer WORDS")
	c.Line("/now")
	c.shows("want /now WORDS")
}

func TestShiftTabGoesThroughThePolicies(t *testing.T) {
	d := newDesk(t)
	m, c, _ := screened(t, d)
	shift := func() string {
		m.types(t, "shift+tab")
		return m.seen()
	}
	for _, want := range []string{"read", "edits", "ask", "read"} {
		if got := shift(); !strings.Contains(got, "unasked: "+want+", ") {
			t.Errorf("it is not %s:\n%s", want, got)
		}
	}
	if got := m.seen(); !strings.HasPrefix(got, "· unasked: read (Shift+Tab changes it)\n› ") {
		t.Errorf("above the editor:\n%s", got)
	}
	m.types(t, "begin", "enter")
	c.did("start begin", `"approve":"read"`)
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	m.types(t, "shift+tab")
	if got := c.state().Policy; got != "edits" {
		t.Errorf("it is %q", got)
	}
	d.replies("t1", "run1", "done")
	c.idle()
	m.types(t, "more", "enter")
	c.did("resume t1", `"approve":"edits"`)
}

// Nobody allows everything by a key too much; who said so before can come back to it.
func TestShiftTabAllowsAllOnlyToWhoSaidSo(t *testing.T) {
	c := talking(t, newDesk(t))
	for range 9 {
		if told := c.cycle(); strings.Contains(told, "all") {
			t.Fatal(told)
		}
	}
	c.Line("/approve all")
	c.shows("unasked: all, every tool and command")
	c.idle()
	if told := c.cycle(); !strings.HasPrefix(told, "unasked: ask") {
		t.Errorf("behind all comes %q", told)
	}
	c.cycle()
	c.cycle()
	if told := c.cycle(); !strings.HasPrefix(told, "unasked: all") {
		t.Errorf("it does not come back: %q", told)
	}
	given := talking(t, newDesk(t), func(o *Options) { o.New.Approve = "all" })
	if got := given.state().unasked(); !strings.Contains(got, "all") {
		t.Errorf("it does not stand there: %q", got)
	}
}

// What was set for one task's next run is not for another's.
func TestSettingsStayWithTheirTask(t *testing.T) {
	d := newDesk(t)
	d.status = "completed"
	c := talking(t, d, func(o *Options) { o.Task, o.Again = "t1", api.NewRun{Settings: api.Settings{Mode: "ask"}} })
	c.when("there", func(st state) bool { return st.Task == "t1" && !st.Busy && st.Facts.Mode == "ask" })
	c.Line("/approve all")
	c.shows("unasked: all")
	c.Line("/resume t2")
	c.when("turned", func(st state) bool { return st.Task == "t2" && !st.Busy && st.Policy == "" && st.Facts.Mode == "code" })
	c.Line("/approve")
	c.shows("unasked: as the task has it")
	c.Line("go on")
	if call := c.did("send t2", "go on"); strings.Contains(call, "all") {
		t.Errorf("another task's policy: %s", call)
	}
	d.replies("t2", "run1", "done")
	c.idle()
	c.Line("/approve edits")
	c.Line("/new")
	c.when("none", func(st state) bool { return st.Task == "" && !st.Busy && st.Policy == "ask" })
	c.Line("fresh")
	if call := c.did("start fresh"); strings.Contains(call, "approve") {
		t.Errorf("the old task's policy: %s", call)
	}
	d.replies("t1", "run2", "done")
	c.idle()
	c.Line("next")
	if call := c.did("send t1", "next"); strings.Contains(call, "edits") {
		t.Errorf("the old task's policy: %s", call)
	}
}
