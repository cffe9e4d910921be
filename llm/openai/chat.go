package openai

import (
	"bytes"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// chatBody builds a request of chat completions.
func (p *Provider) chatBody(req llm.Request) *wire.Body {
	head := esjson.ObjectOf("model", req.Model, "stream", true,
		"stream_options", esjson.ObjectOf("include_usage", true), "max_tokens", esjson.Given(max(req.MaxTokens, 0)),
		"reasoning_effort", esjson.Given(p.Effort),
		"tools", wire.Tools(req.Tools, func(_ int, t llm.ToolSpec) []byte {
			return esjson.ObjectOf("type", "function", "function", esjson.ObjectOf(function(t)...))
		}))
	body := wire.NewBody(head, "messages", 2*len(req.Messages)+3)
	if req.System != "" {
		body.Add(append(esjson.ObjectOf("role", "system", "content", req.System), ','))
	}
	p.before.Store(int32(min(len(req.System), 1)))
	p.history.Add(body, req.Messages, chatMessages)
	body.Add([]byte(`]}`))
	return body
}

// chatMessages turns a stored message into messages of chat completions, where each tool result is a message of its own.
func chatMessages(m llm.Message) []byte {
	if m.Role == "assistant" {
		return chatAssistant(wire.Blocks(m.Content), m.ReasoningDetails, m.ReasoningContent)
	}
	if esjson.TypeOf(m.Content) == esjson.TypeString {
		return esjson.ObjectOf("role", "user", "content", m.Content)
	}
	return chatForm.user(wire.Blocks(m.Content))
}

var chatForm = userForm{
	text: func(text []byte) []byte { return esjson.ObjectOf("type", "text", "text", text) },
	image: func(url []byte) []byte {
		return esjson.ObjectOf("type", "image_url", "image_url", esjson.ObjectOf("url", url))
	},
	result: func(id, text []byte) []byte {
		return esjson.ObjectOf("role", "tool", "tool_call_id", id, "content", text)
	},
	words: func(parts []byte) []byte { return esjson.ObjectOf("role", "user", "content", parts) },
}

func chatAssistant(blocks []wire.Block, details, reasoning []byte) []byte {
	text := []byte("null")
	var said []byte
	var calls [][]byte
	for _, b := range blocks {
		switch b.Type {
		case "text":
			said = joinStrings(said, b.Text)
			text = said
		case "tool_use":
			calls = append(calls, esjson.ObjectOf("id", b.ID, "type", "function",
				"function", esjson.ObjectOf("name", b.Name, "arguments", callArguments(b))))
		}
	}
	if said == nil && calls == nil {
		return nil // nothing but reasoning: the message is left out
	}
	var list []byte
	if calls != nil {
		list = esjson.List(calls)
	}
	return esjson.ObjectOf("role", "assistant", "content", text, "tool_calls", list,
		"reasoning_details", details, "reasoning_content", reasoning)
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
