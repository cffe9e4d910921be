package task_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// What the state says of the newest run, as its life goes on.
func TestARunsLife(t *testing.T) {
	w := tell(t, task.Created{Task: "t", Settings: task.Settings{Mode: "code"}})
	check := func(what string, want *task.Run) {
		t.Helper()
		if d := cmp.Diff(want, w.Run, cmpopts.IgnoreFields(task.Run{}, "Before")); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", what, d)
		}
	}
	check("nothing ran yet", nil)
	settings := task.Settings{Mode: "ask", Limits: api.RunLimits{MaxTurns: 3}}
	w.then(task.RunStarted{Run: "r1", Settings: settings, Head: "abc"})
	check("it goes on", &task.Run{ID: "r1", Settings: settings, Head: "abc", Started: 1002})
	if d := cmp.Diff(settings, w.Settings); d != "" {
		t.Errorf("a run's settings are the task's from now on: %s", d)
	}
	w.then(api.QuestionOpened{Question: "q"}, task.RunWaiting{Run: "r1", Question: "q"})
	check("it waits", &task.Run{ID: "r1", Settings: settings, Head: "abc", Started: 1002, Waiting: "q"})
	w.then(api.QuestionClosed{Question: "other"})
	check("it still waits", &task.Run{ID: "r1", Settings: settings, Head: "abc", Started: 1002, Waiting: "q"})
	w.then(api.QuestionClosed{Question: "q", By: "terminal"})
	check("it was answered", &task.Run{ID: "r1", Settings: settings, Head: "abc", Started: 1002})
	w.then(task.RunWaiting{Run: "r1", Question: "q2"}).then(task.RunEnded{Run: "r1", Outcome: "limit", Reason: "3 turns", Code: "turns"})
	check("it ended", &task.Run{ID: "r1", Settings: settings, Head: "abc", Started: 1002, Ended: 1007, Outcome: "limit", Reason: "3 turns", Code: "turns"})
	w.then(task.RunStarted{Run: "r2"})
	check("the next one knows nothing of it", &task.Run{ID: "r2", Started: 1008})
	if len(w.Runs.All) != 2 {
		t.Errorf("%d runs", len(w.Runs.All))
	}
}

// The commit that began a run may be lost. How it ended is still the newest there
// is to say of the task.
func TestAnEndWhoseStartIsLost(t *testing.T) {
	w := tell(t, task.Created{Task: "t"}).lose()
	w.then(task.RunEnded{Run: "r1", Outcome: "completed"})
	if w.Run == nil || w.Run.ID != "r1" || w.Run.Outcome != "completed" || len(w.Runs.All) != 1 {
		t.Errorf(`got %+v, want w.Run != nil and w.Run.ID = "r1" and w.Run.Outcome = "completed" and len(w.Runs.All) = 1`,
			w.Run)
	}
	w.then(task.RunStarted{Run: "r2"}).lose()
	w.then(task.RunWaiting{Run: "r3", Question: "q"})
	if w.Run.ID != "r3" || w.Run.Waiting != "q" || w.Run.Outcome != "" || len(w.Runs.All) != 3 {
		t.Errorf("%+v, %d runs", w.Run, len(w.Runs.All))
	}
}

// A scripted model finds its place by replies and by the failures since the last.
func TestTurnsRepliesAndFailures(t *testing.T) {
	w := tell(t, apiMessage(1, `{"role":"user","content":"x"}`))
	for _, c := range []struct {
		name                     string
		event                    task.Event
		turns, replies, failures int
	}{
		{"a request", task.TurnStarted{Turn: 1}, 1, 0, 0},
		{"it failed", task.TurnFailed{Turn: 1}, 1, 0, 1},
		{"again", task.TurnStarted{Turn: 2}, 2, 0, 1},
		{"and failed", task.TurnFailed{Turn: 2}, 2, 0, 2},
		{"a reply", apiMessage(2, assistant("c1")), 2, 1, 0},
		{"a user turn", apiMessage(3, results("c1")), 2, 1, 0},
		{"a failure", task.TurnFailed{Turn: 3}, 2, 1, 1},
		{"a summary is no reply", apiMessage(4, `{"role":"assistant","content":"sum","isSummary":true}`), 2, 1, 1},
		{"a reply without calls", apiMessage(5, `{"role":"assistant","content":"b"}`), 2, 2, 0},
		{"a failure", task.TurnFailed{Turn: 4}, 2, 2, 1},
		{"an earlier reply goes", hidden("rewind", 2), 2, 1, 1},
		{"the last one goes", hidden("rewind", 5), 2, 0, 0},
		{"a turn of a restart counts on", task.TurnStarted{Turn: 7}, 7, 0, 0},
		{"an older number takes nothing back", task.TurnStarted{Turn: 3}, 7, 0, 0},
	} {
		w.then(c.event)
		if w.Turns != c.turns || w.Replies != c.replies || w.Failures != c.failures {
			t.Errorf("%s: %d turns, %d replies, %d failures; want %d, %d, %d", c.name, w.Turns, w.Replies, w.Failures, c.turns, c.replies, c.failures)
		}
	}
}

func TestLabelsChangeOneByOne(t *testing.T) {
	w := tell(t, task.Created{Task: "t", Title: "first", Origin: "cli", Number: 2, Parent: "p", RootTask: "r", CreatedAt: 5, Settings: task.Settings{Model: "m"}})
	empty := ""
	w.then(task.Changed{Settings: &task.Settings{Model: "n", Allow: []string{"git log"}}})
	if w.Title != "first" || w.Settings.Model != "n" {
		t.Errorf("title %q, settings %+v", w.Title, w.Settings)
	}
	w.then(task.Changed{Title: &empty})
	if w.Title != "" || w.Settings.Model != "n" || w.Number != 2 || w.Parent != "p" || w.RootTask != "r" || w.Origin != "cli" || w.CreatedAt != 5 {
		t.Errorf(`got %s, want w.Title = "" and w.Settings.Model = "n" and w.Number = 2 and w.Parent = "p" and w.RootTask = "r" and w.Origin = "cli" and w.CreatedAt = 5`,
			dump(w.State))
	}
}

// An owner that only looks is no change of the task.
func TestTakingOwnershipIsNoUpdate(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	at := w.UpdatedAt
	w.then(task.EpochOpened{})
	if at != 1001 || w.UpdatedAt != at {
		t.Errorf("updated at %d, then %d", at, w.UpdatedAt)
	}
	late := encode(t, 3, task.TurnStarted{Turn: 1})
	late.At, late.Epoch = 500, 9 // the clock went back
	if err := w.Apply(late); err != nil || w.UpdatedAt != at || w.Epoch != 9 {
		t.Errorf("updated at %d, epoch %d, %v", w.UpdatedAt, w.Epoch, err)
	}
}

func TestTheNewestTimeStampOfBothHistories(t *testing.T) {
	w := tell(t)
	for _, c := range []struct {
		event task.Event
		want  int64
	}{
		{apiMessage(1, `{"role":"user","content":"x","ts":50}`), 50},
		{ui(2, `{"ts":7e1,"type":"say","say":"text"}`), 70},
		{ui(3, `{"type":"say","say":"text"}`), 50}, // a row without one
		{hidden("rewind", 3), 70},
		{apiMessage(4, `{"role":"assistant","content":"y","ts":90}`), 90},
		{hidden("rewind", 1, 2, 4), 0},
	} {
		w.then(c.event)
		if got := w.LastTS(); got != c.want {
			t.Errorf("after %s %d, want %d", c.event.EventType(), got, c.want)
		}
	}
}
