package task_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

func openIDs(s *task.State) string {
	var ids []string
	for _, c := range s.OpenCalls() {
		ids = append(ids, c.ID+":"+string(c.Outcome()))
	}
	return strings.Join(ids, " ")
}

// After a crash every call is one of three. Each row is a moment of a kill.
func TestWhatARestartMayDoWithACall(t *testing.T) {
	reply := []task.Event{apiMessage(1, `{"role":"user","content":"x"}`), apiMessage(2, assistant("c1", "c2"))}
	for _, c := range []struct {
		name   string
		events []task.Event
		want   string
	}{
		{"the reply is stored", nil, "c1:not_started c2:not_started"},
		{"the first body was about to run", []task.Event{task.ToolStarted{Call: "c1"}}, "c1:unknown c2:not_started"},
		{"its process was noted", []task.Event{task.ToolProcess{Call: "c1", PGID: 7}}, "c1:not_started c2:not_started"},
		{"the first has its outcome", []task.Event{task.ToolStarted{Call: "c1"}, finished("c1", "r")}, "c1:finished c2:not_started"},
		{"an outcome without a start", []task.Event{finished("c2", "refused")}, "c1:not_started c2:finished"},
		{"both have one", []task.Event{finished("c1", "r"), finished("c2", "r")}, "c1:finished c2:finished"},
		{"one result is in the history", []task.Event{finished("c1", "r"), answers(3, "c1")}, "c2:not_started"},
		{"all results are", []task.Event{finished("c1", "r"), finished("c2", "r"), answers(3, "c1", "c2")}, ""},
		{"a result that another program gave", []task.Event{apiMessage(3, results("c1", "c2"))}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tell(t, reply...)
			if len(c.events) > 0 {
				w.then(c.events...)
			}
			if got := openIDs(w.State); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyTheLastReplysCallsAreOpen(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")), apiMessage(2, assistant("c2")), apiMessage(3, `{"role":"user","content":[]}`))
	if got := openIDs(w.State); got != "c2:not_started" {
		t.Errorf("open %q", got)
	}
	w.then(hidden("rewind", 2))
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Errorf("after a rewind, open %q", got)
	}
	w.then(hidden("rewind", 1))
	if got := openIDs(w.State); got != "" {
		t.Errorf("without a reply, open %q", got)
	}
}

func TestACallKnowsWhatTheModelWrote(t *testing.T) {
	w := tell(t, apiMessage(1, `{"role":"assistant","content":["odd",{"type":"text","id":"c1","input":0},`+
		`{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a","n":1.0}},{"type":"tool_use","id":"c1","name":"twice","input":{}}]}`))
	c := w.Call("c1")
	if c == nil || string(c.Input()) != `{"path":"a","n":1.0}` || c.Message != 1 {
		t.Fatalf("got %+v, want c != nil and string(c.Input()) = `{\"path\":\"a\",\"n\":1.0}` and c.Message = 1", c)
	}
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Errorf("an id that one reply used twice is open as %q", got)
	}
	if w.Call("nobody") != nil {
		t.Error("a call that nobody made")
	}
}

// The reply may be lost with its commit; the intent that followed is not.
func TestACallWhoseReplyIsLostIsKept(t *testing.T) {
	w := tell(t, apiMessage(1, `{"role":"user","content":"x"}`)).lose()
	w.then(task.ToolStarted{Call: "c1", Name: "execute_command", Replay: "never"})
	c := w.Call("c1")
	if c == nil || c.Outcome() != task.OutcomeUnknown || c.Name != "execute_command" || c.Input() != nil {
		t.Fatalf("got %+v, want c != nil and c.Outcome() = task.OutcomeUnknown and c.Name = \"execute_command\" and c.Input() = nil",
			c)
	}
	w.then(apiMessage(5, assistant("c1")))
	if got := openIDs(w.State); got != "c1:unknown" {
		t.Errorf("the reply made a new call of it: %q", got)
	}
}

func TestWhatStartedACallIsKept(t *testing.T) {
	w := tell(t, ui(1, `{"ts":1}`), apiMessage(2, assistant("c1")))
	w.then(task.ToolStarted{Call: "c1", Name: "write_to_file", Replay: "inspect", Message: 1, Before: map[string]string{"a": ""}})
	w.then(task.ToolProcess{Call: "c1", Mark: "m"}, task.ToolProcess{Call: "c1", PGID: 9, Started: 5, Boot: "b", Mark: "m"})
	w.then(task.ToolStarted{Call: "c1", Name: "write_to_file", Replay: "inspect"}) // again, without a row of its own
	for name, s := range map[string]*task.State{"folded": w.State, "restored": w.restored(0)} {
		c := s.Call("c1")
		want := &task.ToolProcess{Call: "c1", PGID: 9, Started: 5, Boot: "b", Mark: "m"}
		if d := cmp.Diff(want, c.Process); d != "" || c.UI != 1 || c.Replay != "inspect" {
			t.Errorf(`%s: got %+v %s, want d = "" and c.UI = 1 and c.Replay = "inspect"`, name, c, d)
		}
	}
}

// A visible id that comes again is the provider's fault, and the first call has
// its outcome already. A rewound one is another matter: see below.
func TestAnIDUsedTwiceStaysWithItsFirstCall(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")), finished("c1", "r"), answers(2, "c1"))
	w.then(apiMessage(3, assistant("c1", "c2")))
	if got := openIDs(w.State); got != "c2:not_started" || w.Call("c1").Message != 1 {
		t.Errorf("open %q", got)
	}
}

// A message of another program may hold any number of calls, and two messages the same ones.
func TestTheCallsOfAMessageAreBounded(t *testing.T) {
	const many, most = 20_000, 1000
	list := make([]string, many)
	for i := range list {
		list[i] = "c" + strconv.Itoa(i)
	}
	w := tell(t, apiMessage(1, assistant(list...)), apiMessage(2, assistant(list...)), apiMessage(3, results(list...)))
	if got := len(w.Calls()); got != most {
		t.Errorf("got %d calls, want %d", got, most)
	}
}

func TestAReplyThatNoLongerMakesACallGivesItsIDFree(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")))
	w.then(task.MessageChanged{Message: 1, Body: body(assistant("c2"))})
	w.then(apiMessage(2, results("c2")), apiMessage(3, assistant("c1")))
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Errorf("open %q", got)
	}
}

