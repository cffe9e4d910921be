package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// replay gives a task's events from its log alone, as a reader that comes later
// sees them.
func replay(t *testing.T, s *store.Store, ref store.Ref) (out []Event) {
	t.Helper()
	log, err := s.Follow(ref)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	state := task.New(store.Payloads(log))
	for c, err := range log.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
		events := make([]task.Event, 0, len(c.Events))
		for _, raw := range c.Events {
			e, err := task.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		out = append(out, render(ref.ID, c, noteOf(state, events))...)
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
	e := New(s, Options{Config: Config{Keys: map[string]string{}}})
	defer e.Close(context.Background())
	model := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(model, []byte(streamedAndComposed), 0o600); err != nil {
		t.Fatal(err)
	}
	var live []Event
	id := ""
	for _, r := range []Request{
		{Text: "go", Workspace: t.TempDir(), Provider: "script", Model: model, Approve: "all"},
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
		if n := len(run.notes.bySeq); n > 0 {
			t.Errorf("%d notes were never used", n)
		}
		id = run.TaskID
	}
	ref, err := s.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Event{}
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

func lineOf(seq uint64, events ...string) journal.Commit {
	c := journal.Commit{Seq: seq, Epoch: 3, At: 1700000000123}
	for _, e := range events {
		c.Events = append(c.Events, journal.Event(e))
	}
	return c
}

func TestRender(t *testing.T) {
	shown := []aside{{history: task.UI, ts: 5, content: []byte(`{"say":"x"}`)}}
	for _, c := range []struct {
		name, event string
		note        note
		want        string
	}{
		{
			"an event is shown as it is", `{"type":"turn.ended","turn":2,"new":{"a":[1]}}`, note{run: "r1"},
			`{"type":"turn.ended","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","turn":2,"new":{"a":[1]}}`,
		},
		{
			"before any run", `{"type":"task.created"}`, note{},
			`{"type":"task.created","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z"}`,
		},
		{
			"a message is shown, not how the log holds it", `{"type":"message.added","history":"ui","message":4,"compose":[{"text_of":3}]}`,
			note{run: "r1", asides: shown},
			`{"type":"message.added","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","history":"ui","message":4,"ts":5,"content":{"say":"x"}}`,
		},
		{
			"a change says which history", `{"type":"message.changed","message":4,"raw":{"b":1}}`, note{asides: shown},
			`{"type":"message.changed","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z","message":4,"history":"ui","ts":5,"content":{"say":"x"}}`,
		},
		{
			"a message that is gone", `{"type":"message.added","history":"ui","message":4,"blob":"x"}`, note{asides: []aside{{}}},
			`{"type":"message.added","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z","history":"ui","message":4}`,
		},
		{
			"an event cannot pass itself off as another's", `{"type":"x","task_id":"t2","run_id":"r9","seq":1,"at":"never","raw":1}`, note{run: "r1"},
			`{"type":"x","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","raw":1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := render("t1", lineOf(7, c.event), c.note)
			if diff := cmp.Diff(c.want, string(out[0].Data)); diff != "" {
				t.Error(diff)
			}
			if out[0].ID != "3.7-0" || !json.Valid(out[0].Data) {
				t.Errorf("id %s", out[0].ID)
			}
		})
	}
}

// Streams are read by line: whatever an event holds, it is one line of JSON.
func FuzzRender(f *testing.F) {
	f.Add(`{"type":"message.added","raw":{}}`, "run\n1", `{"a":1}`)
	f.Add("{\"type\":\"x\",\"a\":[\n]}", "", `null`)
	f.Fuzz(func(t *testing.T, event, run, content string) {
		if !esjson.Valid([]byte(event)) || esjson.TypeOf([]byte(event)) != esjson.TypeObject || !esjson.Valid([]byte(content)) {
			return
		}
		out := render("t", lineOf(1, event), note{run: run, asides: []aside{{content: []byte(content)}}})
		if !esjson.Valid(out[0].Data) {
			t.Fatalf("%q", out[0].Data)
		}
		if strings.Contains(string(out[0].Data), "\n") && !strings.Contains(event+content, "\n") {
			t.Fatalf("more than one line: %q", out[0].Data)
		}
	})
}

// A commit that the store makes by itself has no note: it is shown under the run
// at hand.
func TestNotes(t *testing.T) {
	var n notes
	if _, ok := n.take(1); ok {
		t.Error("a note of nothing")
	}
	n.put(1, note{run: "a"})
	n.put(2, note{run: "b"})
	if got, ok := n.take(2); !ok || got.run != "b" {
		t.Errorf("%+v %v", got, ok)
	}
	if _, ok := n.take(2); ok {
		t.Error("a note was used twice")
	}
	if len(n.bySeq) != 1 {
		t.Errorf("%d notes are kept", len(n.bySeq))
	}
}
