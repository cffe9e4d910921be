package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// asks is a run with nothing but places for answers.
func asks(interactive bool) *Run {
	return &Run{TaskID: "t1", req: Request{Interactive: interactive}, answers: map[string]*hearing{}, active: make(chan struct{}, 1)}
}

func TestAnAnswerIsTakenOnce(t *testing.T) {
	r := asks(true)
	if err := r.Answer("q1", Answer{Text: "too early"}); err == nil || !strings.Contains(err.Error(), "q1 of task t1") {
		t.Errorf("nobody asked: %v", err)
	}
	place := r.await("q1")
	if r.await("q1") != place {
		t.Error("a second place for the same question")
	}
	if err := r.Answer("q1", Answer{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Answer("q1", Answer{Text: "second"}); err == nil {
		t.Error("two answers were taken")
	}
	if got := <-place; got.Text != "first" {
		t.Errorf("got %+v, want got.Text = \"first\"", got)
	}
	if asks(false).await("q1") != nil {
		t.Error("a place where nobody can answer")
	}
}

// Nobody is told of a question before it is on disk, and who has words meanwhile waits: they
// are its answer, not words for later.
func TestAQuestionIsToldOnceItIsOnDisk(t *testing.T) {
	up, r := asks(true), asks(true)
	up.TaskID, up.child = "up", r
	r.await("q")
	if got := up.openQuestion(); got != "" || r.ownQuestion(false) != "" {
		t.Errorf("%q is told before it is on disk", got)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := up.awaitQuestions(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who has words did not wait: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- up.awaitQuestions(t.Context()) }()
	r.opened("q")
	r.opened("q") // as often as it is asked
	r.opened("another")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := up.openQuestion(); got != "t1.q" || r.ownQuestion(false) != "q" || up.ownQuestion(false) != "" {
		t.Errorf("told: %q", got)
	}
	gone := asks(true)
	gone.after.settled = make(chan struct{})
	gone.await("q")
	close(gone.after.settled)
	if err := gone.awaitQuestions(t.Context()); err != nil {
		t.Errorf("the run is over, and nothing comes: %v", err)
	}
}

// Of many that answer at once one is taken, and the others are told.
func TestAnswersRace(t *testing.T) {
	r := asks(true)
	place := r.await("q")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var taken []string
	for i := range 20 {
		wait.Go(func() {
			text := fmt.Sprint(i)
			if r.Answer("q", Answer{Text: text}) == nil {
				mu.Lock()
				taken = append(taken, text)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if got := <-place; !slices.Equal(taken, []string{got.Text}) {
		t.Fatalf("taken were %v, the agent got %q", taken, got.Text)
	}
}

// The idle limit counts from the last thing that happened, and not while a person
// is asked.
func TestIdleLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := asks(true)
		r.life.ctx, r.life.cancel = context.WithCancelCause(t.Context())
		begun := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.watchIdle(t.Context(), 10*time.Second)
		}()
		for range 3 { // something happens every 9 s
			time.Sleep(9 * time.Second)
			r.touch()
		}
		r.await("q")
		time.Sleep(time.Hour + 5*time.Second) // between two looks at the clock
		if r.life.ctx.Err() != nil {
			t.Fatalf("ended while a person was asked: %v", context.Cause(r.life.ctx))
		}
		r.mu.Lock()
		clear(r.answers)
		r.mu.Unlock()
		r.touch()
		<-done
		if took := time.Since(begun) - 32*time.Second - time.Hour; took != 10*time.Second {
			t.Errorf("ended %s after the last thing", took)
		}
		if cause := context.Cause(r.life.ctx); !strings.Contains(cause.Error(), "nothing happened for 10s") {
			t.Errorf("cause %v", cause)
		}
	})
}

// Two processes take an answer to a question of a task that no run holds. The one that owns the task later finds the
// question closed: it starts no run, and its caller learns whose answer counts, also when both came without words.
func TestALaterAnswerStartsNothing(t *testing.T) {
	s, ref := startedTask(t)
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	commit := func(events ...task.Event) {
		t.Helper()
		if err := e.changeIdle(t.Context(), ref, func(t *store.Task) error { return t.Commit(context.Background(), events...) }); err != nil {
			t.Fatal(err)
		}
	}
	model := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(model, []byte("- text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commit(
		task.Changed{Settings: &task.Settings{Provider: "script", Model: model, Workspace: t.TempDir()}},
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text","text":"go"}`)}},
		api.QuestionOpened{Question: "q", Kind: agent.KindApproval, Text: "may it?"},
		task.RunWaiting{Run: "r", Question: "q"},
	)
	asked, err := e.openQuestions(t.Context(), ref)
	if err != nil || len(asked) != 1 {
		t.Fatalf("got %+v, %v, want one question", asked, err)
	}
	yes, no := true, false
	commit(api.QuestionClosed{Question: "q", Approve: &yes, By: "api"})
	_, err = e.replyToReleased(t.Context(), asked[0], Answer{Approve: &no, By: "api"}, Reply{Approve: &no, By: "api"})
	late, is := errors.AsType[*AnsweredError](err)
	if !is || late.Answer.Approve == nil || !*late.Answer.Approve {
		t.Errorf("got %v, want the answer yes that came first", err)
	}
	if runs := e.Runs(); len(runs) != 0 {
		t.Errorf("got %d runs, want none", len(runs))
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
