package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		n := note{run: "r", asides: []aside{{history: task.UI, ts: 1, content: json.RawMessage(text)}, {}}}
		for _, e := range render("t", c, n) {
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
	for _, e := range render("t", c, note{run: "new"}) {
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
