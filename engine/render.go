package engine

import (
	"fmt"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// render folds a commit and gives its events as streams show them. It depends on
// the log alone, so that a replay gives the same bytes as live.
func render(state *task.State, taskID string, c journal.Commit) []Event {
	// What cannot be folded is in the state's problems, and shown as it is.
	_ = state.Apply(c)
	run := ""
	if state.Run != nil {
		run = state.Run.ID
	}
	at := time.UnixMilli(c.At).UTC().Format("2006-01-02T15:04:05.000Z")
	out := make([]Event, 0, len(c.Events))
	for i, raw := range c.Events {
		typ, _ := esjson.GetString(raw, "type")
		var o esjson.Object
		o.String("type", typ)
		o.String("task_id", taskID)
		if run != "" {
			o.String("run_id", run)
		}
		o.Int("seq", int64(c.Seq))
		o.String("at", at)
		payload(&o, state, typ, raw)
		out = append(out, Event{
			ID: fmt.Sprintf("%d.%d-%d", c.Epoch, c.Seq, i), Type: typ, Task: taskID, Run: run,
			Seq: c.Seq, At: c.At, Data: o.Bytes(),
		})
	}
	return out
}

// payload copies an event's members; of a message, it shows the message and not
// how the log holds it.
func payload(o *esjson.Object, state *task.State, typ string, raw []byte) {
	message := typ == "message.added" || typ == "message.changed"
	for key, val := range esjson.Members(raw) {
		switch key {
		case "type", "seq", "at", "task_id", "run_id":
			continue
		case "raw", "blob", "compose":
			if message {
				continue
			}
		}
		o.Raw(key, val)
	}
	if !message {
		return
	}
	id, _ := esjson.GetInt(raw, "message")
	m := state.Message(uint64(id))
	if m == nil || m.Missing {
		return
	}
	if typ == "message.changed" {
		o.String("history", string(m.History))
	}
	o.Int("ts", m.TS())
	o.Raw("content", m.Raw())
}
