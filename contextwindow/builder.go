package contextwindow

import (
	"errors"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// Interrupted is the result of a call that never got one.
const Interrupted = "Tool execution was interrupted before completion."

// ErrEmpty: a history holds nothing that can be sent.
var ErrEmpty = errors.New("the history holds no message that can be sent: add a user message first")

// Build makes a request from a stored history; see Builder. It fails only with ErrEmpty.
func Build(history [][]byte, o Options) ([]llm.Message, []Note, error) {
	b := NewBuilder(o)
	for _, m := range history {
		b.Append(m)
	}
	return b.Messages()
}

// Builder makes requests from a growing history. Each message is checked once, when it is appended; a request then
// costs the messages that came since the one before. The Builder keeps the appended slices, which must not be changed
// afterwards. One goroutine uses it.
type Builder struct {
	o       Options
	index   esjson.Index // of the message being checked
	all     []*checked
	visible int  // messages of all that were placed
	again   bool // a tag changed what is visible: place all messages again

	closed  []llm.Message
	notes   []Note
	used    map[string]bool // call ids that were sent
	turn    turn            // may still grow
	pending []call          // calls that turn must answer

	markers map[string]bool // truncation markers that are sent
	from    int             // the newest summary, 0 when there is none
	gallery gallery

	tracing bool
	origins []Origin   // of the message that was closed last
	trace   [][]Origin // of the closed messages
}

// turn is a run of messages of one role.
type turn struct {
	role  string
	items []*checked
}

// call is a tool call that needs a result: its stored id and the id it is sent with.
type call struct{ id, as string }

// NewBuilder makes a Builder without messages.
func NewBuilder(o Options) *Builder { return &Builder{o: o} }

// Append takes the next stored message.
func (b *Builder) Append(raw []byte) {
	c := check(&b.index, raw, b.o)
	c.index = len(b.all)
	b.all = append(b.all, c)
	if c.summary || c.marker {
		b.again = true
	}
}

// Messages is the current request: it begins and ends with a user message, roles alternate, and the next message begins
// with the answer to every call. The lists returned share memory with the Builder: they are valid until the next call
// of Messages, and must not be changed.
func (b *Builder) Messages() ([]llm.Message, []Note, error) {
	if b.again || b.used == nil {
		b.gallery = gallery{}
		b.reset()
	}
	if b.gallery.fold(b.all, b.o.Images, b.shows) {
		b.reset()
	}
	for ; b.visible < len(b.all); b.visible++ {
		if c := b.all[b.visible]; b.shows(c) {
			b.place(b.gallery.withoutImages(&b.index, c, b.o))
		}
	}
	if len(b.turn.items) == 0 {
		return nil, b.notes[:len(b.notes):len(b.notes)], ErrEmpty
	}
	// Both appends reuse the spare capacity of b's own lists; copying them would make every request cost the length of
	// the task.
	last, calls, notes := b.close()
	if b.tracing {
		b.trace = append(b.trace, b.origins)
	}
	out := append(b.closed, last)
	notes = append(b.notes, notes...)
	if last.Role == "assistant" {
		out = append(out, answer(calls))
		notes = append(notes, Note{-1, "the history ends with the model's message: an answer was added"})
	}
	return out, notes, nil
}

// answer is the user message that is sent where none is stored yet.
func answer(calls []call) llm.Message {
	if len(calls) == 0 {
		return llm.Message{Role: "user", Content: array([][]byte{textOf("Please continue.")})}
	}
	var items [][]byte
	for _, c := range calls {
		items = append(items, resultBlock(c.as, Interrupted))
	}
	return llm.Message{Role: "user", Content: array(items)}
}

func (b *Builder) reset() {
	// Allocate for all messages at once: growing step by step would copy most of them twice.
	*b = Builder{
		o:       b.o,
		index:   b.index,
		all:     b.all,
		gallery: b.gallery,
		tracing: b.tracing,
		used:    make(map[string]bool, len(b.all)/2),
		markers: make(map[string]bool),
		closed:  make([]llm.Message, 0, len(b.all)+2),
	}
	for i := range b.all {
		if b.all[i].summary {
			b.from = i
		}
	}
	for i := range b.all {
		c := b.all[i]
		if c.marker && c.truncationID != "" && i >= b.from {
			b.markers[c.truncationID] = true
		}
	}
}

// shows follows Effective. condenseParent need not be checked: where a summary exists, everything before it is hidden
// and nothing after it is.
func (b *Builder) shows(c *checked) bool { return c.index >= b.from && !b.markers[c.truncated] }

func (b *Builder) place(c *checked) {
	for _, n := range c.notes {
		b.notes = append(b.notes, Note{c.index, n})
	}
	if len(c.parts) == 0 {
		return
	}
	if c.role != b.turn.role && len(b.turn.items) > 0 {
		m, calls, notes := b.close()
		if b.tracing {
			b.trace = append(b.trace, b.origins)
		}
		b.closed, b.pending, b.notes = append(b.closed, m), calls, append(b.notes, notes...)
		for _, p := range calls {
			b.used[p.as] = true
		}
		b.turn.items = nil
	}
	if len(b.closed) == 0 && len(b.turn.items) == 0 && c.role == "assistant" {
		start := textOf("[The start of this conversation is not available.]")
		b.closed = append(b.closed, llm.Message{Role: "user", Content: array([][]byte{start})})
		b.notes = append(b.notes, Note{c.index, "the history begins with the model's message: a text was put in front"})
		b.trace = append(b.trace, []Origin{added})
	}
	b.turn.role = c.role
	b.turn.items = append(b.turn.items, c)
}

// close makes a message of the open turn, without changing the Builder.
func (b *Builder) close() (llm.Message, []call, []Note) {
	b.origins = nil
	if b.turn.role == "assistant" {
		return b.closeAssistant()
	}
	m, notes := b.closeUser()
	return m, nil, notes
}

func (b *Builder) closeAssistant() (llm.Message, []call, []Note) {
	var calls []call
	var notes []Note
	var items [][]byte        // empty while everything can be sent as it is
	var local map[string]bool // ids of calls, from the second one on
	same := len(b.turn.items) == 1 && b.turn.items[0].asIs
	for n, c := range b.turn.items {
		for i, p := range c.parts {
			if p.kind != thinking || n == 0 {
				b.noteOrigin(c, p)
			}
			switch {
			case p.kind == thinking && n > 0:
				notes = append(notes, Note{c.index, "thinking in the middle of a joined message was left out"})
				continue
			case p.kind == toolUse:
				as := p.sent
				for k := 2; b.used[as] || local[as] || len(calls) == 1 && calls[0].as == as; k++ {
					tail := "_" + strconv.Itoa(k)
					as = cut(p.sent, b.o.idLength()-len(tail)) + tail
				}
				if as != p.sent {
					if same {
						same, items = false, rawParts(c.parts[:i])
					}
					p.raw = esjson.Set(p.raw, "id", esjson.Quote(nil, as))
					notes = append(notes, Note{c.index, "a tool call's id was used before: it is sent as " + as})
				}
				calls = append(calls, call{p.id, as})
				if len(calls) == 2 {
					local = map[string]bool{calls[0].as: true}
				}
				if local != nil {
					local[as] = true
				}
			}
			if !same {
				items = append(items, p.raw)
			}
		}
	}
	if same {
		return b.reply(b.turn.items[0].content), calls, notes
	}
	return b.reply(array(items)), calls, notes
}

// reply is the open turn as the assistant's message.
func (b *Builder) reply(content []byte) llm.Message {
	m := llm.Message{Role: "assistant", Content: content, ReasoningDetails: b.turn.details()}
	if b.o.KeepReasoningContent {
		m.ReasoningContent = b.turn.thought()
	}
	return m
}

// thought is the plain reasoning of all messages of the turn.
func (t *turn) thought() []byte {
	var all []byte
	for _, c := range t.items {
		all = joinStrings(all, c.thought)
	}
	if all == nil {
		return []byte(`""`)
	}
	return all
}

// joinStrings joins two JSON strings with a blank line between them.
func joinStrings(a, b []byte) []byte {
	switch {
	case len(a) <= 2:
		return b
	case len(b) <= 2:
		return a
	}
	return append(append(a[:len(a)-1:len(a)-1], `\n\n`...), b[1:]...)
}

// details are the reasoning details of all messages of the turn.
func (t *turn) details() []byte {
	var all [][]byte
	for _, c := range t.items {
		if len(t.items) == 1 {
			return c.details
		}
		for d := range esjson.Array(c.details) {
			all = append(all, d)
		}
	}
	if all == nil {
		return nil
	}
	return array(all)
}

func rawParts(parts []contentPart) [][]byte {
	var out [][]byte
	for _, p := range parts {
		out = append(out, p.raw)
	}
	return out
}

// answersAll reports that the message's first parts answer exactly the pending calls.
func (b *Builder) answersAll(c *checked) bool {
	if c.results != len(b.pending) || c.results > len(c.parts) {
		return false
	}
	for i, p := range c.parts[:c.results] {
		if p.kind != toolResult {
			return false
		}
		// Results usually have the order of the calls; any other order is corrected.
		if p.id != b.pending[i].id || p.id != b.pending[i].as {
			return false
		}
	}
	return true
}

func (b *Builder) closeUser() (llm.Message, []Note) {
	if first := b.turn.items[0]; len(b.turn.items) == 1 && first.asIs && b.answersAll(first) {
		for _, p := range first.parts {
			b.noteOrigin(first, p)
		}
		return llm.Message{Role: "user", Content: first.content}, nil
	}
	results, origins := make([][]byte, len(b.pending)), make([]Origin, len(b.pending))
	for i := range origins {
		origins[i] = added
	}
	var others [][]byte
	var notes []Note
	legacy := false
	for _, c := range b.turn.items {
		for _, p := range c.parts {
			legacy = legacy || p.legacy
			if p.kind != toolResult {
				others = append(others, p.raw)
				b.noteOrigin(c, p)
				continue
			}
			at, twice := b.match(p.id, results)
			switch {
			case at >= 0:
				r := p.raw
				if p.sent != b.pending[at].as {
					r = setID(r, b.pending[at].as)
				}
				results[at], origins[at] = r, Origin{c.index, p.at}
			case twice:
				notes = append(notes, Note{c.index, "a second result of the same tool call was left out"})
			default:
				for _, o := range orphan(p.raw) {
					others = append(others, o)
					b.noteOrigin(c, p)
				}
				notes = append(notes, Note{c.index, "a tool result without its call is sent as text"})
			}
		}
	}
	for i, r := range results {
		if r != nil {
			continue
		}
		why := Interrupted
		if legacy {
			why = "The result is in the text that follows."
		}
		results[i] = resultBlock(b.pending[i].as, why)
		notes = append(notes, Note{b.turn.items[0].index, "a tool call without result got a placeholder"})
	}
	b.origins = append(origins, b.origins...)
	return llm.Message{Role: "user", Content: array(append(results, others...))}, notes
}

func setID(result []byte, id string) []byte {
	return esjson.Set(result, "tool_use_id", esjson.Quote(nil, id))
}

// match finds the pending call that a result answers. twice reports that the call was answered before.
func (b *Builder) match(id string, results [][]byte) (at int, twice bool) {
	for i, p := range b.pending {
		if p.id == id {
			if results[i] == nil {
				return i, false
			}
			twice = true
		}
	}
	return -1, twice
}

// orphan makes texts and images from a result that answers no call.
func orphan(result []byte) [][]byte {
	content, _ := esjson.Get(result, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		return [][]byte{textOf("Tool result:\n" + str(content))}
	}
	return append([][]byte{textOf("Tool result:")}, blocks(content)...)
}

// Origin is the source of a request's block in the stored history: the message and the block in its content, both from
// 0. A block that was added for the request has -1 twice.
type Origin struct{ Message, Block int }

// noteOrigin notes where the next block of the closed message comes from.
func (b *Builder) noteOrigin(c *checked, p contentPart) {
	if b.tracing {
		b.origins = append(b.origins, Origin{c.index, p.at})
	}
}

var added = Origin{-1, -1}
