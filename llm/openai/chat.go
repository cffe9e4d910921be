package openai

import (
	"bytes"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// chatBody builds a request of chat completions.
func (p *Provider) chatBody(req llm.Request) *wire.Body {
	b := append([]byte(`{"model":`), esjson.Quote(nil, req.Model)...)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if req.MaxTokens > 0 {
		b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(req.MaxTokens), 10)
	}
	if p.Effort != "" {
		b = esjson.Quote(append(b, `,"reasoning_effort":`...), p.Effort)
	}
	b = wire.List(b, `,"tools":[`, req.Tools, func(b []byte, t llm.ToolSpec) []byte {
		return append(appendFunction(append(b, `{"type":"function","function":{"name":`...), t), `}}`...)
	}, `]`)
	b = append(b, `,"messages":[`...)
	if req.System != "" {
		b = esjson.Quote(append(b, `{"role":"system","content":`...), req.System)
		b = append(b, `},`...)
	}
	p.before.Store(int32(min(len(req.System), 1)))
	body := wire.NewBody(2*len(req.Messages) + 2)
	body.Add(b)
	p.history.Add(body, req.Messages, chatMessages)
	body.Add([]byte(`]}`))
	return body
}

// chatMessages is one stored message as the messages that chat completions make of
// it: a result of a tool is a message of its own.
func chatMessages(m llm.Message) []byte {
	if m.Role == "assistant" {
		return chatAssistant(wire.Blocks(m.Content), m.ReasoningDetails, m.ReasoningContent)
	}
	if esjson.TypeOf(m.Content) == esjson.TypeString {
		return append(append([]byte(`{"role":"user","content":`), m.Content...), '}')
	}
	return chatForm.user(wire.Blocks(m.Content))
}

var chatForm = userForm{
	text:   [2]string{`{"type":"text","text":`, `}`},
	image:  [2]string{`{"type":"image_url","image_url":{"url":`, `}}`},
	result: [3]string{`{"role":"tool","tool_call_id":`, `,"content":`, `}`},
	words:  [2]string{`{"role":"user","content":[`, `]}`},
}

func chatAssistant(blocks []wire.Block, details, reasoning []byte) []byte {
	var text, calls []byte
	for _, b := range blocks {
		switch b.Type {
		case "text":
			text = joinStrings(text, b.Text)
		case "tool_use":
			calls = append(calls, separator(len(calls))...)
			calls = append(append(calls, `{"id":`...), b.ID...)
			calls = append(append(calls, `,"type":"function","function":{"name":`...), b.Name...)
			calls = append(append(append(calls, `,"arguments":`...), callArguments(b)...), `}}`...)
		}
	}
	if text == nil && calls == nil {
		return nil // nothing but reasoning: the message is left out
	}
	out := []byte(`{"role":"assistant","content":`)
	if text == nil {
		text = []byte("null")
	}
	out = append(out, text...)
	if calls != nil {
		out = append(append(append(out, `,"tool_calls":[`...), calls...), ']')
	}
	if details != nil {
		out = append(append(out, `,"reasoning_details":`...), details...)
	}
	if reasoning != nil {
		out = append(append(out, `,"reasoning_content":`...), reasoning...)
	}
	return append(out, '}')
}

// chatReply puts a reply of chat completions together. Servers differ in what they
// send; unknown events and members are ignored.
type chatReply struct {
	wire.Reply
	server   string // the server and the model, as Done.ReasoningFrom has it
	contents bool   // reasoning came as reasoning_content
	details  details
}

func (r *chatReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		if r.Stop == "" && len(r.Text) == 0 && r.Calls.Len() == 0 {
			return nil, false, &llm.Error{Provider: r.Call.Provider, Kind: llm.Cut, Message: "the stream ended before the reply did"}
		}
		return nil, true, nil
	}
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.Call.Provider, data)
	}
	if err := r.Failed(data); err != nil {
		return nil, false, err
	}
	r.Note(data, "id", "model")
	var chunks []llm.Chunk
	for choice := range esjson.Array(esjson.Member(data, "choices")) {
		chunks = append(chunks, r.choice(choice)...)
		break // one was asked for
	}
	if usage, is := esjson.Get(data, "usage"); is && esjson.TypeOf(usage) == esjson.TypeObject {
		chunks = append(chunks, r.Count(usageOf(usage))...)
	}
	return chunks, false, nil
}

func (r *chatReply) choice(choice []byte) []llm.Chunk {
	delta, _ := esjson.Get(choice, "delta")
	thought := r.details.add(esjson.Member(delta, "reasoning_details"))
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s, _ := esjson.GetString(delta, name); s != "" {
			thought = s
			r.contents = r.contents || name == "reasoning_content"
			break // some servers write it twice, under both names
		}
	}
	chunks := r.Think(thought)
	refusal, _ := esjson.GetString(delta, "refusal")
	chunks = append(append(chunks, r.Say(esjson.TextOf(delta, "content"))...), r.Say(refusal)...)
	if refusal != "" {
		r.Stop = "refusal"
	}
	for call := range esjson.Array(esjson.Member(delta, "tool_calls")) {
		index, indexed := esjson.GetInt(call, "index")
		id, _ := esjson.GetString(call, "id")
		f, _ := esjson.Get(call, "function")
		name, _ := esjson.GetString(f, "name")
		arguments, _ := esjson.GetString(f, "arguments")
		if object, is := esjson.Get(f, "arguments"); is && esjson.TypeOf(object) == esjson.TypeObject {
			arguments = string(object) // servers that forget the quotes
		}
		if !indexed {
			index = r.Calls.Guess(id, name)
		}
		chunks = append(chunks, r.Calls.Add(index, id, name, arguments))
	}
	if reason, _ := esjson.GetString(choice, "finish_reason"); reason != "" && r.Stop != "refusal" {
		r.Stop = reason
	}
	return chunks
}

func (r *chatReply) done() llm.Done {
	details, thoughts := r.details.array(), r.Thoughts()
	if details != nil {
		thoughts = nil
	}
	d := r.Done(stopReason(r.Stop, r.Calls.Len() > 0), thoughts)
	if d.ReasoningDetails = details; thoughts != nil && r.contents {
		d.ReasoningFrom = r.server
	}
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
