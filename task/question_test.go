package task_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

func openQuestions(s *task.State) string {
	var out []string
	for _, q := range s.Questions {
		out = append(out, q.Question)
	}
	return strings.Join(out, " ")
}

func TestAQuestionStaysOpenUntilItIsClosed(t *testing.T) {
	w := tell(t, api.QuestionOpened{Question: "q1", Kind: "followup", Text: "which?", Choices: []string{"a", "b"}, Message: 4})
	w.then(api.QuestionOpened{Question: "q2", Kind: "resume"})
	w.then(api.QuestionOpened{Question: "q1", Kind: "followup", Text: "asked again"}) // by a restart
	if got := openQuestions(w.State); got != "q1 q2" {
		t.Fatalf("open %q", got)
	}
	want := &task.Question{QuestionOpened: api.QuestionOpened{Question: "q1", Kind: "followup", Text: "which?", Choices: []string{"a", "b"}, Message: 4}, Opened: 1001, Seq: 1,
		Asked: task.Position{Epoch: 1, Seq: 3}}
	for name, s := range map[string]*task.State{"folded": w.State, "restored": w.restored(0)} {
		if d := cmp.Diff(want, s.Question("q1")); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
	w.then(api.QuestionClosed{Question: "q1", Text: "a", By: "http"}).then(api.QuestionClosed{Question: "q1", Text: "b", By: "terminal"})
	if got := openQuestions(w.State); got != "q2" || w.Question("q1") != nil {
		t.Errorf("open %q", got)
	}
}

// Consent holds for what was asked and until it is used; a kill in between must
// not cost it, and a change of the plan must not inherit it.
func TestWhatAnAnswerAnswers(t *testing.T) {
	yes := true
	asked := api.QuestionOpened{Question: "q", Kind: "approval", Call: "c1", Text: "write a?", Diff: "+a"}
	closed := api.QuestionClosed{Question: "q", Approve: &yes, By: "terminal"}
	for _, c := range []struct {
		name   string
		events []task.Event
		ask    func(q *api.QuestionOpened)
		want   bool
	}{
		{"nobody answered", []task.Event{asked}, nil, false},
		{"it was answered", []task.Event{asked, closed}, nil, true},
		{"another text", []task.Event{asked, closed}, func(q *api.QuestionOpened) { q.Text = "write b?" }, false},
		{"another change", []task.Event{asked, closed}, func(q *api.QuestionOpened) { q.Diff = "+b" }, false},
		{"another call", []task.Event{asked, closed}, func(q *api.QuestionOpened) { q.Call = "c2" }, false},
		{"another question", []task.Event{asked, closed}, func(q *api.QuestionOpened) { q.Question = "q2" }, false},
		{"another row of the same", []task.Event{asked, closed}, func(q *api.QuestionOpened) { q.Message = 9 }, true},
		{"the call started only", []task.Event{asked, closed, task.ToolStarted{Call: "c1"}}, nil, true},
		{"the call used it", []task.Event{asked, closed, task.ToolFinished{Call: "c1"}}, nil, false},
		{"another call has an outcome", []task.Event{asked, closed, task.ToolFinished{Call: "c2"}}, nil, true},
		{"it was asked anew", []task.Event{asked, closed, asked}, nil, false},
		{"and answered anew", []task.Event{asked, closed, asked, api.QuestionClosed{Question: "q", Text: "no", By: "http"}}, nil, true},
		{"it was superseded", []task.Event{asked, api.QuestionClosed{Question: "q", By: "roost", Reason: "superseded"}}, nil, false},
		{"it was never open", []task.Event{closed}, nil, false},
		{"no call waits for it", []task.Event{api.QuestionOpened{Question: "q", Text: "write a?", Diff: "+a"}, closed}, func(q *api.QuestionOpened) { q.Call = "" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tell(t, c.events...)
			q := asked
			if c.ask != nil {
				c.ask(&q)
			}
			for name, s := range map[string]*task.State{"folded": w.State, "restored": w.restored(0)} {
				if _, ok := s.Answer(q); ok != c.want {
					t.Errorf("%s: answered %t, want %t", name, ok, c.want)
				}
			}
		})
	}
}

func TestTheNewestAnswerCounts(t *testing.T) {
	yes, no := true, false
	q := api.QuestionOpened{Question: "q", Call: "c1"}
	w := tell(t, q, api.QuestionClosed{Question: "q", Approve: &yes}, q, api.QuestionClosed{Question: "q", Approve: &no, Text: "not this"})
	if a, ok := w.Answer(q); !ok || *a.Approve || a.Text != "not this" {
		t.Errorf("got %+v, want ok and not *a.Approve and a.Text = \"not this\"", a)
	}
}

func TestInputWaitsUntilItIsTaken(t *testing.T) {
	in := func(id string) task.InputQueued {
		return task.InputQueued{Input: id, Text: "text of " + id, Images: []string{"data:," + id}}
	}
	w := tell(t, in("a"), in("b"), in("c")).then(task.InputTaken{Input: "b"}, task.InputTaken{Input: "x"})
	if d := cmp.Diff([]task.InputQueued{in("a"), in("c")}, w.Queue); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(w.Queue, w.restored(0).Queue); d != "" {
		t.Errorf("restored: %s", d)
	}
}

// A child's end is told once, by whoever owns the parent, also when the commit
// that began it is lost.
func TestChildrenEndOnce(t *testing.T) {
	w := tell(t, task.SubtaskStarted{Child: "a", Call: "c1"}, task.SubtaskStarted{Child: "b"})
	w.then(task.SubtaskEnded{Child: "b", Result: "done"}).lose()
	w.then(task.SubtaskEnded{Child: "lost", Result: "also done"})
	want := []task.Child{{ID: "a", Call: "c1"}, {ID: "b", Ended: true, Result: "done"}, {ID: "lost", Ended: true, Result: "also done"}}
	if d := cmp.Diff(want, w.Children); d != "" {
		t.Error(d)
	}
	w.then(task.SubtaskStarted{Child: "a", Call: "c1"}) // a restart that does not know whether it said so
	if d := cmp.Diff(want, w.Children); d != "" {
		t.Errorf("begun twice: %s", d)
	}
}
