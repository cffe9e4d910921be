package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task/facts"
	"github.com/roost-dev/roost/usage"
)

// Raw returns the message's JSON as Roo would store it. Do not modify it. Each call inserts the text that was
// streamed so far and does not keep the result, so that reading a state never changes it. A message that is not in
// memory is read from the log each time. State.Raws reads many messages in one pass and returns an error for one that
// it cannot read; Raw returns an empty object instead.
func (m *Message) Raw() json.RawMessage {
	if m.rawAway {
		raws, err := m.state.Raws([]*Message{m})
		if err != nil {
			return json.RawMessage("{}")
		}
		return raws[0]
	}
	return m.shown(bare(withText(m.raw, m.saved), m.Lifted))
}

// withText returns a message with saved appended to its text.
func withText(raw json.RawMessage, saved []byte) json.RawMessage {
	if len(saved) == 0 {
		return raw
	}
	return esjson.Set(raw, "text", esjson.Quote(nil, esjson.TextOf(raw, "text")+string(saved)))
}

// TS is Roo's time stamp in Unix milliseconds, 0 when the message has none.
func (m *Message) TS() int64 { return m.Facts.TS }

// Kind is "say:text", "ask:tool" and so on for UI messages, the role for API messages.
func (m *Message) Kind() string { return m.Facts.Kind }

// Text returns a UI message's text.
func (m *Message) Text() string { s, _ := esjson.GetString(m.Raw(), "text"); return s }

// Summary reports whether the message is a summary of older ones and no reply.
func (m *Message) Summary() bool { return m.Facts.Summary }

// Uses returns the tool calls that the message makes, in order.
func (m *Message) Uses() []facts.Use { return m.Facts.Uses }

// Results returns the ids of the calls that the message answers, in order.
func (m *Message) Results() []string { return m.Facts.Results }

// Partial reports whether the message was still being streamed when it was
// written last.
func (m *Message) Partial() bool { return m.Facts.Partial }

// Spent returns what a UI message adds to Roo's sums; false when it adds nothing.
func (m *Message) Spent() (usage.Tokens, bool) {
	if m.Facts.Spent == nil {
		return usage.Tokens{}, false
	}
	return *m.Facts.Spent, true
}

// set gives a message its content.
func (m *Message) set(raw json.RawMessage, body place, pieces [][]place) {
	m.raw, m.saved, m.rawAway = raw, nil, false
	m.Body, m.Pieces, m.SavedFrom = body, pieces, len(m.Texts)
	m.Lifted = 0
	m.Facts = facts.Of(m.History == API, raw, m.state.kinds)
}

// blank replaces a message whose bytes are missing.
func (m *Message) blank() { m.set(nothing, place{}, nil) }

// nothing is shared by all blank messages, because a gap in the log may hold many.
var nothing = json.RawMessage("{}")

// save appends streamed text.
func (m *Message) save(text string, at place) {
	m.Texts = append(m.Texts, at)
	if !m.rawAway {
		m.saved = append(m.saved, text...)
	}
	if !m.textAway {
		m.text = append(m.text, text...)
	}
}

// drop removes the bytes from memory.
func (m *Message) drop() {
	m.raw, m.saved, m.text = nil, nil, nil
	m.rawAway, m.textAway = true, true
}

func (m *Message) size() int {
	n := len(m.saved) + len(m.text)
	if len(m.raw) > 0 && &m.raw[0] != &nothing[0] {
		n += len(m.raw)
	}
	return n
}

// LastTS returns the newest time stamp of the visible histories, 0 when there is none.
func (s *State) LastTS() int64 {
	var last int64
	for _, list := range [][]*Message{s.ui, s.api} {
		if len(list) > 0 {
			last = max(last, list[len(list)-1].TS())
		}
	}
	return last
}

const (
	noSummary lifted = 1 << iota // its condenseParent does not count any more
	noMarker                     // its truncationParent does not count any more
)

// bare removes the lifted tags from a message. When only one of the two tags stays, it moves to the end, where Roo
// writes it.
func bare(raw json.RawMessage, l lifted) json.RawMessage {
	if l == 0 {
		return raw
	}
	out := esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent")
	if tag, ok := esjson.Get(raw, "condenseParent"); ok && l&noSummary == 0 {
		out = esjson.Set(out, "condenseParent", tag)
	}
	if tag, ok := esjson.Get(raw, "truncationParent"); ok && l&noMarker == 0 {
		out = esjson.Set(out, "truncationParent", tag)
	}
	return out
}

