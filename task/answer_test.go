package task

import (
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// An answer is acknowledged input: until its call has an outcome, a restart must
// find it again.
func TestAnswerIsKeptUntilItsCallUsedIt(t *testing.T) {
	s := New(nil)
	yes := true
	seq := uint64(0)
	apply := func(events ...Event) {
		t.Helper()
		seq++
		c := journal.Commit{Seq: seq, Epoch: 1}
		for _, e := range events {
			raw, err := Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			c.Events = append(c.Events, raw)
		}
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	q1 := api.QuestionOpened{Question: "q1", Kind: "approval", Call: "c1", Text: "write?", Diff: "+a"}
	apply(q1)
	if _, ok := s.Answer(q1); ok {
		t.Fatal("an open question has an answer")
	}
	apply(api.QuestionClosed{Question: "q1", Approve: &yes, By: "terminal"})
	other := q1
	other.Diff = "+b"
	if _, ok := s.Answer(other); ok {
		t.Fatal("consent to one change was taken for another")
	}
	if a, ok := s.Answer(q1); !ok || a.Approve == nil || !*a.Approve {
		t.Fatalf("the answer is gone: %+v", a)
	}
	if s.Question("q1") != nil {
		t.Fatal("an answered question is still open")
	}
	apply(ToolFinished{Call: "c1", Name: "execute_command", Outcome: "ok", Result: []byte(`{"type":"tool_result","tool_use_id":"c1","content":"x"}`)})
	if _, ok := s.Answer(q1); ok {
		t.Fatal("a used answer is kept")
	}

	q2 := api.QuestionOpened{Question: "q2", Kind: "approval", Call: "c2", Text: "run?"}
	apply(q2)
	apply(api.QuestionClosed{Question: "q2", By: "engine", Reason: "superseded"})
	if _, ok := s.Answer(q2); ok {
		t.Fatal("a question that nobody answered has an answer")
	}
}
