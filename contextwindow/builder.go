// Package contextwindow decides which part of a task's stored API history a model gets, and makes a valid request
// from that part.
//
// All of it is pure functions over raw JSON messages, in three layers:
//
//   - Effective, CutOldest and PlanCondense read and write the tags by which Roo hides messages (condense, sliding
//     window).
//   - Withhold and Transcript rewrite messages that a provider refuses as they are.
//   - Build and Builder turn any stored history into messages that the Anthropic Messages API accepts. The stored
//     history is never changed.
//
// The same history gives the same bytes, and a longer history begins with the same bytes, so that provider caches keep
// hitting: blocks that need no repair are copied raw. Notes describe what was left out or changed.
//
// For returns the limits of a provider (number, bytes and sides of images; names; ids), from its documentation.
// Images are judged by their headers and never scaled: a text replaces one that is too large, and when there are too
// many, the oldest are left out, in steps.
//
// Limits: the bytes of a request as a whole are not bounded, and EstimateTokens is an estimate that needs
// calibration. A thinking block is sent as it was stored: this package cannot see whether its signature belongs to
// the current model, so a caller that changed the model sets Options.DropThinking.
package contextwindow

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
)

// Interrupted is the result that is sent for a call without a stored result.
const Interrupted = "Tool execution was interrupted before completion."

// ErrEmpty: a history holds no message that can be sent.
var ErrEmpty = errors.New("the history holds no message that can be sent: add a user message first")

// Build makes a request from a stored history; see Builder. It fails only with ErrEmpty.
func Build(history [][]byte, o Options) ([]llm.Message, []Note, error) {
	return builderOf(history, o).Messages()
}

func builderOf(history [][]byte, o Options) *Builder {
	b := NewBuilder(o)
	for _, m := range history {
		b.Append(m)
	}
	return b
}

// Builder makes requests from a growing history. Each message is checked once, when it is appended; a request then
// takes time only for the messages appended since the last request. The Builder keeps the appended slices, which must
// not be changed afterwards. One goroutine uses it.
type Builder struct {
	o       Options
	index   esjson.Index // of the message that is being checked
	all     []*checked
	visible int  // number of messages in all that have been placed
	again   bool // a tag changed which messages are visible: place all messages again

	closed  []llm.Message
	notes   []Note
	used    map[string]bool // call ids that were sent
	turn    turn            // the open turn, which may still grow
	pending []call          // calls that the turn must answer

	markers map[string]bool // truncation markers that are sent
	from    int             // index of the newest summary, 0 when there is none
	gallery gallery

	tracing bool
	origins []Origin   // of the newest closed message
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

// Append adds the next stored message.
func (b *Builder) Append(raw []byte) {
	c := check(&b.index, raw, b.o)
	c.index = len(b.all)
	b.all = append(b.all, c)
	if c.summary || c.marker {
		b.again = true
	}
}

// Messages returns the current request: it begins and ends with a user message, roles alternate, and the message
// after a call begins with its result. The lists returned share memory with the Builder: they are valid until the
// next call of Messages, and must not be changed.
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
	out := append(b.closed, last)
	notes = append(b.notes, notes...)
	if last.Role == "assistant" {
		out = append(out, answer(calls))
		notes = append(notes, Note{-1, "the history ends with the model's message: an answer was added"})
	}
	return out, notes, nil
}

// answer returns the user message that is sent where none is stored yet.
func answer(calls []call) llm.Message {
	if len(calls) == 0 {
		return llm.Message{Role: "user", Content: esjson.List([][]byte{textOf("Please continue.")})}
	}
	return llm.Message{Role: "user", Content: esjson.List(api.Each(calls, func(c call) []byte { return resultBlock(c.as, Interrupted) }))}
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
	for i, c := range b.all {
		if c.summary {
			b.from = i
		}
	}
	for _, c := range b.all[b.from:] {
		if c.marker && c.truncationID != "" {
			b.markers[c.truncationID] = true
		}
	}
}

// shows reports whether Effective would keep the message. condenseParent need not be checked: where a summary exists,
// everything before it is hidden and nothing after it is.
func (b *Builder) shows(c *checked) bool { return c.index >= b.from && !b.markers[c.truncated] }

func (b *Builder) place(c *checked) {
	b.notes = append(b.notes, api.Each(c.notes, func(n string) Note { return Note{c.index, n} })...)
	if len(c.parts) == 0 {
		return
	}
	if c.role != b.turn.role && len(b.turn.items) > 0 {
		m, calls, notes := b.close()
		b.closed, b.pending, b.notes = append(b.closed, m), calls, append(b.notes, notes...)
		for _, p := range calls {
			b.used[p.as] = true
		}
		b.turn.items = nil
	}
	if len(b.closed) == 0 && len(b.turn.items) == 0 && c.role == "assistant" {
		start := textOf("[The start of this conversation is not available.]")
		b.closed = append(b.closed, llm.Message{Role: "user", Content: esjson.List([][]byte{start})})
		b.notes = append(b.notes, Note{c.index, "the history begins with the model's message: a text was put in front"})
		b.trace = append(b.trace, []Origin{added})
	}
	b.turn.role = c.role
	b.turn.items = append(b.turn.items, c)
}

