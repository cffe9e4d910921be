package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/task"
)

// Event is one event of a task, the same in every stream. docs describes the JSON in Data under "Events".
type Event struct {
	ID   string // "<epoch>.<seq>-<index>"; "" for a live event
	Type string
	Task string // "" of a change of the overlay: it belongs to no commit of its task, so no live event precedes or follows it
	Of   string // of a change of the overlay: the task
	Run  string // "" if the event belongs to no run
	Seq  uint64 // 0 for a live event
	At   int64  // Unix milliseconds
	// Behind is the task's newest commit at the moment when a live event was published: the live event follows the events
	// of that commit and precedes those of the next one. 0 means unknown.
	Behind uint64
	Data   json.RawMessage // the whole event on one line: task_id, run_id?, seq, at, type and the payload
}

// Item is an event in a topic.
type Item struct {
	Event
	Cursor Cursor // of a live event: the cursor of the durable event before it
	Live   bool
	Frame  []byte // the event as a server-sent event; Data is a part of it
}

// CursorID returns the id with which subscribers of the topic continue after the item; "" for a live event.
func (i Item) CursorID() string {
	if i.Live {
		return ""
	}
	return i.Cursor.String()
}

// framed makes the frame of an item. It lets Data share the memory of the frame, which ends with the data and two newlines.
// The ring sets the cursor of a live item.
func framed(i Item) Item {
	id := i.CursorID()
	frame := AppendFrame(make([]byte, 0, len(id)+len(i.Type)+len(i.Data)+32), id, i.Type, i.Data)
	i.Frame = frame
	end := len(frame) - 2
	_, data, _ := bytes.Cut(frame[:end:end], []byte("data: "))
	i.Data = data
	return i
}

// itemBytes is about the size of an item in memory without its frame.
const itemBytes = 280

func (i *Item) size() int { return len(i.Frame) + itemBytes }

// itemsOf makes items of a commit's events: for the stream of their task, or with a line of the activity log, which announced
// the commit, for the stream of all tasks.
func itemsOf(events []Event, line feed.Place) []Item {
	out := make([]Item, len(events))
	for i, e := range events {
		c, _ := ParseCursor(e.ID)
		if line != (feed.Place{}) {
			c = at(0, e.Seq, i)
			c.Line = line
		}
		out[i] = framed(Item{Event: e, Cursor: c})
	}
	return out
}

// AppendFrame appends a server-sent event. The contents of a journal are untrusted, so neither a type nor data can start
// another line of the frame.
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
	return typ != "" && strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz._") == ""
}

// Context is the part of a commit's events that is not in the commit's line of the journal. It is read from the state right
// after the commit.
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

// ContextOf reads the context of a commit from the state right after it. With an error, unreadable messages are empty.
func ContextOf(s *task.State, events []task.Event) (Context, error) {
	var unread error
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
		raws, err := s.Raws([]*task.Message{m})
		if err != nil {
			raws, unread = []json.RawMessage{json.RawMessage("{}")}, err
		}
		c.messages[i] = shownMessage{history: m.History, ts: m.TS(), content: raws[0]}
	}
	return c, unread
}

