package events

import (
	"bytes"
	"encoding/json"
)

// Event is one event of a task, as every stream shows it. The JSON in Data is described in docs under "Events".
type Event struct {
	ID   string // "<epoch>.<seq>-<index>"; "" for a live event
	Type string
	Task string
	Run  string // "" when it belongs to no run
	Seq  uint64 // 0 for a live event
	At   int64  // Unix milliseconds
	// Behind is the newest commit of the task when a live event was published: it follows the events of that commit
	// and precedes those of the next one. 0 means unknown.
	Behind uint64
	Data   json.RawMessage // the whole event on one line: task_id, run_id?, seq, at, type and the payload
}

// Item is an event as a topic keeps it.
type Item struct {
	Event
	Cursor Cursor // of a live event: the cursor of the durable event before it
	Live   bool
	Frame  []byte // the event as a server-sent event; Data is a part of it
}

// CursorID is the id that subscribers of the topic send to continue behind the item; "" for a live event.
func (i Item) CursorID() string {
	if i.Live {
		return ""
	}
	return i.Cursor.String()
}

func newItem(e Event, at Cursor) Item {
	frame := make([]byte, 0, len(e.ID)+64+len(e.Type)+len(e.Data)+24)
	return framed(Item{Event: e, Cursor: at}, AppendFrame(frame, at.String(), e.Type, e.Data))
}

// newLiveItem makes an item of a live event; the ring sets its cursor.
func newLiveItem(e Event) Item {
	frame := make([]byte, 0, len(e.Type)+len(e.Data)+24)
	return framed(Item{Event: e, Live: true}, AppendFrame(frame, "", e.Type, e.Data))
}

// framed lets Data share the memory of the frame, which ends with the data and two newlines.
func framed(i Item, frame []byte) Item {
	i.Frame = frame
	end := len(frame) - 2
	i.Data = frame[end-len(dataOf(frame)) : end : end]
	return i
}

func dataOf(frame []byte) []byte {
	_, data, _ := bytes.Cut(frame[:len(frame)-2], []byte("data: "))
	return data
}

// itemBytes is about what an item occupies in memory without its frame.
const itemBytes = 280

func (i *Item) size() int { return len(i.Frame) + itemBytes }

// itemsOf makes items of a commit's events in the stream of their task.
func itemsOf(events []Event) []Item {
	out := make([]Item, len(events))
	for i, e := range events {
		out[i] = newItem(e, cursorOf(e))
	}
	return out
}

// AppendFrame appends a server-sent event. The journal's contents are not trusted: neither a type nor data may start
// another line.
func AppendFrame(b []byte, id, typ string, data []byte) []byte {
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if PlainType(typ) {
		b = append(append(append(b, "event: "...), typ...), '\n')
	}
	if bytes.ContainsAny(data, "\r\n") {
		var flat bytes.Buffer
		if json.Compact(&flat, data) == nil {
			data = flat.Bytes()
		}
		data = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, data)
	}
	return append(append(append(b, "data: "...), data...), '\n', '\n')
}

// PlainType reports whether a type consists of the letters a to z, dots and underscores, as the types of events do.
func PlainType(typ string) bool {
	for _, c := range []byte(typ) {
		if (c < 'a' || c > 'z') && c != '.' && c != '_' {
			return false
		}
	}
	return typ != ""
}