// close makes a message of the open turn. In the Builder it changes only the trace.
func (b *Builder) close() (m llm.Message, calls []call, notes []Note) {
	b.origins = nil
	if b.turn.role == "assistant" {
		m, calls, notes = b.closeAssistant()
	} else {
		m, notes = b.closeUser()
	}
	if b.tracing {
		b.trace = append(b.trace, b.origins)
	}
	return m, calls, notes
}

func (b *Builder) closeAssistant() (llm.Message, []call, []Note) {
	var calls []call
	var notes []Note
	var items [][]byte        // empty while everything can be sent unchanged
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
						same = false
						items = append(items, api.Each(c.parts[:i], func(before contentPart) []byte { return before.raw })...)
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
	return b.reply(esjson.List(items)), calls, notes
}

// reply returns the open turn as the assistant's message.
func (b *Builder) reply(content []byte) llm.Message {
	m := llm.Message{Role: "assistant", Content: content, ReasoningDetails: b.turn.details()}
	if b.o.KeepReasoningContent {
		m.ReasoningContent = b.turn.thought()
	}
	return m
}

// thought returns the plain reasoning of all messages of the turn.
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

// details returns the reasoning details of all messages of the turn.
func (t *turn) details() []byte {
	var all [][]byte
	for _, c := range t.items {
		if len(t.items) == 1 {
			return c.details
		}
		all = slices.AppendSeq(all, esjson.Array(c.details))
	}
	if all == nil {
		return nil
	}
	return esjson.List(all)
}

// answersAll reports whether the message's first parts answer exactly the pending calls.
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
	results, origins := make([][]byte, len(b.pending)), slices.Repeat([]Origin{added}, len(b.pending))
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
					r = esjson.Set(r, "tool_use_id", esjson.Quote(nil, b.pending[at].as))
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
	return llm.Message{Role: "user", Content: esjson.List(append(results, others...))}, notes
}

// match returns the pending call that a result answers. twice reports that the call already has a result.
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

// orphan turns a result that answers no call into texts and images.
func orphan(result []byte) [][]byte {
	content, _ := esjson.Get(result, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		return [][]byte{textOf("Tool result:\n" + esjson.Text(content))}
	}
	return append([][]byte{textOf("Tool result:")}, blocks(content)...)
}

// Origin is the place in the stored history that a request's block comes from: the message and the block in its
// content, both from 0. For a block that was added for the request, both are -1.
type Origin struct{ Message, Block int }

// noteOrigin records the origin of the next block of the closed message.
func (b *Builder) noteOrigin(c *checked, p contentPart) {
	if b.tracing {
		b.origins = append(b.origins, Origin{c.index, p.at})
	}
}

var added = Origin{-1, -1}

// Trace returns the origin of each block of each message in the request that Build makes from the same history with
// the same options. It reads all of the history, so it is for the rare case that a provider refuses a block.
func Trace(history [][]byte, o Options) [][]Origin {
	b := builderOf(history, o)
	b.tracing = true
	_, _, _ = b.Messages() // a request without messages has no origins
	return b.trace
}

// Withhold replaces part of a stored message by a text, for sending: one block of its content, the whole content
// (block -1), or, with images set, only the images in it. A message without such a part is returned unchanged. A call
// stays, with an empty input: its result still answers it. A thought is left out.
func Withhold(message []byte, block int, images bool, text string) []byte {
	content, ok := esjson.Get(message, "content")
	if !ok {
		return message
	}
	list := blocks(content)
	if block >= len(list) || len(list) == 0 {
		return message
	}
	var keep [][]byte
	for i, b := range list {
		if block < 0 || i == block {
			b = replacement(b, images, text)
		}
		if b != nil {
			keep = append(keep, b)
		}
	}
	if len(keep) == 0 {
		keep = [][]byte{textOf(text)}
	}
	return esjson.Set(message, "content", esjson.List(keep))
}

// replacement returns what is sent in place of a block; nil for nothing.
func replacement(block []byte, images bool, text string) []byte {
	switch typ := esjson.TextOf(block, "type"); {
	case typ == "tool_result" && images:
		content, _ := esjson.Get(block, "content")
		if esjson.TypeOf(content) != esjson.TypeArray {
			return block
		}
		var out [][]byte
		for inner := range esjson.Array(content) {
			if esjson.TextOf(inner, "type") == "image" {
				inner = textOf(text)
			}
			out = append(out, inner)
		}
		return esjson.Set(block, "content", esjson.List(out))
	case images && typ != "image":
		return block
	case typ == "tool_result":
		return esjson.Set(block, "content", esjson.Quote(nil, text))
	case typ == "tool_use":
		return esjson.Set(block, "input", []byte("{}"))
	case typ == "thinking", typ == "redacted_thinking", typ == "reasoning", typ == "thoughtSignature":
		return nil
	}
	return textOf(text)
}