// A result says something of the call before it, not of one that comes later
// and has the same id.
func TestAResultAnswersOnlyWhatCameBeforeIt(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")), finished("c1", "r"), answers(2, "c1"))
	w.then(hidden("foreign", 1)) // another program took out the reply and left its results
	w.then(apiMessage(3, assistant("c1")))
	before := openIDs(w.State)
	w.then(apiMessage(4, `{"role":"user","content":"x"}`)).then(hidden("rewind", 4)) // looks at the whole history again
	if after := openIDs(w.State); before != "c1:not_started" || after != before {
		t.Errorf("open %q, and after looking again %q", before, after)
	}
}

// What a call did is still true when its reply comes back into the history: it
// must not run a second time.
func TestACallThatComesBackKeepsItsOutcome(t *testing.T) {
	reply := assistant("c1")
	w := tellWith(t, blobMap{"f": reply}, apiMessage(1, `{"role":"user","content":"x"}`), apiMessage(2, reply))
	w.then(task.ToolStarted{Call: "c1", Name: "execute_command"}, finished("c1", "r"))
	w.then(hidden("rewind", 2))
	w.then(apiMessage(3, reply)) // played again, with the same id
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Fatalf("the new call is %q", got)
	}
	w.then(task.ForeignImported{History: task.API, Blob: "f", Rows: []task.ForeignRow{{Message: 1}, {Message: 2}}})
	if got := openIDs(w.State); got != "c1:finished" {
		t.Errorf("the old call is %q, though it ran", got)
	}
	w.then(task.ForeignImported{History: task.API, Blob: "f", Rows: []task.ForeignRow{{Message: 1}, {Message: 3}}})
	if got := openIDs(w.State); got != "c1:not_started" {
		t.Errorf("the new call is %q, though it never started", got)
	}
}

func TestResultsThatCannotBeReadAreErrors(t *testing.T) {
	blobs := blobMap{"r": resultOf("c1", "large")}
	w := tellWith(t, blobs, apiMessage(1, assistant("c1", "c2")))
	w.then(task.ToolFinished{Call: "c1", Name: "n", Outcome: "ok", Blob: "r"})
	if got, err := w.Call("c1").Result(); err != nil || string(got) != blobs["r"] {
		t.Fatalf("got %s %v, want no error and string(got) = blobs[\"r\"]", got, err)
	}
	if err := w.try(task.ToolFinished{Call: "c2", Name: "n", Outcome: "ok", Blob: "gone"}); err == nil {
		t.Error("a result without its blob was folded in silence")
	}
	if got := w.Call("c2").Outcome(); got != task.OutcomeFinished {
		t.Errorf("a call that ran is %s without its result's bytes", got)
	}
	// A turn without the result would be one that the provider refuses.
	if err := w.try(answers(2, "c2")); err == nil || !w.Message(2).Missing {
		t.Errorf("a user turn was composed without its result: %s", w.Message(2).Raw())
	}
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if _, err := s.Call("c2").Result(); err == nil {
			t.Errorf("%s: a result that is gone was read", name)
		}
		if got, err := s.Call("c1").Result(); err != nil || string(got) != blobs["r"] {
			t.Errorf("%s: got %s %v, want no error and string(got) = blobs[\"r\"]", name, got, err)
		}
	}
}
