package contextwindow

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// Interrupted is the result of a call that never got one.
const Interrupted = "Tool execution was interrupted before completion."

// ErrEmpty says that a history holds nothing that can be sent.
var ErrEmpty = errors.New("the history holds no message that can be sent: add a user message first")

// Options say what the asked model takes.
type Options struct {
	DropThinking  bool // leave signed thinking out: the model changed, or is not Anthropic's
	KeepReasoning bool // send encrypted reasoning back: OpenAI's models want their own
	// KeepSignatures sends the signatures of thoughts back: Google's models refuse
	// their own calls without them.
	KeepSignatures bool
	// KeepDetails sends a message's reasoning_details back: servers of chat
	// completions that send them want them.
	KeepDetails bool
	// KeepReasoningContent sends plain reasoning back with each of the assistant's
	// messages, an empty string where none is stored: servers of chat completions that
	// send reasoning_content refuse calls without it.
	KeepReasoningContent bool
	NoImages             bool // the model takes no images; a text stands in for each

	Images     ImageLimits
	NameLength int  // of a tool's name, in bytes; 0 = 128
	NameLetter bool // a tool's name begins with a letter or an underscore
	IDLength   int  // of a tool call's id, in bytes; 0 = 1024

	left *load // the images of the message that is checked
}

func (o Options) nameLength() int {
	if o.NameLength > 0 {
		return o.NameLength
	}
	return 128
}

func (o Options) idLength() int {
	if o.IDLength > 0 {
		return o.IDLength
	}
	return 1 << 10
}

// name makes a tool's name one that can be sent.
func (o Options) name(s string) string {
	s = safeName(s, "unknown_tool", o.nameLength())
	if o.NameLetter && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') {
		s = cut("_"+s, o.nameLength())
	}
	return s
}

// Note tells what was left out of a request or changed in it.
type Note struct {
	Index int // of the stored message, -1 when it is about the request as a whole
	Text  string
}

// Build makes a request of a stored history; see Builder. It fails only with
// ErrEmpty.
func Build(history [][]byte, o Options) ([]llm.Message, []Note, error) {
	b := NewBuilder(o)
	for _, m := range history {
		b.Append(m)
	}
	return b.Messages()
}

// Builder makes requests of a growing history. Each message is checked once,
// when it is appended; a request then costs the messages that came since the one
// before. It keeps the appended slices, which must not be changed afterwards.
// To be used by one goroutine.
type Builder struct {
	o       Options
	index   esjson.Index // of the message that is checked
	all     []*checked
	visible int  // messages of all that were placed
	again   bool // a tag changed what is visible: place all again

	closed  []llm.Message
	notes   []Note
	used    map[string]bool // call ids that were sent
	turn    turn            // may still grow
	pending []call          // calls that turn has to answer

	markers map[string]bool // truncation markers that are sent
	from    int             // the newest summary, 0 when there is none
	gallery gallery

	tracing bool
	origins []Origin   // of the message that was closed last
	trace   [][]Origin // of the closed messages
}

// checked is a stored message, ready to be placed.
type checked struct {
	tags
	index   int
	asIs    bool // content can be sent as it is, the pairing aside
	parts   []part
	notes   []string
	results int    // parts that are tool results
	details []byte // reasoning_details, nil when they are not sent
	thought []byte // plain reasoning, a JSON string; nil when it is not sent or there is none
	load    load   // images in it
}

// turn is a run of messages of one role.
type turn struct {
	role  string
	items []*checked
}

// call is a tool call that wants a result: its stored id and the one it is sent
// with.
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

