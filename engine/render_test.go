package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