// Render renders a commit's events for streams. They depend on the journal alone: a context from a state that was folded
// from the journal gives the same bytes as one from the owner's state.
func Render(taskID string, c journal.Commit, context Context) []Event {
	at := api.Stamp(c.At)
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
			// The event names its own run: the end of a killed run is in the first commit of the next run.
			if of, ok := esjson.GetString(raw, "run"); ok && of != "" {
				run = of
			}
		}
		size := 256 + len(raw)
		if m.content != nil { // the content replaces the body
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

// appendPayload copies an event's members. For a message it adds the message's content, and leaves out the members
// that refer to the stored message.
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

// Cursor is a place in a stream: after event Index of commit Seq of a task. In the stream of all tasks, Line is the line of
// the activity log that announced the commit. The zero Cursor is the start. The order ignores Epoch, because Seq grows
// through all epochs.
type Cursor struct {
	Line feed.Place
	task.Position
}

// wholeCommit is the Index of a cursor after all events of its commit.
const wholeCommit = math.MaxInt

func at(epoch, seq uint64, index int) Cursor {
	return Cursor{Position: task.Position{Epoch: epoch, Seq: seq, Index: index}}
}

// AfterCommit returns the cursor after all events of a commit of a task.
func AfterCommit(seq uint64) Cursor {
	if seq == 0 {
		return Cursor{}
	}
	return at(0, seq, wholeCommit)
}

// afterLine returns the cursor after all events that a line of the activity log announced.
func afterLine(p feed.Place) Cursor {
	if p == (feed.Place{}) {
		return Cursor{}
	}
	c := at(0, math.MaxUint64, wholeCommit)
	c.Line = p
	return c
}

// IsStart reports whether nothing is before the cursor.
func (c Cursor) IsStart() bool { return c == Cursor{} }

// IsWhole reports whether the cursor is after all events of its commit.
func (c Cursor) IsWhole() bool { return c.Seq == 0 || c.Index == wholeCommit }

// Before reports whether c comes before d in the same stream.
func (c Cursor) Before(d Cursor) bool {
	return cmp.Or(
		cmp.Compare(c.Line.Segment, d.Line.Segment),
		cmp.Compare(c.Line.Offset, d.Line.Offset),
		cmp.Compare(c.Seq, d.Seq),
		cmp.Compare(c.Index, d.Index),
	) < 0
}

// same reports whether neither of two cursors comes before the other.
func (c Cursor) same(d Cursor) bool { return !c.Before(d) && !d.Before(c) }

// String returns the id that clients send: "1.7-0" for a task, five parts for all tasks, "0" for the start and "7"
// for the place after commit 7.
func (c Cursor) String() string {
	switch {
	case c.IsStart():
		return "0"
	case c.Line != feed.Place{}:
		if c.Seq == math.MaxUint64 {
			c.Seq, c.Index = 0, 0
		}
		l := c.Line
		return fmt.Sprintf("%s.%d.%d.%x.%d-%d", l.Feed, l.Segment, l.Offset, l.Sum, c.Seq, c.Index)
	case c.Index == wholeCommit:
		return strconv.FormatUint(c.Seq, 10)
	}
	return fmt.Sprintf("%d.%d-%d", c.Epoch, c.Seq, c.Index)
}

// ParseCursor reads the id of an event of a task, "0", or the number of a commit. It accepts an id only in the form of
// String, so that one place has one id.
func ParseCursor(text string) (c Cursor, ok bool) {
	if n, ok := parseNumber(text); ok {
		return AfterCommit(n), true
	}
	first, rest, _ := strings.Cut(text, ".")
	second, third, _ := strings.Cut(rest, "-")
	epoch, ok1 := parseNumber(first)
	seq, ok2 := parseNumber(second)
	index, ok3 := parseNumber(third)
	return at(epoch, seq, int(index)), ok1 && ok2 && ok3 && seq > 0 && index <= 1<<30 //nolint:gosec // it is at most 1<<30
}

// ParseAllCursor reads the id of an event of the stream of all tasks, or "0" for the oldest kept event.
func ParseAllCursor(text string) (c Cursor, ok bool) {
	if text == "0" {
		return Cursor{}, true
	}
	name, rest, _ := strings.Cut(text, ".")
	c.Line.Feed = name
	_, err := fmt.Sscanf(rest, "%d.%d.%x.%d-%d", &c.Line.Segment, &c.Line.Offset, &c.Line.Sum, &c.Seq, &c.Index)
	if err != nil || len(text) > 200 || c.Line.Segment == 0 || c.Line.Offset < 0 || c.Index < 0 || c.Index >= 1<<30 ||
		max(c.Line.Segment, c.Seq) > math.MaxInt64 {
		return Cursor{}, false
	}
	if c.Seq == 0 {
		c = afterLine(c.Line)
	}
	return c, c.String() == text
}

// parseNumber reads a number in its printed form: digits without a sign or leading zeros.
func parseNumber(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}