// Messages is the request as it stands: it begins and ends with a user message,
// roles alternate, every call is answered at the start of the next message. The
// lists returned share memory with the Builder: they are good until the next call
// of Messages, and must not be changed.
func (b *Builder) Messages() ([]llm.Message, []Note, error) {
	if b.again || b.used == nil {
		b.gallery = gallery{}
		b.reset()
	}
	if b.gather() {
		b.reset()
	}
	for ; b.visible < len(b.all); b.visible++ {
		if c := b.all[b.visible]; b.shows(c) {
			b.place(b.sent(c))
		}
	}
	if len(b.turn.items) == 0 {
		return nil, b.notes[:len(b.notes):len(b.notes)], ErrEmpty
	}
	// Both appends reuse the spare room of b's own lists; copying them would make
	// every request cost the length of the task.
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
	// Room for all at once: growing step by step would copy most of it twice.
	*b = Builder{o: b.o, index: b.index, all: b.all, gallery: b.gallery, tracing: b.tracing, used: make(map[string]bool, len(b.all)/2), markers: make(map[string]bool), closed: make([]llm.Message, 0, len(b.all)+2)}
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

// shows follows Effective. condenseParent needs no look: where a summary exists,
// all before it is hidden and nothing after it is.
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
		b.closed = append(b.closed, llm.Message{Role: "user", Content: array([][]byte{textOf("[The start of this conversation is not available.]")})})
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
	var items [][]byte        // stays empty as long as all can be sent as it is
	var local map[string]bool // ids of calls, from the second one on
	same := len(b.turn.items) == 1 && b.turn.items[0].asIs
	for n, c := range b.turn.items {
		for i, p := range c.parts {
			if p.kind != thinking || n == 0 {
				b.came(c, p)
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

// joinStrings is two JSON strings as one, a blank line between them.
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

func rawParts(parts []part) [][]byte {
	var out [][]byte
	for _, p := range parts {
		out = append(out, p.raw)
	}
	return out
}

// answersAll: the message's first parts answer exactly the pending calls.
func (b *Builder) answersAll(c *checked) bool {
	if c.results != len(b.pending) || c.results > len(c.parts) {
		return false
	}
	for i, p := range c.parts[:c.results] {
		if p.kind != toolResult {
			return false
		}
		// In the order of the calls, the usual case; any other order is put right.
		if p.id != b.pending[i].id || p.id != b.pending[i].as {
			return false
		}
	}
	return true
}

func (b *Builder) closeUser() (llm.Message, []Note) {
	if first := b.turn.items[0]; len(b.turn.items) == 1 && first.asIs && b.answersAll(first) {
		for _, p := range first.parts {
			b.came(first, p)
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
				b.came(c, p)
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
					b.came(c, p)
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

// match finds the pending call that a result answers. twice: it was answered.
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

// orphan makes texts and images of a result that answers no call.
func orphan(result []byte) [][]byte {
	content, _ := esjson.Get(result, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		return [][]byte{textOf("Tool result:\n" + str(content))}
	}
	return append([][]byte{textOf("Tool result:")}, blocks(content)...)
}

// check takes a stored message apart and makes its blocks sendable. It goes over
// the bytes once; x is room for what is found on the way.
func check(x *esjson.Index, raw []byte, o Options) *checked {
	c := new(checked)
	if !x.Read(raw, 3) || esjson.TypeOf(raw) != esjson.TypeObject {
		c.notes = []string{"a message that is no JSON object was left out"}
		return c
	}
	content := -1
	for key, i := range x.Parts(0) {
		c.set(key, x.Raw(i))
		switch {
		case string(key) == "content":
			content = i
		case string(key) == "reasoning_details" && o.KeepDetails:
			c.keepDetails(x.Raw(i))
		}
	}
	if c.role != "user" && c.role != "assistant" {
		c.notes = []string{"a message with the role " + strconv.Quote(cut(c.role, 40)) + " was left out"}
		return c
	}
	if content < 0 {
		c.notes = []string{"a message without content was left out"}
		return c
	}
	if x.Unicode() || !utf8.Valid(c.content) {
		if tidied, changed := tidy(c.content); changed {
			c.notes = append(c.notes, "characters that are not valid Unicode were replaced")
			c.content, content = tidied, 0
			x.Read(tidied, 2)
		}
	}
	c.take(x, content, o)
	return c
}

// keepDetails keeps what a server wants back with an assistant's message.
func (c *checked) keepDetails(raw []byte) {
	if esjson.TypeOf(raw) != esjson.TypeArray {
		return
	}
	for range esjson.Array(raw) { // an empty array says nothing
		c.details, _ = tidy(raw)
		return
	}
}

// take makes parts of the content, which is value i of x.
func (c *checked) take(x *esjson.Index, i int, o Options) {
	c.asIs, o.left = true, new(load)
	switch esjson.TypeOf(c.content) {
	case esjson.TypeString:
		if !isBlank(c.content) {
			c.parts = []part{{kind: text, raw: textBlock(c.content), legacy: c.role == "user" && isLegacy(c.content)}}
		}
		return
	case esjson.TypeArray:
	default:
		c.notes = append(c.notes, "a message without content was left out")
		return
	}
	at := -1
	for _, k := range x.Parts(i) {
		at++
		var f fields
		for key, m := range x.Parts(k) {
			f.set(key, x.Raw(m))
		}
		if o.KeepReasoningContent && c.role == "assistant" && typeName(f.typ) == "reasoning" && esjson.TypeOf(f.text) == esjson.TypeString {
			c.thought = joinStrings(c.thought, f.text)
		}
		p, keep, note := checkBlock(x.Raw(k), &f, c.role, o)
		p.at = at
		if note != "" {
			c.notes = append(c.notes, note)
		}
		c.asIs = c.asIs && keep && !p.mended
		if !keep {
			continue
		}
		if p.kind == toolResult {
			c.results++
		}
		if c.parts == nil {
			c.parts = make([]part, 0, 2)
		}
		c.parts = append(c.parts, p)
	}
	c.load = *o.left
	// A message must not end with thinking.
	for len(c.parts) > 0 && c.parts[len(c.parts)-1].kind == thinking {
		c.parts, c.asIs = c.parts[:len(c.parts)-1], false
	}
	if len(c.parts) == 1 && c.parts[0].kind == signature {
		c.parts, c.asIs = nil, false // it signs nothing
	}
}
