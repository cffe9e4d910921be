package chat

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

const approval = `"question":"q1","kind":"approval","text":"write note.txt","diff":"+one\n","always":"all calls of write_to_file inside the workspace"`

// newWorkingChat is a chat whose run is at work.
func newWorkingChat(t *testing.T, d *desk, change ...func(*Options)) *chatting {
	t.Helper()
	c := talking(t, d, change...)
	c.Line("begin")
	c.did("start begin")
	d.emit("t1", "run.started", `"run":"run1"`)
	c.when("at work", func(st state) bool { return st.Working && !st.Busy })
	return c
}

func TestAnApprovalIsAskedInline(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.shows("? write note.txt", "+one", "y once, a always, n no (reason), d diff, q stop > ")
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("")
	c.shows("Enter alone is not an answer", "q stop > ")
	c.Line("maybe")
	c.shows("answer with one of the letters")
	c.Line("n use another file")
	call := c.did("answer t1.q1")
	for _, want := range []string{`"approve":false`, `"text":"use another file"`, `"seen":"1.2-0"`} {
		if !strings.Contains(call, want) {
			t.Errorf("the answer is %s, without %s", call, want)
		}
	}
	d.emit("t1", "question.closed", `"question":"q1","approve":false,"by":"cli"`)
	d.replies("t1", "run1", "then not")
	c.shows("then not")
	if strings.Contains(c.text(), "elsewhere") {
		t.Error("our own answer is told as another's")
	}
}

func TestAlwaysAndChoices(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("a")
	c.did("answer t1.q1", `"approve":true`, `"always":true`)
	d.emit("t1", "question.closed", `"question":"q1","by":"cli"`)
	d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"which colour?","choices":["red","blue"]`)
	c.shows("which colour?", "2. blue")
	c.when("asking again", func(st state) bool { return st.Asking })
	c.Line("2")
	c.did("answer t1.q2", `"text":"blue"`)
}

// An answer with several lines is one answer; one that begins with a "/" is a command.
func TestAnswersOfManyLinesAndCommands(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"how?"`)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("/tree")
	c.did("roost show --tree t1")
	c.Line("like this:\nfirst\nsecond")
	c.did("answer t1.q2", `like this:\nfirst\nsecond`)
}

func TestAQuestionThatIsAnsweredElsewhere(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.emit("t1", "message.added", `"history":"ui","message":9,"content":{"ts":1,"type":"say","say":"text","text":"meanwhile"}`)
	d.emit("t1", "question.closed", `"question":"q1","approve":true,"by":"api"`)
	c.shows("answered by api elsewhere", "meanwhile")
	c.when("not asking", func(st state) bool { return !st.Asking })
	c.Line("y") // is no answer any more
	c.did("send t1", `"text":"y"`)
	for _, call := range d.all() {
		if strings.HasPrefix(call, "answer") {
			t.Errorf("it was answered: %s", call)
		}
	}
}

func TestWhatWasTypedBeforeAQuestionAnswersNothing(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	for range 20 {
		c.Line("what?") // more than anybody reads
	}
	d.emit("t1", "question.closed", `"question":"q1","approve":true,"by":"api"`)
	d.emit("t1", "question.opened", `"question":"q2","kind":"followup","text":"and now?"`)
	c.shows("and now?")
	c.when("asking again", func(st state) bool { return st.Asking })
	c.Line("this")
	if call := c.did("answer t1.q2"); !strings.Contains(call, `"text":"this"`) {
		t.Errorf("the answer is %s", call)
	}
}

func TestStoppingAtAQuestion(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("q")
	c.did("cancel t1")
	d.emit("t1", "run.ended", `"run":"run1","outcome":"cancelled"`)
	c.idle()
}

func TestTheEndOfARunEndsItsQuestion(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.emit("t1", "run.ended", `"run":"run1","outcome":"interrupted","reason":"the process ended"`)
	c.when("not asking", func(st state) bool { return !st.Asking && !st.Working })
	c.shows("interrupted", "the process ended")
}

