package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store"
)

// waitsForGo runs a command that ends when a file "go" is in the workspace.
const waitsForGo = `
- tools: [{name: execute_command, input: {command: "touch here; while [ ! -e go ] && [ -e here ]; do sleep 0.01; done"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

const completesAtOnce = `
- tools: [{name: attempt_completion, input: {result: done}}]
`

const asksWhich = `
- tools: [{name: ask_followup_question, input: {question: "Which one?", follow_up: [{text: "this", mode: null}, {text: "that", mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`

// newLimitedBench is a bench whose engine has so many slots.
func newLimitedBench(t *testing.T, o engine.Options) *bench {
	t.Helper()
	b := newBench(t)
	o.Config = setup.Config{Keys: map[string]string{}}
	if err := b.engine.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.store, o)
	return b
}

// restart is the next process: an engine over the same root.
func (b *bench) restart(o engine.Options) {
	b.t.Helper()
	if err := b.engine.Close(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	s, err := store.Open(store.Options{Root: b.root, State: b.root + ".state", Program: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	if o.Config.Keys == nil {
		o.Config.Keys = map[string]string{}
	}
	b.store, b.engine = s, engine.New(s, o)
}

// ask is a request for a new task with a workspace of its own.
func (b *bench) ask(script string) engine.Request {
	return engine.Request{
		Text:        "go",
		Choice:      setup.Choice{Workspace: b.t.TempDir(), Provider: "script", Model: b.script(script), Approve: "all"},
		Interactive: true,
		Origin:      "api",
	}
}

func (b *bench) submit(r engine.Request) engine.Ticket {
	b.t.Helper()
	ticket, err := b.engine.Submit(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return ticket
}

// waitForState waits until a run is in a state.
func (b *bench) waitForState(run, state string) engine.RunInfo {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		info, err := b.engine.RunByID(b.t.Context(), run)
		if err == nil && info.State == state {
			return info
		}
		if time.Now().After(end) {
			b.t.Fatalf("run %s is %+v, %v, and never was %s", run, info, err, state)
		}
	}
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestARunWaitsForAPlace(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	first, second, third := b.ask(waitsForGo), b.ask(completesAtOnce), b.ask(completesAtOnce)
	one := b.submit(first)
	waitForFile(t, filepath.Join(first.Workspace, "here"))
	two, three := b.submit(second), b.submit(third)
	if one.State != "running" || one.Same || !one.Here || two.State != "queued" || two.Position != 1 || three.Position != 2 || !three.Here {
		t.Fatalf("got %+v\n%+v\n%+v, want one.State = \"running\" and not one.Same and one.Here and two.State = \"queued\" and two.Position = 1 and three.Position = 2 and three.Here",
			one, two, three)
	}
	if running, waiting, queued := b.engine.Load(); running != 1 || waiting != 0 || queued != 2 {
		t.Errorf("load %d %d %d", running, waiting, queued)
	}
	if got := b.status(two.Ref.ID); got != "queued" {
		t.Errorf("the task is %s", got)
	}
	words, err := b.engine.Inputs(t.Context(), two.Ref.ID)
	if err != nil || len(words) != 1 || words[0].Text != "go" {
		t.Errorf("got %+v %v, want no error and len(words) = 1 and words[0].Text = \"go\"", words, err)
	}
	if _, err := b.engine.Submit(t.Context(), engine.Request{Task: two.Ref.ID, Text: "more"}); !errors.Is(err, engine.ErrRunning) {
		t.Errorf("a second run of a task that is in the queue: %v", err)
	}
	if _, err := b.engine.Submit(t.Context(), engine.Request{Task: one.Ref.ID, Text: "more"}); !errors.Is(err, engine.ErrRunning) {
		t.Errorf("a second run of a task that runs: %v", err)
	}
	touch(t, first.Workspace, "go")
	for _, run := range []string{one.ID, two.ID, three.ID} {
		info := b.waitForState(run, "completed")
		if info.Turns == 0 || info.Started == 0 || info.Ended < info.Started || run != one.ID && info.Queued > info.Started {
			t.Errorf("got %+v, want info.Turns != 0 and info.Started != 0 and info.Ended >= info.Started and (run = one.ID or info.Queued <= info.Started)",
				info)
		}
	}
	s := b.state(two.Ref.ID)
	checkHistory(t, s, true)
	if len(s.Runs.All) != 1 || s.Run.ID != two.ID || len(s.Queue) != 0 {
		t.Errorf("%d runs, the newest %+v, %d in the queue", len(s.Runs.All), s.Run, len(s.Queue))
	}
}

// A run that waits for a person takes no place; who answers takes none from others.
func TestWhoWaitsForAPersonTakesNoPlace(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	asks := b.submit(b.ask(asksWhich))
	b.waitForState(asks.ID, "waiting")
	busy := b.ask(waitsForGo)
	works := b.submit(busy)
	b.waitForState(works.ID, "running")
	waitForFile(t, filepath.Join(busy.Workspace, "here"))
	questions, err := b.engine.Questions(t.Context(), "")
	if err != nil || len(questions) != 1 || !questions[0].Here || questions[0].Run != asks.ID || questions[0].Task.ID != asks.Ref.ID {
		t.Fatalf("got %+v %v, want no error and len(questions) = 1 and questions[0].Here and questions[0].Run = asks.ID and questions[0].Task.ID = asks.Ref.ID",
			questions, err)
	}
	got, err := b.engine.Reply(t.Context(), questions[0].ID, engine.Reply{Choice: 2, By: "test"})
	if err != nil || got.Text != "that" || got.Run != asks.ID {
		t.Fatalf("got %+v %v, want no error and got.Answer.Text = \"that\" and got.Run.ID = asks.ID", got, err)
	}
	b.waitForState(asks.ID, "completed")
	touch(t, busy.Workspace, "go")
	b.waitForState(works.ID, "completed")
}

// Fifty askers for the same run get the same one, also those that come later.
func TestTheSameRequestIsTakenOnce(t *testing.T) {
	b := newLimitedBench(t, engine.Options{})
	r := b.ask(waitsForGo)
	r.NewTask = "0198c0de-0000-7000-8000-000000000001"
	sum := sha256.Sum256([]byte(r.NewTask))
	r.RunID = "run-of-mine-" + hex.EncodeToString(sum[:4])
	var mu sync.Mutex
	var wg sync.WaitGroup
	fresh := 0
	for range 50 {
		wg.Go(func() {
			ticket, err := b.engine.Submit(context.Background(), r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || ticket.ID != r.RunID || ticket.Ref.ID != r.NewTask {
				t.Errorf("got %+v %v, want no error and ticket.ID = r.RunID and ticket.Ref.ID = r.NewTask", ticket, err)
			}
			if !ticket.Same {
				fresh++
			}
		})
	}
	wg.Wait()
	touch(t, r.Workspace, "go")
	b.waitForState(r.RunID, "completed")
	late := b.submit(r)
	s := b.state(r.NewTask)
	if fresh != 1 || !late.Same || len(s.Runs.All) != 1 || rowsOf(s, "say:text", "go") != 1 || late.State != "completed" {
		t.Errorf("%d began, %d runs, %+v", fresh, len(s.Runs.All), late)
	}
	// The next process knows it, too, and what the run did comes behind the same place.
	b.restart(engine.Options{})
	if again := b.submit(r); !again.Same || again.From != late.From {
		t.Errorf("%+v, was %+v", again, late)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1, MaxQueue: 1})
	busy := b.ask(waitsForGo)
	works := b.submit(busy)
	queued := b.submit(b.ask(completesAtOnce))
	if _, err := b.engine.Submit(t.Context(), b.ask(completesAtOnce)); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("got %v, want errors.Is(err, engine.ErrQueueFull)", err)
	}
	list, err := b.store.List(t.Context(), store.Filter{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("a refusal left something: %d tasks, %v", len(list.Items), err)
	}
	touch(t, busy.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.waitForState(queued.ID, "completed")
}

// What cannot begin is refused before anything is written; what cannot begin any more
// when its turn comes has failed, and says why.
func TestARunThatCannotBegin(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	busy := b.ask(waitsForGo)
	works := b.submit(busy)
	bad := b.ask(completesAtOnce)
	bad.Mode = "no-such-mode"
	if _, err := b.engine.Submit(t.Context(), bad); err == nil {
		t.Error("an unknown mode was taken")
	}
	gone := b.ask(completesAtOnce)
	queued := b.submit(gone)
	if err := os.Remove(gone.Workspace); err != nil {
		t.Fatal(err)
	}
	touch(t, busy.Workspace, "go")
	b.waitForState(works.ID, "completed")
	info := b.waitForState(queued.ID, "failed")
	if info.Code != "configuration" || !strings.Contains(info.Reason, "workspace") {
		t.Errorf(`got %+v, want info.Code = "configuration" and strings.Contains(info.Reason, "workspace")`, info)
	}
	if words, err := b.engine.Inputs(t.Context(), queued.Ref.ID); err != nil || len(words) != 1 {
		t.Errorf("its words are lost: %+v %v", words, err)
	}
}

// A task goes on with the settings that it was queued with, whoever starts it.
func TestAQueuedRunKeepsItsSettings(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	_, out, _ := b.run(engine.Request{Text: "go", Choice: setup.Choice{Provider: "script", Model: b.script(completesAtOnce), Approve: "ask"}})
	wantOutcome(t, out, "completed", "")
	list, err := b.store.List(t.Context(), store.Filter{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(err)
	}
	id := list.Items[0].ID
	busy := b.ask(waitsForGo)
	works := b.submit(busy)
	waitForFile(t, filepath.Join(busy.Workspace, "here"))
	ticket := b.submit(engine.Request{
		Task: id,
		Text: "now write",
		Choice: setup.Choice{Approve: "all", Model: b.script(`
- tools: [{name: attempt_completion, input: {result: done}}]
- tools: [{name: execute_command, input: {command: "echo ran > ran.txt"}}]
- tools: [{name: attempt_completion, input: {result: again}}]
`)},
		Interactive: true,
	})
	if ticket.State != "queued" {
		t.Fatalf("got %+v, want ticket.State = \"queued\"", ticket)
	}
	b.engine.Refuse()
	touch(t, busy.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.restart(engine.Options{})
	if err := b.engine.Recover(t.Context(), engine.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	info := b.waitForState(ticket.ID, "completed")
	if info.Reason != "again" || info.Settings.Approve != "all" {
		t.Errorf(`got %+v, want info.Reason = "again" and info.Settings.Approve = "all"`, info)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "ran.txt")); err != nil {
		t.Errorf("the command was not run: %v", err)
	}
}

// Settings that change while a run waits in the queue hold for that run: those of a patch, and those of a request that
// continues a run of an earlier process.
func TestAQueuedRunTakesNewSettings(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	busy := b.ask(waitsForGo)
	b.submit(busy)
	r := b.ask(completesAtOnce)
	r.Mode = "ask"
	queued := b.submit(r)
	amended := setup.Choice{Approve: "read", Limits: &api.RunLimits{MaxTurns: 4}}
	if _, err := b.engine.Amend(t.Context(), queued.Ref, engine.Request{Choice: amended}); err != nil {
		t.Fatal(err)
	}
	b.engine.Refuse()
	touch(t, busy.Workspace, "go")
	b.restart(engine.Options{MaxRuns: 1})
	busy = b.ask(waitsForGo)
	b.submit(busy)
	again := b.submit(engine.Request{Task: queued.Ref.ID, Choice: setup.Choice{DenyTools: []string{"web"}}, Interactive: true})
	if again.ID != queued.ID || again.State != "queued" {
		t.Fatalf("got %+v, want the run %s, queued", again, queued.ID)
	}
	touch(t, busy.Workspace, "go")
	got := b.waitForState(queued.ID, "completed").Settings
	if got.Approve != "read" || got.Limits.MaxTurns != 4 || got.Mode != "ask" || !slices.Equal(got.DenyTools, []string{"web"}) {
		t.Errorf("got %+v, want approve read, 4 turns, mode ask and the tool web denied", got)
	}
	if now := b.settings(queued.Ref.ID); !reflect.DeepEqual(now, got) {
		t.Errorf("of the task: got %+v, want those of the run: %+v", now, got)
	}
}

func TestManyAtOnceShareThePlaces(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 2})
	var asks [12]engine.Request
	for i := range asks {
		asks[i] = b.ask(waitsForGo)
	}
	var wait sync.WaitGroup
	for _, r := range asks {
		wait.Go(func() {
			if _, err := b.engine.Submit(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if running, waiting, queued := b.engine.Load(); running != 2 || waiting != 0 || queued != len(asks)-2 {
		t.Errorf("%d run, %d wait and %d are queued", running, waiting, queued)
	}
	for _, r := range asks {
		touch(t, r.Workspace, "go")
	}
	for running, queued := 1, 1; running+queued > 0; running, _, queued = b.engine.Load() {
		if running > 2 {
			t.Fatalf("%d run", running)
		}
		time.Sleep(time.Millisecond)
	}
}
