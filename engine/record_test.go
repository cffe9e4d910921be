package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// replay gives a task's events from its log alone, as a reader that comes later
// sees them.
func replay(t *testing.T, s *store.Store, ref store.Ref) (out []events.Event) {
	t.Helper()
	log, err := s.Follow(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	state := task.New(fold.Payloads(log))
	for c, err := range log.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
		committed := make([]task.Event, 0, len(c.Events))
		for _, raw := range c.Events {
			e, err := task.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			committed = append(committed, e)
		}
		known, err := events.ContextOf(state, committed)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, events.Render(ref.ID, c, known)...)
	}
	return out
}

const streamedAndComposed = `
- text: some words that stream
  reasoning: and some thought
  tools: [{name: execute_command, input: {command: "echo one; echo two"}}]
- tools: [{name: no_such_tool, input: {a: "\u2028"}}]
- tools: [{name: attempt_completion, input: {result: "done é"}}]
`

// What is shown live is what the log gives later, byte for byte: messages with
// their content, however the log holds them, in this run and in one after it.
func TestLiveIsWhatAReplayGives(t *testing.T) {
	s, err := store.Open(store.Options{Root: t.TempDir(), Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	e := New(s, Options{Config: setup.Config{Keys: map[string]string{}}})
	defer e.Close(context.Background())
	model := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(model, []byte(streamedAndComposed), 0o600); err != nil {
		t.Fatal(err)
	}
	var live []events.Event
	id := ""
	for _, r := range []Request{
		{Text: "go", Choice: setup.Choice{Workspace: t.TempDir(), Provider: "script", Model: model, Approve: "all"}},
		{Text: "and again"},
	} {
		r.Task = id
		run, err := e.Start(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for event := range run.Events(t.Context()) {
			if event.ID != "" {
				live = append(live, event)
			}
		}
		if o, err := run.Wait(t.Context()); err != nil || o.State != "completed" {
			t.Fatal(o, err)
		}
		id = run.TaskID
	}
	ref, err := s.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]events.Event{}
	for _, event := range replay(t, s, ref) {
		byID[event.ID] = event
	}
	types := map[string]int{}
	for _, event := range live {
		types[event.Type]++
		if diff := cmp.Diff(byID[event.ID], event); diff != "" {
			t.Fatalf("%s %s (-replayed +live):\n%s", event.ID, event.Type, diff)
		}
	}
	for _, typ := range []string{"message.added", "message.changed", "tool.finished", "run.started", "run.ended", "usage.changed"} {
		if types[typ] == 0 {
			t.Errorf("the runs had no %s", typ)
		}
	}
}