// A run that was let go while it waited still takes its answer here.
func TestAQuestionOutlivesItsRun(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.emit("t1", "run.waiting", `"run":"run1","question":"q1"`)
	c.when("let go", func(st state) bool { return !st.Working && st.Asking })
	c.Line("y")
	c.did("answer t1.q1", `"approve":true`)
	c.when("at work", func(st state) bool { return st.Working })
}

func TestQuestionsThatWereOpenBeforeAreAsked(t *testing.T) {
	d := newDesk(t)
	d.status = "waiting"
	q := api.Question{ID: "t1.q4", Task: "t1", Event: "1.9-2"}
	q.QuestionOpened = api.QuestionOpened{Question: "q4", Kind: "approval", Text: "run make"}
	d.open = []api.Question{q}
	c := talking(t, d, func(o *Options) { o.Task = "t1" })
	c.shows("? run make")
	c.when("asking", func(st state) bool { return st.Asking })
	c.Line("y")
	c.did("answer t1.q4", `"approve":true`, `"seen":"1.9-2"`)
}

func TestAnAnswerThatIsRefusedIsTold(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	d.mu.Lock()
	d.refuse = &client.Problem{Status: 409, Code: "answered", Title: "The question was answered already", Detail: "by api"}
	d.mu.Unlock()
	c.Line("y")
	c.shows("✗ answer: The question was answered already: by api")
	c.when("not asking", func(st state) bool { return !st.Asking })
}

// What is typed on behind an answer, before that was taken, is not lost: it answers nothing, and
// the person has it again.
func TestWhatIsTypedBehindAnAnswerComesBack(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d)
	d.emit("t1", "question.opened", approval)
	c.when("asking", func(st state) bool { return st.Asking })
	c.Session.mu.Lock() // both stand there before anybody reads
	c.answer <- "y"
	c.answer <- "and then tidy up"
	c.Session.mu.Unlock()
	c.did("answer t1.q1", `"approve":true`)
	c.when("it is there again", func(st state) bool { return len(st.Back) == 1 && st.Back[0] == "and then tidy up" })
}

// An answer that crossed somebody else's, and was not taken, is never offered to the question that
// comes next.
func TestAnAnswerThatCrossesAnotherIsForNoOtherQuestion(t *testing.T) {
	tk, c := stills(t, newDesk(t))
	done := make(chan struct{})
	close(done)
	// The person's answer was read at the moment when the other one was heard of.
	a := &ask{id: "t1.q1", task: "t1", cancel: func() {}, done: done, again: true}
	tk.ask = a
	tk.asked <- a
	c.change(func(st *state) { st.Retype = "n use another file" })
	tk.hears("question.closed", `"question":"q1","approve":true,"by":"api"`)
	if st := c.state(); st.Retype != "" || len(st.Back) != 1 || st.Back[0] != "n use another file" {
		t.Errorf("for the next question stands %q, and %q comes back", st.Retype, st.Back)
	}
}

// Who is not here is not asked; only /answer answers.
func TestWithoutSomebodyToAsk(t *testing.T) {
	d := newDesk(t)
	c := newWorkingChat(t, d, func(o *Options) { o.Ask = false })
	d.emit("t1", "question.opened", approval)
	c.shows("? write note.txt")
	c.when("waiting", func(st state) bool { return st.Waiting && !st.Asking })
	q := api.Question{ID: "t1.q1", Task: "t1", Event: "1.2-0"}
	q.QuestionOpened = api.QuestionOpened{Question: "q1", Kind: "approval"}
	d.mu.Lock()
	d.open = []api.Question{q}
	d.mu.Unlock()
	c.Line("/answer perhaps")
	c.when("refused", func(state) bool {
		err := c.failure()
		return err != nil && strings.Contains(err.Error(), "want /answer yes or /answer no")
	})
	c.Line("/answer yes but carefully")
	c.did("answer t1.q1", `"approve":true`, `"text":"but carefully"`, `"seen":"1.2-0"`)
}
