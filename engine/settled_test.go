package engine

import (
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A run may end before who waits for its question's end has read of that: the answer is
// theirs all the same, and nobody is told that somebody else was first.
func TestARunThatEndsAtOnceHasTakenItsAnswer(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Options{Root: dir + "/root", Cache: dir + "/cache", Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	owned, err := s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := New(s, Options{})
	opened := api.QuestionOpened{Question: "q", Kind: "followup"}
	for _, event := range []task.Event{task.RunStarted{Run: "r"}, opened, api.QuestionClosed{Question: "q", Text: "red"}} {
		if err := owned.Commit(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	from := owned.State().Seq - 1
	if err := owned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := &Run{after: runSequel{settled: make(chan struct{})}}
	close(run.after.settled)
	for range 100 {
		closed, err := e.waitClosed(t.Context(), run, Asked{Ref: owned.Ref, From: events.AfterCommit(from), QuestionOpened: opened})
		if err != nil || !closed {
			t.Fatal(closed, err)
		}
	}
}