// Tags returns the message's tags, without those that a rewind lifted.
func (m *Message) Tags() facts.Tags {
	if m.Facts.Tags == nil {
		return facts.Tags{}
	}
	t := *m.Facts.Tags
	if m.Lifted&noSummary != 0 {
		t.Condensed = ""
	}
	if m.Lifted&noMarker != 0 {
		t.Truncated = ""
	}
	return t
}

// lift lifts the tags that name a missing summary or marker.
func (m *Message) lift(gone func(id string) bool) {
	t := m.Tags()
	if t.Condensed != "" && gone(t.Condensed) {
		m.Lifted |= noSummary
	}
	if t.Truncated != "" && gone(t.Truncated) {
		m.Lifted |= noMarker
	}
}

// Input returns the call's input as the model wrote it; nil when no message holds the call any more.
func (c *Call) Input() json.RawMessage {
	m := c.state.Message(c.Message)
	if m == nil {
		return nil
	}
	for block := range esjson.Array(esjson.Member(m.Raw(), "content")) {
		if esjson.TextOf(block, "type") == "tool_use" && esjson.TextOf(block, "id") == c.ID {
			return esjson.Member(block, "input")
		}
	}
	return nil
}

// Result returns the tool_result block of a finished call, nil before.
func (c *Call) Result() (json.RawMessage, error) {
	switch {
	case c.Finished == nil || !c.away && c.Finished.Result == nil && c.Finished.Blob == "":
		return nil, nil
	case !c.away && c.Finished.Result != nil:
		return c.Finished.Result, nil
	case c.Finished.Blob != "":
		return c.Finished.result(c.state.blobs)
	}
	at := []place{c.At}
	events, err := c.state.fetch(eventsAt(at))
	if err != nil {
		return nil, fmt.Errorf("read the result of call %s: %w", c.ID, err)
	}
	return c.state.result(at, events)
}

// Outcome decides what a restart may do with a call.
type Outcome string

// The three outcomes of a call after a crash.
const (
	OutcomeFinished   Outcome = "finished"    // the call's result is used
	OutcomeNotStarted Outcome = "not_started" // the call may run
	OutcomeUnknown    Outcome = "unknown"     // the call never runs again by itself
)

// Outcome returns the outcome of a call.
func (c *Call) Outcome() Outcome {
	switch {
	case c.Finished != nil || c.Answered:
		return OutcomeFinished
	case c.Started, c.Foreign:
		return OutcomeUnknown
	}
	return OutcomeNotStarted
}

// OpenCalls returns the calls of the last assistant message for which the API history has no result, in order.
func (s *State) OpenCalls() (open []*Call) {
	for _, last := range slices.Backward(s.api) {
		if last.Kind() != "assistant" {
			continue
		}
		for _, u := range last.Facts.Uses {
			c := s.calls[u.ID]
			if c != nil && c.Message == last.ID && !c.Answered && !slices.Contains(open, c) {
				open = append(open, c)
			}
		}
		break
	}
	return open
}

// body returns a message's JSON, and the places of the pieces that it is composed of.
func (s *State) body(b Body) (raw []byte, pieces [][]place, err error) {
	raw, starts, err := b.json(s.blobs, func(p Piece) ([]byte, error) {
		if p.Result != "" {
			c := s.calls[p.Result]
			if c == nil || c.Finished == nil {
				return nil, fmt.Errorf("result of call %q, which has none", p.Result)
			}
			pieces = append(pieces, []place{c.At})
			raw, err := c.Result()
			if err == nil && len(raw) == 0 {
				err = fmt.Errorf("result of call %q, which is empty", p.Result)
			}
			return raw, err
		}
		m := s.Message(p.TextOf)
		if m == nil {
			return nil, fmt.Errorf("text of message %d, which does not exist", p.TextOf)
		}
		pieces = append(pieces, m.Texts[:len(m.Texts):len(m.Texts)])
		text := m.text
		if m.textAway {
			events, err := s.fetch(eventsAt(m.Texts))
			if err != nil {
				return nil, err
			}
			if text, err = texts(m.Texts, events); err != nil {
				return nil, err
			}
		}
		return esjson.Quote(nil, string(text)), nil
	})
	for i, at := range starts {
		if p := b.Compose[i]; p.Result != "" && p.Blob == "" {
			s.calls[p.Result].share(raw[at:])
		}
	}
	return raw, pieces, err
}

