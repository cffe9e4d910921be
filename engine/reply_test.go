package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/task"
)

const asksForACommand = `
- tools: [{name: execute_command, input: {command: "echo ran"}}]
- tools: [{name: execute_command, input: {command: "echo ran"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// asked waits until a task asks, and gives the question.
func (b *bench) asked(id string) engine.Asked {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got, err := b.engine.Questions(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(got) > 0 {
			return got[0]
		}
		if time.Now().After(end) {
			b.t.Fatalf("task %s asks nothing", id)
		}
	}
}

func (b *bench) reply(q string, r engine.Reply) api.Answered {
	b.t.Helper()
	got, err := b.engine.Reply(b.t.Context(), q, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// A question is answered while its run waits with it, or when it was let go, by the next
// process: the same run goes on either way.
func TestAnAnswerToARunThatWaitsAndToOneThatWasLetGo(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name   string
		script string
		reply  engine.Reply
		ran    string // what the model was told
	}{
		{"words", asksWhich, engine.Reply{Text: "the other"}, "the other"},
		{"choice", asksWhich, engine.Reply{Choice: 1}, "this"},
		{"yes with words", asksForACommand, engine.Reply{Approve: &yes, Text: "but be quick", Always: true}, "but be quick"},
		{"no", asksForACommand, engine.Reply{Text: "rather not"}, "rather not"},
	} {
		for _, parked := range []bool{false, true} {
			t.Run(c.name+map[bool]string{false: ", live", true: ", let go"}[parked], func(t *testing.T) {
				b := newLimitedBench(t, engine.Options{})
				r := b.ask(c.script)
				r.Approve = "ask"
				if parked {
					r.Hold = time.Millisecond
				}
				ticket := b.submit(r)
				info := b.waitForState(ticket.ID, "waiting")
				q := b.asked(ticket.Ref.ID)
				if parked {
					if s := settledStatus(b, ticket.Ref.ID); s != "waiting" {
						t.Fatalf("the task is %s", s)
					}
					b.restart(engine.Options{})
					info = b.waitForState(ticket.ID, "waiting")
				}
				if info.Question != q.ID || q.Run != ticket.ID {
					t.Errorf("run %+v, question %+v", info, q)
				}
				c.reply.By, c.reply.Request = "test", engine.Request{Interactive: true}
				got := b.reply(q.ID, c.reply)
				if got.Run != ticket.ID || got.By != "test" {
					t.Errorf("got %+v, want got.Run.ID = ticket.ID and got.Answer.By = \"test\"", got)
				}
				if c.script == asksForACommand && !c.reply.Always { // the second command asks, too
					next := b.asked(ticket.Ref.ID)
					b.reply(next.ID, engine.Reply{Text: "no"})
				}
				b.waitForState(ticket.ID, "completed")
				s := b.state(ticket.Ref.ID)
				checkHistory(t, s, true)
				n := 0
				for _, m := range s.API() {
					n += strings.Count(string(m.Raw()), c.ran)
				}
				if n < 1 || len(s.Runs.All) != 1 || len(s.Questions) != 0 {
					t.Errorf("the model was told %d times, %d runs, open %+v", n, len(s.Runs.All), s.Questions)
				}
			})
		}
	}
}

// settledStatus is a task's status once no process has it.
func settledStatus(b *bench, id string) string {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if len(b.engine.Runs()) == 0 || time.Now().After(end) {
			return b.status(id)
		}
	}
}

func TestTheFirstAnswerWins(t *testing.T) {
	for _, hold := range []time.Duration{time.Hour, time.Millisecond} {
		b := newLimitedBench(t, engine.Options{})
		r := b.ask(asksWhich)
		r.Hold = hold
		ticket := b.submit(r)
		q := b.asked(ticket.Ref.ID)
		if hold == time.Millisecond {
			settledStatus(b, ticket.Ref.ID)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		won, lost := []string{}, []string{}
		for _, who := range []string{"anna", "bert", "carl", "dora"} {
			wg.Go(func() {
				_, err := b.engine.Reply(context.Background(), q.ID, engine.Reply{Text: "as " + who + " says", By: who, Request: engine.Request{Interactive: true}})
				mu.Lock()
				defer mu.Unlock()
				var late *engine.AnsweredError
				switch {
				case err == nil:
					won = append(won, who)
				case errors.As(err, &late) && errors.Is(err, engine.ErrNoQuestion):
					lost = append(lost, late.Answer.By)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 || len(lost) != 3 || lost[0] != won[0] || lost[2] != won[0] {
			t.Errorf("won %v, lost to %v", won, lost)
		}
		b.waitForState(ticket.ID, "completed")
		if got, err := b.engine.Questions(t.Context(), ""); err != nil || len(got) != 0 {
			t.Errorf("got %+v %v, want no error and len(got) = 0", got, err)
		}
	}
}

// The same answer again, by its name, gets what it got.
func TestTheSameAnswerAgain(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket := b.submit(b.ask(asksWhich))
	q := b.asked(ticket.Ref.ID)
	first := b.reply(q.ID, engine.Reply{ID: "key-1", Text: "this"})
	b.restart(engine.Options{})
	second := b.reply(q.ID, engine.Reply{ID: "key-1", Text: "this"})
	if second.Text != "this" || second.Run != first.Run {
		t.Errorf("%+v, then %+v", first, second)
	}
	var late *engine.AnsweredError
	if _, err := b.engine.Reply(t.Context(), q.ID, engine.Reply{ID: "key-2", Text: "that"}); !errors.As(err, &late) || late.Answer.Text != "this" {
		t.Errorf("got %v, want errors.As(err, &late) and late.Answer.Text = \"this\"", err)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket := b.submit(b.ask(asksWhich))
	q := b.asked(ticket.Ref.ID)
	yes := true
	before := q.From
	before.Seq--
	for name, c := range map[string]struct {
		id    string
		reply engine.Reply
		want  error
	}{
		"nothing":             {q.ID, engine.Reply{}, engine.ErrAnswer},
		"blanks":              {q.ID, engine.Reply{Text: "  "}, engine.ErrAnswer},
		"no such choice":      {q.ID, engine.Reply{Choice: 3}, engine.ErrAnswer},
		"a negative choice":   {q.ID, engine.Reply{Choice: -1}, engine.ErrAnswer},
		"choice and words":    {q.ID, engine.Reply{Choice: 1, Text: "that"}, engine.ErrAnswer},
		"yes to a question":   {q.ID, engine.Reply{Approve: &yes}, engine.ErrAnswer},
		"always":              {q.ID, engine.Reply{Text: "this", Always: true}, engine.ErrAnswer},
		"before it was asked": {q.ID, engine.Reply{Text: "this", Seen: &before}, engine.ErrStale},
		"another question":    {ticket.Ref.ID + ".q999", engine.Reply{Text: "this"}, engine.ErrNoQuestion},
		"no name":             {"q1", engine.Reply{Text: "this"}, engine.ErrNoQuestion},
	} {
		if _, err := b.engine.Reply(t.Context(), c.id, c.reply); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	b.reply(q.ID, engine.Reply{Text: "this", Seen: &q.From})
	b.waitForState(ticket.ID, "completed")
}

// A subtask's question has a name of its own: the task above waits, and goes on when the
// subtask is through, whether both were let go or not.
func TestASubtasksQuestion(t *testing.T) {
	for _, hold := range []time.Duration{time.Hour, time.Millisecond} {
		b := newLimitedBench(t, engine.Options{})
		r := b.ask(asksBelow)
		r.Hold = hold
		ticket := b.submit(r)
		info := b.waitForState(ticket.ID, "waiting")
		child := b.onlyChild(ticket.Ref.ID).ID
		q := b.asked(child)
		if info.Question != q.ID || q.Ref.ID != child {
			t.Fatalf("the run waits with %q, asked is %+v", info.Question, q)
		}
		if hold == time.Millisecond {
			settledStatus(b, ticket.Ref.ID)
		}
		b.reply(q.ID, engine.Reply{Text: "that one", Request: engine.Request{Interactive: true}})
		b.waitForState(q.Run, "completed")
		b.waitForState(ticket.ID, "completed")
		if b.resultsGiven(ticket.Ref.ID, child) != 1 {
			t.Errorf("hold %s: the task was not told of its subtask once", hold)
		}
	}
}

// What is said to the task above answers its subtask's question.
func TestWordsToTheTaskAboveAnswerItsSubtask(t *testing.T) {
	for _, hold := range []time.Duration{time.Hour, time.Millisecond} {
		b := newLimitedBench(t, engine.Options{})
		r := b.ask(asksBelow)
		r.Hold = hold
		ticket := b.submit(r)
		b.waitForState(ticket.ID, "waiting")
		q := b.asked(b.onlyChild(ticket.Ref.ID).ID)
		if hold == time.Millisecond {
			settledStatus(b, ticket.Ref.ID)
		}
		m := engine.Message{ID: "m-1", Text: "that one", By: "test", Request: engine.Request{Interactive: true}}
		sent := b.send(ticket.Ref.ID, m)
		if sent.Delivered != "answered" || sent.Question != q.ID {
			t.Errorf("got %+v, want sent.Delivered = \"answered\" and sent.Question = q.ID", sent)
		}
		b.waitForState(ticket.ID, "completed")
	}
}

// A person who stops a run that asks has it saved, and can answer later.
func TestStopInsteadOfAnAnswer(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	ticket := b.submit(b.ask(asksWhich))
	q := b.asked(ticket.Ref.ID)
	if run, err := b.engine.CancelTask(t.Context(), ticket.Ref.ID, ""); err != nil || run.State != "cancelled" {
		t.Errorf("got %+v, %v, want run.State = \"cancelled\"", run, err)
	}
	if s := b.state(ticket.Ref.ID); s.Question(strings.TrimPrefix(q.ID, ticket.Ref.ID+".")) == nil {
		t.Error("the question is gone")
	}
	// It can be answered all the same.
	again := b.reply(q.ID, engine.Reply{Text: "this", Request: engine.Request{Interactive: true}})
	b.waitForState(again.Run, "completed")
	checkAnswers(t, b.state(ticket.Ref.ID))
}

func checkAnswers(t *testing.T, s *task.State) {
	t.Helper()
	checkHistory(t, s, true)
	if len(s.Questions) != 0 {
		t.Errorf("still open: %+v", s.Questions)
	}
}
