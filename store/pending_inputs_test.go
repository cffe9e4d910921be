package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

func queueOf(s *task.State) (out []string) {
	for _, q := range s.Queue {
		out = append(out, q.Input+"="+q.Text)
	}
	return out
}

func waitingIn(t *Task) (out []string) {
	for _, q := range t.Inputs() {
		out = append(out, q.Input+"="+q.Text)
	}
	return out
}

// besideTask is an owned task with one run.
func besideTask(t *testing.T) (*Store, *Task) {
	t.Helper()
	s := open(t, t.TempDir())
	owned, err := s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1}, task.RunStarted{Run: "r"})
	fixture.NoError(t, err)
	return s, owned
}

func TestWordsBesideARunAreInTheLogAtOnceAndInTheStateWhenItIsAskedFor(t *testing.T) {
	s, owned := besideTask(t)
	before := owned.State().Seq
	fixture.NoError(t, owned.ChangeInput(t.Context(), task.InputQueued{Input: "a", Text: "first", By: "api"}))
	if owned.State().Seq != before || len(owned.State().Queue) != 0 {
		t.Error("the state changed under the hands of the run")
	}
	v, err := s.Read(t.Context(), owned.Ref)
	fixture.NoError(t, err)
	if d := cmp.Diff([]string{"a=first"}, queueOf(v.State)); d != "" {
		t.Errorf("a reader does not see it: %s", d)
	}
	fixture.NoError(t, v.Close())
	fixture.NoError(t, owned.TakeIn())
	if d := cmp.Diff([]string{"a=first"}, queueOf(owned.State())); d != "" {
		t.Error(d)
	}
	fixture.NoError(t, owned.Close(t.Context()))
}

// What the run commits stands behind what came beside, in the log and in the state.
func TestACommitTakesInWhatCameBeside(t *testing.T) {
	s, owned := besideTask(t)
	fixture.NoError(t, owned.ChangeInput(t.Context(), task.InputQueued{Input: "a", Text: "first", By: "api"}))
	fixture.NoError(t, owned.Commit(t.Context(), task.InputTaken{Input: "a"}))
	fixture.NoError(t, owned.ChangeInput(t.Context(), task.InputQueued{Input: "b", Text: "second", By: "api"}))
	fixture.NoError(t, owned.Close(t.Context()))
	if d := cmp.Diff([]string{"b=second"}, queueOf(owned.State())); d != "" {
		t.Error(d)
	}
	v, err := s.Read(t.Context(), owned.Ref)
	fixture.NoError(t, err)
	if v.State.Seq != owned.State().Seq || cmp.Diff(queueOf(owned.State()), queueOf(v.State)) != "" {
		t.Errorf("owner and reader disagree: %d %v, %d %v", owned.State().Seq, queueOf(owned.State()), v.State.Seq, queueOf(v.State))
	}
	fixture.NoError(t, v.Close())
}

func TestWordsThatWaitAreChangedAndTakenBackUntilTheRunHasThem(t *testing.T) {
	_, owned := besideTask(t)
	ctx := t.Context()
	for _, q := range []task.InputQueued{{Input: "a", Text: "1", By: "api"}, {Input: "b", Text: "2", By: "api"}, {Input: "a", Text: "other", By: "api"}} {
		fixture.NoError(t, owned.ChangeInput(ctx, q))
	}
	if d := cmp.Diff([]string{"a=other", "b=2"}, waitingIn(owned)); d != "" {
		t.Error(d)
	}
	fixture.NoError(t, owned.ChangeInput(ctx, task.InputTaken{Input: "b", Dropped: true}))
	if err := owned.ChangeInput(ctx, task.InputTaken{Input: "b", Dropped: true}); !errors.Is(err, ErrInputTaken) {
		t.Errorf("taken back twice: %v", err)
	}
	if q, ok := owned.Claim("a"); !ok || q.Text != "other" {
		t.Errorf("claimed %+v %t", q, ok)
	}
	if _, ok := owned.Claim("b"); ok {
		t.Error("the run got what was taken back")
	}
	for what, err := range map[string]error{
		"changed":    owned.ChangeInput(ctx, task.InputQueued{Input: "a", Text: "late", By: "api"}),
		"taken back": owned.ChangeInput(ctx, task.InputTaken{Input: "a", Dropped: true}),
	} {
		if !errors.Is(err, ErrInputTaken) {
			t.Errorf("%s while the run has it: %v", what, err)
		}
	}
	fixture.NoError(t, owned.Close(ctx))
	if err := owned.ChangeInput(ctx, task.InputQueued{Input: "c", By: "api"}); !errors.Is(err, ErrLetGo) {
		t.Errorf("into a task that was let go: %v", err)
	}
}

// Many doors and the run at once: nothing is lost, nothing is there twice, and the log
// says what the state says.
func TestManyDoorsAndTheRunAtOnce(t *testing.T) {
	s, owned := besideTask(t)
	ctx := t.Context()
	const doors, each = 8, 20
	var wait sync.WaitGroup
	for d := range doors {
		wait.Go(func() {
			for i := range each {
				if err := owned.ChangeInput(ctx, task.InputQueued{Input: fmt.Sprintf("%d-%d", d, i), Text: "x", By: "api"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	taken := map[string]bool{}
	take := func() {
		fixture.NoError(t, owned.TakeIn())
		for _, q := range append([]task.InputQueued(nil), owned.State().Queue...) {
			if _, ok := owned.Claim(q.Input); !ok || taken[q.Input] {
				t.Errorf("%s: claimed %t, before %t", q.Input, ok, taken[q.Input])
			}
			taken[q.Input] = true
			fixture.NoError(t, owned.Commit(ctx, task.InputTaken{Input: q.Input}))
		}
	}
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		take()
	}
	take()
	if len(taken) != doors*each {
		t.Errorf("%d of %d were taken", len(taken), doors*each)
	}
	fixture.NoError(t, owned.Close(ctx))
	v, err := s.Read(context.WithoutCancel(ctx), owned.Ref)
	fixture.NoError(t, err)
	defer v.Close()
	if len(v.State.Queue) != 0 || v.State.Seq != owned.State().Seq {
		t.Errorf("left %v, seq %d and %d", queueOf(v.State), v.State.Seq, owned.State().Seq)
	}
}
