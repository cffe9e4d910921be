package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// chatReply puts a reply of chat completions together. Servers differ in what they
// send; unknown events and members are ignored.
type chatReply struct {
	call   wire.Call
	server string // the server and the model, as Done.ReasoningFrom has it

	id, model, stop string
	contents        bool // reasoning came as reasoning_content
	text, thought   []byte
	details         details
	calls           calls
	usage           llm.Usage
}

func (r *chatReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		if r.stop == "" && len(r.text) == 0 && len(r.calls.list) == 0 {
			return nil, false, &llm.Error{Provider: r.call.Provider, Kind: llm.Cut, Message: "the stream ended before the reply did"}
		}
		return nil, true, nil
	}
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.call.Provider, data)
	}
	if failed, is := esjson.Get(data, "error"); is && esjson.TypeOf(failed) != esjson.TypeNull {
		return nil, false, r.call.ErrorOf(0, data)
	}
	if id, _ := esjson.GetString(data, "id"); id != "" {
		r.id = id
	}
	if model, _ := esjson.GetString(data, "model"); model != "" {
		r.model = model
	}
	var chunks []llm.Chunk
	choices, _ := esjson.Get(data, "choices")
	for choice := range esjson.Array(choices) {
		chunks = append(chunks, r.choice(choice)...)
		break // one was asked for
	}
	if usage, is := esjson.Get(data, "usage"); is && r.count(usage) {
		chunks = append(chunks, llm.UsageReport{Usage: r.usage})
	}
	return chunks, false, nil
}

func (r *chatReply) choice(choice []byte) []llm.Chunk {
	var chunks []llm.Chunk
	delta, _ := esjson.Get(choice, "delta")
	sent, _ := esjson.Get(delta, "reasoning_details")
	thought := r.details.add(sent)
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s, _ := esjson.GetString(delta, name); s != "" {
			thought = s
			r.contents = r.contents || name == "reasoning_content"
			break // some servers write it twice, under both names
		}
	}
	if thought != "" {
		r.thought = append(r.thought, thought...)
		chunks = append(chunks, llm.ReasoningDelta{Text: thought})
	}
	for _, name := range []string{"content", "refusal"} {
		if s, _ := esjson.GetString(delta, name); s != "" {
			r.text = append(r.text, s...)
			chunks = append(chunks, llm.TextDelta{Text: s})
			if name == "refusal" {
				r.stop = "refusal"
			}
		}
	}
	list, _ := esjson.Get(delta, "tool_calls")
	for call := range esjson.Array(list) {
		index, indexed := esjson.GetInt(call, "index")
		id, _ := esjson.GetString(call, "id")
		f, _ := esjson.Get(call, "function")
		name, _ := esjson.GetString(f, "name")
		arguments, _ := esjson.GetString(f, "arguments")
		if object, is := esjson.Get(f, "arguments"); is && esjson.TypeOf(object) == esjson.TypeObject {
			arguments = string(object) // servers that forget the quotes
		}
		if !indexed {
			index = r.calls.guessIndex(id, name)
		}
		chunks = append(chunks, r.calls.add(index, id, name, arguments))
	}
	if reason, _ := esjson.GetString(choice, "finish_reason"); reason != "" && r.stop != "refusal" {
		r.stop = reason
	}
	return chunks
}

// count takes over the counts.
func (r *chatReply) count(usage []byte) bool {
	if esjson.TypeOf(usage) != esjson.TypeObject {
		return false
	}
	next := usageOf(usage)
	changed := next != r.usage
	r.usage = next
	return changed
}

func (r *chatReply) done() llm.Done {
	d := llm.Done{ID: r.id, Model: r.model, StopReason: stopReason(r.stop, len(r.calls.list) > 0), Usage: r.usage}
	if d.ReasoningDetails = r.details.array(); d.ReasoningDetails == nil && len(r.thought) > 0 {
		d.Blocks = append(d.Blocks, thoughtBlock(string(r.thought)))
		if r.contents {
			d.ReasoningFrom = r.server
		}
	}
	d.Blocks = append(d.Blocks, textBlocks(r.text)...)
	calls, malformed := r.calls.blocks()
	d.Blocks, d.Malformed = append(d.Blocks, calls...), malformed
	return d
}

// stopReason translates OpenAI's stop reasons to llm's.
func stopReason(word string, calls bool) string {
	switch word {
	case "tool_calls", "function_call":
		return "tool_use"
	case "stop", "", "completed":
		if calls {
			return "tool_use" // some servers always send "stop"
		}
		return "end_turn"
	case "length", "max_output_tokens":
		return "max_tokens"
	case "content_filter", "refusal":
		return "refusal"
	}
	return word
}

// thoughtBlock is plain reasoning as Roo keeps it.
func thoughtBlock(text string) json.RawMessage {
	var o esjson.Object
	o.String("type", "reasoning")
	o.String("text", text)
	o.Raw("summary", []byte("[]"))
	return o.Bytes()
}

func textBlocks(text []byte) []json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	var o esjson.Object
	o.String("type", "text")
	o.String("text", string(text))
	return []json.RawMessage{o.Bytes()}
}

// calls are the tool calls of a reply as they grow, in the order they began.
type calls struct {
	list  []*callParts
	index map[int64]*callParts
	ids   map[string]bool
}

type callParts struct {
	number   int
	sent     string // the id as the server wrote it
	id, name string
	input    []byte
}

// guessIndex finds the call that a delta without an index belongs to: a new one when the
// delta has an id or a name, else the last.
func (c *calls) guessIndex(id, name string) int64 {
	n := int64(len(c.list))
	if n > 0 && (id == "" || id == c.list[n-1].sent) && (name == "" || name == c.list[n-1].name) {
		return n - 1
	}
	return n
}

func (c *calls) add(index int64, id, name, input string) llm.ToolDelta {
	p := c.index[index]
	if p != nil && id != "" && id != p.sent && name != "" {
		p = nil // servers that give every call the index 0
	}
	if p == nil {
		p = &callParts{number: len(c.list), sent: id, id: c.newID(id), name: name}
		if c.index == nil {
			c.index = map[int64]*callParts{}
		}
		c.index[index] = p
		c.list = append(c.list, p)
	} else if p.name == "" {
		p.name = name
	}
	p.input = append(p.input, input...)
	return llm.ToolDelta{Index: p.number, ID: p.id, Name: name, Input: input}
}

// newID keeps the calls of a reply apart: servers repeat ids or leave them out.
func (c *calls) newID(id string) string {
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	if id == "" {
		id = fmt.Sprintf("call_%d", len(c.list))
	}
	free := id
	for n := 2; c.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	c.ids[free] = true
	return free
}

// blocks are the calls as they are stored. Input that is no JSON object becomes {}, and
// malformed holds its text.
func (c *calls) blocks() (out []json.RawMessage, malformed map[string]string) {
	for _, p := range c.list {
		input := bytes.TrimSpace(p.input)
		switch {
		case len(input) == 0:
			input = []byte("{}")
		case esjson.Valid(input) && esjson.TypeOf(input) == esjson.TypeObject:
			if compact, err := esjson.Compact(nil, input); err == nil {
				input = compact
			}
		default:
			if malformed == nil {
				malformed = map[string]string{}
			}
			malformed[p.id], input = string(p.input), []byte("{}")
		}
		var o esjson.Object
		o.String("type", "tool_use")
		o.String("id", p.id)
		o.String("name", p.name)
		o.Raw("input", input)
		out = append(out, o.Bytes())
	}
	return out, malformed
}
