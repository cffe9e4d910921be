package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// Reply holds what the replies of all APIs have in common while they grow.
type Reply struct {
	Call            Call // makes errors from the provider's events
	ID, Model, Stop string
	Text, Thought   []byte
	Calls           Calls
	Usage           llm.Usage
}

// Note sets the reply's id and model, which servers repeat, leave out or send late.
func (r *Reply) Note(data []byte, id, model string) {
	r.ID = cmp.Or(esjson.TextOf(data, id), r.ID)
	r.Model = cmp.Or(esjson.TextOf(data, model), r.Model)
}

// Say adds visible text. Empty text gives no chunk.
func (r *Reply) Say(text string) []llm.Chunk {
	if text == "" {
		return nil
	}
	r.Text = append(r.Text, text...)
	return []llm.Chunk{llm.TextDelta{Text: text}}
}

// Think adds reasoning. Empty text gives no chunk.
func (r *Reply) Think(text string) []llm.Chunk {
	if text == "" {
		return nil
	}
	r.Thought = append(r.Thought, text...)
	return []llm.Chunk{llm.ReasoningDelta{Text: text}}
}

// Count sets the counts, and reports those that changed.
func (r *Reply) Count(u llm.Usage) []llm.Chunk {
	if u == r.Usage {
		return nil
	}
	r.Usage = u
	return []llm.Chunk{llm.UsageReport{Usage: u}}
}

// Failed returns the error that an event holds; nil when it holds none.
func (r *Reply) Failed(event []byte) error {
	if failed, is := esjson.Get(event, "error"); is && esjson.TypeOf(failed) != esjson.TypeNull {
		return r.Call.ErrorOf(0, event)
	}
	return nil
}

// Done returns the complete reply in Roo's order: thoughts, one text, other blocks, calls.
func (r *Reply) Done(stop string, thoughts []json.RawMessage, other ...json.RawMessage) llm.Done {
	d := llm.Done{ID: r.ID, Model: r.Model, StopReason: stop, Usage: r.Usage, Blocks: thoughts}
	if len(r.Text) > 0 {
		d.Blocks = append(d.Blocks, TextBlock(string(r.Text)))
	}
	d.Blocks = append(d.Blocks, other...)
	r.Calls.Finish(&d)
	return d
}

// Thoughts returns the plain reasoning as a block; nil when there is none.
func (r *Reply) Thoughts() []json.RawMessage {
	if len(r.Thought) == 0 {
		return nil
	}
	return []json.RawMessage{ReasoningBlock(string(r.Thought))}
}

// TextBlock returns text in its stored form.
func TextBlock(text string) json.RawMessage { return esjson.ObjectOf("type", "text", "text", text) }

// ReasoningBlock returns plain reasoning in Roo's form.
func ReasoningBlock(text string) json.RawMessage {
	return esjson.ObjectOf("type", "reasoning", "text", text, "summary", []byte("[]"))
}

// CallBlock returns a call of a tool in its stored form.
func CallBlock(id, name string, input []byte) json.RawMessage {
	return esjson.ObjectOf("type", "tool_use", "id", id, "name", name, "input", input)
}

// Calls are the tool calls of a reply while they grow, in the order in which they began. A server's number for a call
// means the last call that began with it.
type Calls struct {
	list  []*replyCall
	index map[int64]*replyCall
	ids   map[string]bool
}

type replyCall struct {
	number   int
	sent     string // the id as the server sent it
	id, name string
	whole    []byte // the input that came with the call's beginning
	input    []byte // the pieces of the input, which replace whole
}

// Len returns the number of calls that have begun.
func (c *Calls) Len() int { return len(c.list) }

// Has reports whether a call with that number has begun.
func (c *Calls) Has(index int64) bool { return c.index[index] != nil }

// Guess finds the call that a delta without a number belongs to: a new one when the delta has another id or name than
// the last call, or no id, a name, and input although the last call's input is whole; else the last.
func (c *Calls) Guess(id, name, input string) int64 {
	n := int64(len(c.list))
	if n > 0 && (id == "" || id == c.list[n-1].sent) &&
		(name == "" || name == c.list[n-1].name && (id != "" || input == "" || !esjson.Valid(c.list[n-1].input))) {
		return n - 1
	}
	return n
}

// Begin begins a call. whole is its input, if that comes at once.
func (c *Calls) Begin(index int64, id, name string, whole []byte) llm.ToolDelta {
	p := &replyCall{number: len(c.list), sent: id, id: c.newID(id), name: name, whole: whole}
	if c.index == nil {
		c.index = map[int64]*replyCall{}
	}
	c.index[index] = p
	c.list = append(c.list, p)
	return llm.ToolDelta{Index: p.number, ID: p.id, Name: name}
}