// share makes the call's result share memory with the message that begins with it: a long task consists mostly of
// results, and would hold each of them twice.
func (c *Call) share(message []byte) {
	if n := len(c.Finished.Result); !c.away && n > 0 {
		c.Finished.Result = message[:n:n]
	}
}

// json assembles a body. piece returns the text of a piece that is not literal. starts holds the offset at which each
// piece of Compose begins.
func (b Body) json(blobs Blobs, piece func(Piece) ([]byte, error)) (raw []byte, starts []int, err error) {
	switch {
	case len(b.Raw) > 0:
		return bytes.Clone(b.Raw), nil, nil
	case b.Blob != "":
		raw, err := blobJSON(blobs, b.Blob)
		return raw, nil, err
	}
	// The parts come first, so that raw is allocated with its final size: it stays in memory while the task is open, and
	// growing it piece by piece would make it up to a quarter larger.
	parts, size := make([][]byte, len(b.Compose)), 0
	for i, p := range b.Compose {
		switch {
		case p.Blob != "":
			parts[i], err = blobs.Range(p.Blob, 0, -1)
		case !p.literal():
			parts[i], err = piece(p)
		}
		if err != nil {
			return nil, nil, err
		}
		size += len(parts[i])
		if p.literal() {
			size += len(p.Literal)
		}
	}
	raw, starts = make([]byte, 0, size), make([]int, len(parts))
	for i, part := range parts {
		starts[i] = len(raw)
		if raw = append(raw, part...); b.Compose[i].literal() {
			raw = append(raw, b.Compose[i].Literal...)
		}
	}
	if !esjson.Valid(raw) {
		return nil, nil, fmt.Errorf("composed message is not JSON")
	}
	return raw, starts, nil
}

// literal reports whether the piece is the text in Literal.
func (p Piece) literal() bool { return p.TextOf == 0 && p.Result == "" && p.Blob == "" }

// shown returns the result of Raw for a message that is stored as raw: it adds the tags of the summaries and markers
// that cover the message and are part of the history.
func (m *Message) shown(raw json.RawMessage) json.RawMessage {
	for _, i := range m.Covers {
		c := &m.state.Covers[i]
		if by := m.state.Message(c.Message); by != nil && by.Hidden == "" {
			raw = esjson.Set(raw, c.key(), esjson.Quote(nil, c.ID))
		}
	}
	return raw
}

// CoveredBy returns the summaries and markers that replace the message in what is sent now.
func (m *Message) CoveredBy() (ids []uint64) {
	for _, i := range m.Covers {
		c := &m.state.Covers[i]
		if by := m.state.Message(c.Message); by != nil && by.Hidden == "" {
			ids = append(ids, c.Message)
		}
	}
	return ids
}

// Sent returns the part of the visible API history that requests send: from the newest summary on, without the
// messages that a truncation hides. It is computed from the facts of each message, so it reads nothing, however long
// the task is. A request made from it equals one made from the whole history (contextwindow.Effective). Results of
// calls before the summary are still in it.
func (s *State) Sent() []*Message {
	from := 0
	for i := len(s.api) - 1; i > 0; i-- {
		if s.api[i].Facts.Summary {
			from = i
			break
		}
	}
	list := s.api[from:]
	markers := map[string]bool{}
	for _, m := range list {
		if t := m.Tags(); t.Marks && t.Marker != "" {
			markers[t.Marker] = true
		}
	}
	if len(markers) == 0 {
		return list[:len(list):len(list)]
	}
	return slices.DeleteFunc(slices.Clone(list), func(m *Message) bool { return m.truncatedBy(markers) })
}

// truncatedBy reports whether one of these markers hides the message.
func (m *Message) truncatedBy(markers map[string]bool) bool {
	for _, i := range m.Covers {
		if c := &m.state.Covers[i]; c.Kind == api.ActionTruncate && markers[c.ID] {
			return true
		}
	}
	return markers[m.Tags().Truncated]
}
