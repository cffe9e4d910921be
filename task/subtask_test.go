package task_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// delegates is a reply that starts a child, behind a call of another tool.
const delegates = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_file","input":{}},{"type":"tool_use","id":"c2","name":"new_task","input":{"mode":"code","message":"x"}}],"ts":1776200000000}`

func reply(id uint64, raw string) task.MessageAdded {
	return task.MessageAdded{History: task.API, Message: id, Body: task.Body{Raw: json.RawMessage(raw)}}
}

func awaited(s *task.State) string {
	if c := s.Awaited(); c != nil {
		return c.ID
	}
	return ""
}

// A task waits for a child for as long as the call that started it is open in the
// history that is seen.
func TestHowLongATaskWaits(t *testing.T) {
	ok := task.ToolFinished{Call: "c2", Name: "new_task", Outcome: "ok", Result: json.RawMessage(`{"type":"tool_result","tool_use_id":"c2","content":"x"}`)}
	begun := []task.Event{task.Created{Task: "p"}, reply(1, delegates), task.SubtaskStarted{Child: "kid", Call: "c2", Message: 1, Mode: "code"}}
	for name, c := range map[string]struct {
		then []task.Event
		want string
	}{
		"begun":                     {nil, "kid"},
		"its end is told":           {[]task.Event{ok, task.SubtaskEnded{Child: "kid", Outcome: "completed"}}, ""},
		"only its end is left":      {[]task.Event{task.SubtaskEnded{Child: "kid"}}, ""},
		"only the outcome is left":  {[]task.Event{ok}, ""},
		"the call is rewound":       {[]task.Event{task.MessageHidden{Messages: []uint64{1}, Reason: "rewind"}}, ""},
		"another call has its id":   {[]task.Event{task.MessageHidden{Messages: []uint64{1}}, reply(2, delegates)}, ""},
		"and starts another child":  {[]task.Event{task.MessageHidden{Messages: []uint64{1}}, reply(2, delegates), task.SubtaskStarted{Child: "kid2", Call: "c2", Message: 2}}, "kid2"},
		"a result of another's run": {[]task.Event{reply(2, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"x"},{"type":"tool_result","tool_use_id":"c1","content":"x"}]}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := tell(t, begun...).then(c.then...)
			if got := awaited(w.State); got != c.want {
				t.Errorf("it waits for %q, want %q", got, c.want)
			}
			if got := awaited(w.restored(0)); got != c.want {
				t.Errorf("restored, it waits for %q, want %q", got, c.want)
			}
		})
	}
}

// The results so far are a turn as soon as one other call has one, with a placeholder for each that has none.
func TestResultsSoFar(t *testing.T) {
	w := tell(t, task.Created{Task: "p"}, reply(1, delegates))
	check := func(want string) {
		t.Helper()
		if got, err := w.ResultsSoFar(); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	check("")
	w.then(task.SubtaskStarted{Child: "kid", Call: "c2", Message: 1, Mode: "code"})
	check("")
	w.then(finished("c1", "x"))
	check(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"Tool execution was interrupted before completion."},` +
		resultOf("c1", "x") + `],"ts":1776200000001}`)
	w.then(task.MessageHidden{Messages: []uint64{1}, Reason: "rewind"})
	check("")
}

// The id of a child follows from what called for it and from nothing else, and can be a
// task's.
func TestChildID(t *testing.T) {
	id := func(parent string, events ...task.Event) string {
		w := tell(t, append([]task.Event{task.Created{Task: parent}}, events...)...)
		return task.ChildID(w.State, w.Call("c2"))
	}
	again := task.MessageHidden{Messages: []uint64{1}}
	first := id("p", reply(1, delegates))
	if !regexp.MustCompile(`^019d8dc5-2200-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(first) {
		t.Error(first) // the time of the reply, and the version of new ids
	}
	// A run after a crash must find the child that an older program started.
	if got, want := id("p", reply(20, delegates)), "019d8dc5-2200-7e98-9927-edd48da983f5"; got != want {
		t.Errorf("got the child %s, want %s", got, want)
	}
	if first != id("p", reply(1, delegates), task.SubtaskStarted{Child: first, Call: "c2", Message: 1}) {
		t.Error("it changes while the task goes on")
	}
	seen := map[string]string{first: "first"}
	for name, other := range map[string]string{
		"another task": id("q", reply(1, delegates)), "another reply": id("p", reply(1, delegates), again, reply(2, delegates)),
	} {
		if seen[other] != "" {
			t.Errorf("%s has the child of %s", name, seen[other])
		}
		seen[other] = name
	}
}

// What another program's history item says of children.
func TestChildrenOfAnAdoptedTask(t *testing.T) {
	for item, want := range map[string]struct {
		children []task.Child
		awaited  string
	}{
		`{}`: {},
		`{"childIds":["a","b"],"awaitingChildId":"b","delegatedToId":"b","status":"delegated"}`: {[]task.Child{{ID: "a", Ended: true}, {ID: "b"}}, "b"},
		`{"awaitingChildId":"b"}`: {[]task.Child{{ID: "b"}}, "b"},
		`{"childIds":["a"],"completedByChildId":"a","completionResultSummary":"Did it.","status":"active"}`: {[]task.Child{{ID: "a", Ended: true, Outcome: "completed", Result: "Did it."}}, ""},
		`{"childIds":["a"],"completedByChildId":"a","completionResultSummary":"x","awaitingChildId":"a"}`:   {[]task.Child{{ID: "a"}}, "a"},
		`{"childIds":[7,"",null,{"x":1}],"awaitingChildId":9}`:                                              {},
		`{"childIds":"a"}`: {},
	} {
		file, spans := list(delegates)
		blobs := blobMap{"api": file}
		w := tellWith(t, blobs, task.Adopted{Task: "p", Item: json.RawMessage(item), Files: []task.Original{original(task.API, "api", spans...)}})
		if d := cmp.Diff(want.children, w.Children); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", item, d)
		}
		if got := awaited(w.State); got != want.awaited {
			t.Errorf("%s: it waits for %q", item, got)
		}
	}
	many := `{"childIds":["x"`
	for i := range 10_050 {
		many += fmt.Sprintf(`,"%d"`, i)
	}
	if n := len(tell(t, task.Adopted{Task: "p", Item: json.RawMessage(many + `]}`)}).Children); n != 10_000 {
		t.Errorf("%d children of a hostile item", n)
	}
}

// A run that waits because its subtask does is not waiting for a question of its own.
func TestWaitingForAChildsQuestion(t *testing.T) {
	w := tell(t, task.RunStarted{Run: "r1"}, api.QuestionOpened{Question: "q3"}, task.RunWaiting{Run: "r1", Question: "q3", Child: "kid"})
	w.then(api.QuestionClosed{Question: "q3"})
	if w.Run.Waiting != "kid" {
		t.Errorf("it waits for %q", w.Run.Waiting)
	}
	w.then(task.RunEnded{Run: "r1", Outcome: "interrupted"})
	if w.Run.Waiting != "" {
		t.Errorf("it waits for %q", w.Run.Waiting)
	}
}
