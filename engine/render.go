package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// render gives a commit's events as streams show them. It depends on the log
// alone: a note read off a state that was folded from the log gives the same bytes
// as the one that was taken live.
func render(taskID string, c journal.Commit, n note) []Event {
	at := time.UnixMilli(c.At).UTC().Format("2006-01-02T15:04:05.000Z")
	out := make([]Event, 0, len(c.Events))
	prefix := strconv.FormatUint(c.Epoch, 10) + "." + strconv.FormatUint(c.Seq, 10) + "-"
	for i, raw := range c.Events {
		var a aside
		if i < len(n.asides) {
			a = n.asides[i]
		}
		typ, _ := esjson.GetString(raw, "type")
		run := n.run
		if strings.HasPrefix(typ, "run.") {
			// Whose beginning or end it is: the end of a run that was killed stands in the first
			// commit of the next one.
			if of, ok := esjson.GetString(raw, "run"); ok && of != "" {
				run = of
			}
		}
		size := 256 + len(raw)
		if a.content != nil { // it stands for the body, which is not shown
			size = 384 + len(a.content)
		}
		b := make([]byte, 0, size)
		b = esjson.Quote(append(b, `{"type":`...), typ)
		b = esjson.Quote(append(b, `,"task_id":`...), taskID)
		if run != "" {
			b = esjson.Quote(append(b, `,"run_id":`...), run)
		}
		b = strconv.AppendUint(append(b, `,"seq":`...), c.Seq, 10)
		b = append(append(append(b, `,"at":"`...), at...), '"')
		b = payload(b, typ, raw, a)
		out = append(out, Event{
			ID: prefix + strconv.Itoa(i), Type: typ, Task: taskID, Run: run,
			Seq: c.Seq, At: c.At, Data: append(b, '}'),
		})
	}
	return out
}

// payload copies an event's members; of a message, it shows the message and not
// how the log holds it.
func payload(b []byte, typ string, raw []byte, a aside) []byte {
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
		case "images_blob": // a file of ours; the queue shows the images
			continue
		}
		member(key, val)
	}
	if a.content == nil {
		return b
	}
	if typ == "message.changed" {
		member("history", esjson.Quote(nil, string(a.history)))
	}
	member("ts", strconv.AppendInt(nil, a.ts, 10))
	member("content", a.content)
	return b
}
