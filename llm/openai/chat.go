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

func separator(i int, head string) string {
	if i == 0 {
		return head
	}
	return ","
}

// appendFunction describes a tool to a model, from its name on.
func appendFunction(b []byte, t llm.ToolSpec, schema string) []byte {
	b = esjson.Quote(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = esjson.Quote(b, t.Description)
	}
	b = append(b, `,"`+schema+`":`...)
	if len(t.Schema) == 0 {
		return append(b, `{"type":"object","properties":{}}`...)
	}
	return append(b, t.Schema...)
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

// userForm is how one of the two APIs writes what a user's message holds: the JSON around it.
type userForm struct {
	text, image [2]string
	result      [3]string // before, between and behind the call's id and the text
	words       [2]string // around texts and images
}

var chatForm = userForm{
	text:   [2]string{`{"type":"text","text":`, `}`},
	image:  [2]string{`{"type":"image_url","image_url":{"url":`, `}}`},
	result: [3]string{`{"role":"tool","tool_call_id":`, `,"content":`, `}`},
	words:  [2]string{`{"role":"user","content":[`, `]}`},
}

// user writes results first, each by itself, then texts and images, those of results among them.
func (f userForm) user(blocks []wire.Block) []byte {
	var out, parts []byte
	part := func(form [2]string, value []byte) {
		parts = append(parts, separator(len(parts), "")...)
		parts = append(append(append(parts, form[0]...), value...), form[1]...)
	}
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			text, images := b.Result()
			out = append(append(out, separator(len(out), "")...), f.result[0]...)
			out = append(append(out, b.ID...), f.result[1]...)
			out = append(append(out, text...), f.result[2]...)
			for _, image := range images {
				part(f.image, image.DataURL())
			}
		case "text":
			part(f.text, b.Text)
		case "image":
			part(f.image, b.DataURL())
		}
	}
	if len(parts) > 0 {
		out = append(append(out, separator(len(out), "")...), f.words[0]...)
		out = append(append(out, parts...), f.words[1]...)
	}
	return out
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

// callArguments is a call's input as OpenAI wants it: a string that holds JSON.
func callArguments(b wire.Block) []byte { return esjson.Quote(nil, string(b.Object())) }

// joinStrings is two JSON strings as one.
func joinStrings(a, b []byte) []byte {
	if len(a) < 2 {
		return b
	}
	return append(a[:len(a)-1:len(a)-1], b[1:]...)
}
