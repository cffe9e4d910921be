package openai

import (
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
		b = append(b, `,"max_tokens":`...)
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	if p.Effort != "" {
		b = append(b, `,"reasoning_effort":`...)
		b = esjson.Quote(b, p.Effort)
	}
	for i, t := range req.Tools {
		b = append(b, separator(i, `,"tools":[`)...)
		b = append(b, `{"type":"function","function":{"name":`...)
		b = appendFunction(b, t, "parameters")
		b = append(b, `}}`...)
	}
	if len(req.Tools) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if req.System != "" {
		b = append(b, `{"role":"system","content":`...)
		b = esjson.Quote(b, req.System)
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
			calls = append(calls, separator(len(calls), "")...)
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
