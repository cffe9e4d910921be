package events

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// Context is what a stream shows of a commit beside its line in the journal. It is read off the state right behind
// the commit.
type Context struct {
	Run      string // the newest run
	messages []shownMessage
}

// shownMessage is an event about a message in the form that streams send.
type shownMessage struct {
	history task.History
	ts      int64
	content json.RawMessage // nil when the event is not about a message, or the message is missing
}

// ContextOf reads the context of a commit off the state right behind it.
func ContextOf(s *task.State, events []task.Event) Context {
	c := Context{}
	if s.Run != nil {
		c.Run = s.Run.ID
	}
	for i, e := range events {
		var id uint64
		switch e := e.(type) {
		case task.MessageAdded:
			id = e.Message
		case task.MessageChanged:
			id = e.Message
		default:
			continue
		}
		m := s.Message(id)
		if m == nil || m.Missing {
			continue
		}
		if c.messages == nil {
			c.messages = make([]shownMessage, len(events))
		}
		c.messages[i] = shownMessage{history: m.History, ts: m.TS(), content: m.Raw()}
	}
	return c
}

// Render gives a commit's events as streams show them. They depend on the journal alone: a context read off a state
// that was folded from the journal gives the same bytes as one read off the owner's state.
func Render(taskID string, c journal.Commit, context Context) []Event {
	at := time.UnixMilli(c.At).UTC().Format("2006-01-02T15:04:05.000Z")
	out := make([]Event, 0, len(c.Events))
	prefix := strconv.FormatUint(c.Epoch, 10) + "." + strconv.FormatUint(c.Seq, 10) + "-"
	for i, raw := range c.Events {
		var m shownMessage
		if i < len(context.messages) {
			m = context.messages[i]
		}
		typ, _ := esjson.GetString(raw, "type")
		run := context.Run
		if strings.HasPrefix(typ, "run.") {
			// The event names its own run: the end of a run that was killed is in the first commit of the next one.
			if of, ok := esjson.GetString(raw, "run"); ok && of != "" {
				run = of
			}
		}
		size := 256 + len(raw)
		if m.content != nil { // it replaces the body, which is not shown
			size = 384 + len(m.content)
		}
		b := make([]byte, 0, size)
		b = esjson.Quote(append(b, `{"type":`...), typ)
		b = esjson.Quote(append(b, `,"task_id":`...), taskID)
		if run != "" {
			b = esjson.Quote(append(b, `,"run_id":`...), run)
		}
		b = strconv.AppendUint(append(b, `,"seq":`...), c.Seq, 10)
		b = append(append(append(b, `,"at":"`...), at...), '"')
		b = appendPayload(b, typ, raw, m)
		out = append(out, Event{
			ID:   prefix + strconv.Itoa(i),
			Type: typ,
			Task: taskID,
			Run:  run,
			Seq:  c.Seq,
			At:   c.At,
			Data: append(b, '}'),
		})
	}
	return out
}

// appendPayload copies an event's members. Of a message it shows the message, not how the journal stores it.
func appendPayload(b []byte, typ string, raw []byte, m shownMessage) []byte {
	message := typ == "message.added" || typ == "message.changed"
	member := func(key string, val []byte) {
		b = append(esjson.Quote(append(b, ','), key), ':')
		b = append(b, val...)
	}
	for key, val := range esjson.Members(raw) {
		switch key {
		case "type", "seq", "at", "task_id", "run_id":
			continue
		case "raw", "blob", "compose":
			if message {
				continue
			}
		case "images_blob": // a file of Roost's own; the queue shows the images
			continue
		}
		member(key, val)
	}
	if m.content == nil {
		return b
	}
	if typ == "message.changed" {
		member("history", esjson.Quote(nil, string(m.history)))
	}
	member("ts", strconv.AppendInt(nil, m.ts, 10))
	member("content", m.content)
	return b
}
