package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// A run keeps its newest events: of a message they show the message and not how the log
// holds it, and they take little more memory than their text.
func TestEventsTakeNoMoreThanTheirText(t *testing.T) {
	for _, size := range []int{0, 100, 5 << 10, 100 << 10} {
		text := fmt.Sprintf(`{"ts":1,"text":"%s"}`, strings.Repeat("x", size))
		raw := fmt.Sprintf(`{"type":"message.added","history":"ui","message":1,"raw":%s}`, text)
		c := journal.Commit{Seq: 1, Epoch: 1, Events: []json.RawMessage{json.RawMessage(raw), json.RawMessage(`{"type":"run.ended","reason":"` + strings.Repeat("y", size) + `"}`)}}
		context := Context{Run: "r", messages: []shownMessage{{history: task.UI, ts: 1, content: json.RawMessage(text)}, {}}}
		for _, e := range Render("t", c, context) {
			if !json.Valid(e.Data) || strings.Contains(string(e.Data), `"raw"`) || cap(e.Data) > len(e.Data)+len(e.Data)/4+512 {
				t.Errorf("%s of %d bytes takes %d: %.200s", e.Type, len(e.Data), cap(e.Data), e.Data)
			}
		}
	}
}

// The end of a run that was killed is told by the next one, in one commit with its own
// start: who follows the next one must not take it for that one's end.
func TestAnEndIsToldOfTheRunThatEnded(t *testing.T) {
	c := journal.Commit{Seq: 9, Epoch: 2, By: "new", Events: []json.RawMessage{
		json.RawMessage(`{"type":"run.ended","run":"old","outcome":"interrupted"}`), json.RawMessage(`{"type":"run.started","run":"new"}`),
		json.RawMessage(`{"type":"turn.ended","run":"odd"}`), json.RawMessage(`{"type":"run.ended","run":7}`), json.RawMessage(`{"type":"run.ended","run":""}`),
	}}
	var got []string
	for _, e := range Render("t", c, Context{Run: "new"}) {
		var d struct {
			Run string `json:"run_id"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil || d.Run != e.Run {
			t.Errorf("%s says %q and is %q: %v", e.Type, d.Run, e.Run, err)
		}
		got = append(got, e.Type+" "+e.Run)
	}
	if d := cmp.Diff([]string{"run.ended old", "run.started new", "turn.ended new", "run.ended new", "run.ended new"}, got); d != "" {
		t.Error(d)
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
	shown := []shownMessage{{history: task.UI, ts: 5, content: []byte(`{"say":"x"}`)}}
	for _, c := range []struct {
		name, event string
		context     Context
		want        string
	}{
		{
			"an event is shown as it is", `{"type":"turn.ended","turn":2,"new":{"a":[1]}}`, Context{Run: "r1"},
			`{"type":"turn.ended","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","turn":2,"new":{"a":[1]}}`,
		},
		{
			"before any run", `{"type":"task.created"}`, Context{},
			`{"type":"task.created","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z"}`,
		},
		{
			"a message is shown, not how the log holds it", `{"type":"message.added","history":"ui","message":4,"compose":[{"text_of":3}]}`,
			Context{Run: "r1", messages: shown},
			`{"type":"message.added","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","history":"ui","message":4,"ts":5,"content":{"say":"x"}}`,
		},
		{
			"a change says which history", `{"type":"message.changed","message":4,"raw":{"b":1}}`, Context{messages: shown},
			`{"type":"message.changed","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z","message":4,"history":"ui","ts":5,"content":{"say":"x"}}`,
		},
		{
			"a message that is gone", `{"type":"message.added","history":"ui","message":4,"blob":"x"}`, Context{messages: []shownMessage{{}}},
			`{"type":"message.added","task_id":"t1","seq":7,"at":"2023-11-14T22:13:20.123Z","history":"ui","message":4}`,
		},
		{
			"an event cannot pass itself off as another's", `{"type":"x","task_id":"t2","run_id":"r9","seq":1,"at":"never","raw":1}`, Context{Run: "r1"},
			`{"type":"x","task_id":"t1","run_id":"r1","seq":7,"at":"2023-11-14T22:13:20.123Z","raw":1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := Render("t1", lineOf(7, c.event), c.context)
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
		out := Render("t", lineOf(1, event), Context{Run: run, messages: []shownMessage{{content: []byte(content)}}})
		if !esjson.Valid(out[0].Data) {
			t.Fatalf("got %q, want esjson.Valid(out[0].Data)", out[0].Data)
		}
		if strings.Contains(string(out[0].Data), "\n") && !strings.Contains(event+content, "\n") {
			t.Fatalf("more than one line: %q", out[0].Data)
		}
	})
}
