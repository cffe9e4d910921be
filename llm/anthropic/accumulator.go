package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// event is the union of all stream events. Texts stay raw: encoding/json would
// replace a lone surrogate, and a signature covers the exact text.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       string          `json:"type"`
		Text       json.RawMessage `json:"text"`
		Thinking   json.RawMessage `json:"thinking"`
		Signature  json.RawMessage `json:"signature"`
		Partial    json.RawMessage `json:"partial_json"`
		StopReason string          `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage has pointers because message_delta repeats only some of the counts.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
}

func (u usage) into(t *llm.Usage) (changed bool) {
	for _, f := range []struct {
		from *int64
		to   *int64
	}{{u.Input, &t.Input}, {u.Output, &t.Output}, {u.CacheRead, &t.CacheRead}, {u.CacheWrite, &t.CacheWrite}} {
		if f.from != nil && *f.from >= 0 && *f.from != *f.to {
			*f.to = *f.from
			changed = true
		}
	}
	return changed
}

// block is one content block as it grows.
type block struct {
	typ       string
	raw       json.RawMessage // as it was started
	text      []byte          // text, thinking or input JSON so far
	signature []byte
	call      int // which call of the reply, for tool_use
	id, name  string
}

// accumulator puts a reply together from its events. It has no clock and no
// connection, and takes any bytes: what it cannot read is an error, never a panic.
type accumulator struct {
	id, model string
	stop      string
	usage     llm.Usage
	blocks    []*block
	open      map[int]*block
	ids       map[string]bool // of this reply's calls
	calls     int
}

// add takes one event's data. chunk is what to show, nil for nothing; done says
// that the reply is complete.
func (a *accumulator) add(data []byte) (chunk llm.Chunk, done bool, err error) {
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return nil, false, &llm.Error{Provider: Name, Kind: llm.Server, Message: "an event of the stream cannot be read: " + err.Error(), Err: err}
	}
	switch ev.Type {
	case "message_start":
		a.id, a.model = ev.Message.ID, ev.Message.Model
		ev.Message.Usage.into(&a.usage)
	case "content_block_start":
		return a.start(ev.Index, ev.Block), false, nil
	case "content_block_delta":
		return a.delta(ev), false, nil
	case "content_block_stop":
		delete(a.open, ev.Index)
	case "message_delta":
		if ev.Delta.StopReason != "" {
			a.stop = ev.Delta.StopReason
		}
		if ev.Usage.into(&a.usage) {
			return llm.UsageReport{Usage: a.usage}, false, nil
		}
	case "message_stop":
		return nil, true, nil
	case "error":
		typ, message := errorParts(data)
		if message == "" {
			message = wire.Shorten(string(data), 500)
		}
		return nil, false, &llm.Error{Provider: Name, Kind: kindOf(0, typ, message), Message: message}
	}
	return nil, false, nil // pings and what is to come
}

func (a *accumulator) start(index int, raw json.RawMessage) llm.Chunk {
	var head struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Text      json.RawMessage `json:"text"`
		Thinking  json.RawMessage `json:"thinking"`
		Signature json.RawMessage `json:"signature"`
	}
	_ = json.Unmarshal(raw, &head) // a block of another shape is kept raw
	b := &block{typ: head.Type, raw: append(json.RawMessage(nil), raw...)}
	if a.open == nil {
		a.open = map[int]*block{}
	}
	a.open[index] = b
	a.blocks = append(a.blocks, b)
	switch head.Type {
	case "text":
		if s := unquote(head.Text); s != "" {
			b.text = append(b.text, s...)
			return llm.TextDelta{Text: s}
		}
	case "thinking":
		b.signature = append(b.signature, unquote(head.Signature)...)
		if s := unquote(head.Thinking); s != "" {
			b.text = append(b.text, s...)
			return llm.ReasoningDelta{Text: s}
		}
	case "tool_use":
		b.id, b.name, b.call = a.newID(SafeID(head.ID)), head.Name, a.calls
		a.calls++
		return llm.ToolDelta{Index: b.call, ID: b.id, Name: b.name}
	}
	return nil
}

// newID keeps the calls of a reply apart. Servers that imitate the API repeat ids or
// leave them out; Roo then drops a call, and the model waits for what never ran.
func (a *accumulator) newID(id string) string {
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	if id == "" {
		id = fmt.Sprintf("call_%d", a.calls)
	}
	free := id
	for n := 2; a.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	a.ids[free] = true
	return free
}

func (a *accumulator) delta(ev event) llm.Chunk {
	b := a.open[ev.Index]
	if b == nil {
		return nil
	}
	switch ev.Delta.Type {
	case "text_delta":
		s := unquote(ev.Delta.Text)
		b.text = append(b.text, s...)
		if s != "" && b.typ == "text" {
			return llm.TextDelta{Text: s}
		}
	case "thinking_delta":
		s := unquote(ev.Delta.Thinking)
		b.text = append(b.text, s...)
		if s != "" && b.typ == "thinking" {
			return llm.ReasoningDelta{Text: s}
		}
	case "signature_delta":
		b.signature = append(b.signature, unquote(ev.Delta.Signature)...)
	case "input_json_delta":
		s := unquote(ev.Delta.Partial)
		b.text = append(b.text, s...)
		if s != "" && b.typ == "tool_use" {
			return llm.ToolDelta{Index: b.call, ID: b.id, Input: s}
		}
	}
	return nil
}

// unquote reads a JSON string; anything else is empty.
func unquote(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	s, err := esjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// errorParts reads {"error":{"type","message"}}, in a body or an event.
func errorParts(data []byte) (typ, message string) {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &e) // a proxy's page is not JSON: both stay empty
	return e.Error.Type, e.Error.Message
}