// gallery chooses the messages whose images are sent: all from a first one on. When there are too many images, it
// moves the first one forward until half of the provider's limit is free, so that the earlier bytes change rarely and
// caches keep hitting. It is a fold over the visible messages: the same history gives the same choice.
type gallery struct {
	seen int // number of messages folded
	from int // the first message whose images are sent
	load load
}

// fold adds the messages that were appended to all. shows reports whether a message is visible; moved reports that
// some images which were sent before are no longer sent.
func (g *gallery) fold(all []*checked, l ImageLimits, shows func(*checked) bool) (moved bool) {
	for ; g.seen < len(all); g.seen++ {
		c := all[g.seen]
		if c.load.count == 0 || !shows(c) {
			continue
		}
		if g.load = g.load.plus(c.load); !l.over(g.load, 1) {
			continue
		}
		for ; g.from < g.seen && l.over(g.load, 2); g.from++ {
			if old := all[g.from]; shows(old) {
				g.load = g.load.minus(old.load)
				moved = moved || old.load.count > 0
			}
		}
	}
	return moved
}

// withoutImages returns a message as it is placed: without its images when there are too many. x is room for parsing.
func (g *gallery) withoutImages(x *esjson.Index, c *checked, o Options) *checked {
	if c.load.count == 0 || c.index >= g.from {
		return c
	}
	const why = "its images are not sent any more: there are more than the provider accepts in one request"
	plain := &checked{tags: c.tags, index: c.index, notes: slices.Concat(c.notes, []string{why})}
	o.NoImages = true
	x.Read(plain.content, 2)
	plain.takeContent(x, 0, o)
	return plain
}

// ForModel returns the options for a model that a provider offers. Cloud providers sell models of others, some with
// narrower limits.
func ForModel(provider, model string) Options {
	maker, _ := catalogue.Maker(provider, model)
	o := For(maker)
	switch provider {
	case "bedrock": // 20 images, and 20 MB a request
		o.Images.Count, o.Images.Total = 20, 14<<20
	case "azure": // it may be chat completions
		o.IDLength = For("openai-compatible").IDLength
	}
	return o
}

// For returns the options for a provider's own models, as far as its documentation states limits. An unknown provider
// is sent none of the model's thinking.
//
// Limits on all images together leave room for the rest of the request: 32 MB with Anthropic, 50 MB with OpenAI, 20 MB
// with Google.
func For(provider string) Options {
	switch provider {
	case "anthropic":
		return Options{Images: ImageLimits{Count: 100, Bytes: 5 << 20, Total: 20 << 20, Side: 8000, Many: 20, ManySide: 2000}}
	case "openai":
		return Options{
			DropThinking:  true,
			KeepReasoning: true,
			NameLength:    64,
			IDLength:      64,
			Images:        ImageLimits{Count: 500, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "openai-compatible":
		// Chat completions of OpenAI itself accepted ids of 40 bytes for years.
		return Options{
			DropThinking: true,
			KeepDetails:  true,
			NameLength:   64,
			IDLength:     40,
			Images:       ImageLimits{Count: 100, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "google":
		return Options{
			DropThinking:   true,
			KeepSignatures: true,
			NameLength:     64,
			NameLetter:     true,
			Images:         ImageLimits{Count: 900, Bytes: 7 << 20, Total: 14 << 20, NoGIF: true},
		}
	}
	return Options{DropThinking: true}
}

// Options describe what the model accepts.
type Options struct {
	DropThinking  bool // leave out signed thinking: the model changed, or is not Anthropic's
	KeepReasoning bool // send back encrypted reasoning: OpenAI's models require their own
	// KeepSignatures sends the signatures of thoughts back: Google's models refuse their own calls without them.
	KeepSignatures bool
	// KeepDetails sends a message's reasoning_details back: a server of chat completions that sends them also
	// requires them.
	KeepDetails bool
	// KeepReasoningContent sends plain reasoning back with each of the assistant's messages, an empty string where
	// none is stored: a server of chat completions that sends reasoning_content refuses calls without it.
	KeepReasoningContent bool
	NoImages             bool // the model accepts no images; a text replaces each

	Images     ImageLimits
	NameLength int  // of a tool's name, in bytes; 0 = 128
	NameLetter bool // a tool's name begins with a letter or an underscore
	IDLength   int  // of a tool call's id, in bytes; 0 = 1024

	left *load // the images of the message that is being checked
}

// name returns the form of a tool's name that can be sent.
func (o Options) name(s string) string {
	limit := cmp.Or(o.NameLength, 128)
	s = safeName(s, "unknown_tool", limit)
	if o.NameLetter && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') {
		s = cut("_"+s, limit)
	}
	return s
}

func (o Options) idLength() int { return cmp.Or(o.IDLength, 1<<10) }