// Add adds a delta of a call, and begins the call if this is its first delta.
func (c *Calls) Add(index int64, id, name, input string) llm.ToolDelta {
	p := c.index[index]
	switch {
	case p == nil, name != "" && (id != p.sent && id != "" || id+p.sent == "" && input != "" && esjson.Valid(p.input)):
		// Some servers give every call the index 0.
		c.Begin(index, id, name, nil)
		p = c.index[index]
	case p.name == "":
		p.name = name
	}
	p.input = append(p.input, input...)
	return llm.ToolDelta{Index: p.number, ID: p.id, Name: name, Input: input}
}

// Replace replaces the pieces of an input by the complete input.
func (c *Calls) Replace(index int64, input string) { c.index[index].input = []byte(input) }

// newID returns an id that differs from those of the reply's other calls. Servers that imitate an API repeat ids or
// leave them out; Roo then drops a call, and the model waits for a result that never comes.
func (c *Calls) newID(id string) string {
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	id = cmp.Or(id, fmt.Sprintf("call_%d", len(c.list)))
	free := id
	for n := 2; c.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	c.ids[free] = true
	return free
}

// Finish adds the calls to a reply, in their stored form. Input that is no JSON object cannot be stored or sent back:
// it becomes {}, and Malformed holds its text.
func (c *Calls) Finish(d *llm.Done) {
	for i, p := range c.list {
		// Two pieces may hold the halves of one character. A half alone is no UTF-8.
		text := bytes.ToValidUTF8([]byte(esjson.Text(esjson.Quote(nil, string(p.input)))), []byte("\uFFFD"))
		all := cmp.Or(string(bytes.TrimSpace(text)), string(bytes.TrimSpace(p.whole)), "{}")
		input, _ := esjson.Compact(nil, []byte(all)) // nil with an error
		// A limit of length may cut the last call before its input begins.
		cut := d.StopReason == "max_tokens" && i == len(c.list)-1 && len(p.input) == 0 && all == "{}"
		if esjson.TypeOf(input) != esjson.TypeObject || cut {
			if d.Malformed == nil {
				d.Malformed = map[string]string{}
			}
			d.Malformed[p.id], input = string(p.input), []byte("{}")
		}
		d.Blocks = append(d.Blocks, CallBlock(p.id, p.name, input))
	}
}

// ErrTooLarge is returned for an event, or a reply, over the limit. Such a stream is broken or hostile; the largest real
// event of a model is a few megabytes.
var ErrTooLarge = errors.New("it is too large")

// MaxEvent is the largest event that Events accepts, in bytes.
const MaxEvent = 64 << 20

// MaxReply is the largest reply, as the bytes of its events: four times what 128,000 tokens need.
const MaxReply = 2 * MaxEvent

// EventReader reads the events of a stream. Next returns the data of the next event, which is valid until the next call,
// and io.EOF at the end of the stream.
type EventReader interface{ Next() ([]byte, error) }

// ErrDamaged is returned for a frame whose checksum or shape is wrong.
var ErrDamaged = errors.New("the stream is damaged")

// Events reads server-sent events. Lines end in LF or CRLF; a lone CR does not
// end a line (the standard would allow it, no provider sends it, and supporting it
// would delay a line that ends exactly where a packet ends).
type Events struct {
	lines *bufio.Scanner
	data  []byte
	max   int
	begun bool
}

// NewEvents returns a reader of the events in r.
func NewEvents(r io.Reader) *Events { return newEvents(r, MaxEvent) }

func newEvents(r io.Reader, most int) *Events {
	e := &Events{lines: bufio.NewScanner(r), max: most}
	e.lines.Buffer(make([]byte, 0, 8<<10), most+2)
	e.lines.Split(wholeLine)
	return e
}

// wholeLine splits a text into its lines. It drops an unfinished last line, which was cut.
func wholeLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if n := bytes.IndexByte(data, '\n'); n >= 0 {
		return n + 1, bytes.TrimSuffix(data[:n], []byte{'\r'}), nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Next returns the data of the next event that has any: its data lines, joined by a line feed. It skips the type of
// the event, because the data of all providers names its own type. At the end of the stream it returns io.EOF. It
// still returns an event without the closing empty line when the event's last line is complete, because some proxies
// drop the last byte. Other errors are the reader's own.
func (e *Events) Next() ([]byte, error) {
	e.data = e.data[:0]
	any := false
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if !e.begun {
			line, e.begun = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), true
		}
		if len(line) == 0 {
			if any {
				return e.data, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		if string(name) != "data" {
			continue
		}
		if any {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, bytes.TrimPrefix(value, []byte{' '})...)
		any = true
		if len(e.data) > e.max {
			return nil, fmt.Errorf("read event: %w (over %d bytes)", ErrTooLarge, e.max)
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("read event: %w (over %d bytes)", ErrTooLarge, e.max)
	case err != nil:
		return nil, err
	case any:
		return e.data, nil
	}
	return nil, io.EOF
}
