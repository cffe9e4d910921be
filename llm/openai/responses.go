package openai

import (
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// responsesBody builds a request of the Responses API that leaves nothing at the
// provider.
func (p *Provider) responsesBody(req llm.Request) *wire.Body {
	b := append([]byte(`{"model":`), esjson.Quote(nil, req.Model)...)
	b = append(b, `,"stream":true,"store":false`...)
	if canReason(req.Model) {
		b = append(b, `,"include":["reasoning.encrypted_content"],"reasoning":{`...)
		if p.Effort != "" {
			b = append(b, `"effort":`...)
			b = append(esjson.Quote(b, p.Effort), ',')
		}
		b = append(b, `"summary":"auto"}`...)
	}
	if req.MaxTokens > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	if req.System != "" {
		b = append(b, `,"instructions":`...)
		b = esjson.Quote(b, req.System)
	}
	for i, t := range req.Tools {
		b = append(b, separator(i, `,"tools":[`)...)
		// Strict schemas demand that every member is required; ours have optional ones.
		b = append(b, `{"type":"function","strict":false,"name":`...)
		b = appendFunction(b, t, "parameters")
		b = append(b, '}')
	}
	if len(req.Tools) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"input":[`...)
	body := wire.NewBody(2*len(req.Messages) + 2)
	body.Add(b)
	// Models that do not think refuse the thoughts of another one.
	history := &p.history
	if !canReason(req.Model) {
		history = &p.thoughtless
	}
	p.last.Store(history)
	history.Add(body, req.Messages, func(m llm.Message) []byte { return responsesItems(m, canReason(req.Model)) })
	body.Add([]byte(`]}`))
	return body
}

// canReason reports whether a model thinks before it answers. Other models refuse requests
// for their reasoning.
func canReason(model string) bool {
	for _, family := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6", "codex"} {
		if rest, ok := strings.CutPrefix(model, family); ok {
			return !strings.HasPrefix(rest, "-chat")
		}
	}
	return false
}

var responsesForm = userForm{
	text:   [2]string{`{"type":"input_text","text":`, `}`},
	image:  [2]string{`{"type":"input_image","detail":"auto","image_url":`, `}`},
	result: [3]string{`{"type":"function_call_output","call_id":`, `,"output":`, `}`},
	words:  [2]string{`{"type":"message","role":"user","content":[`, `]}`},
}

// responsesItems is one stored message as input items.
func responsesItems(m llm.Message, thoughts bool) []byte {
	if m.Role != "assistant" {
		return responsesForm.user(wire.Blocks(m.Content))
	}
	var out, text []byte
	item := func(parts ...[]byte) {
		out = append(out, separator(len(out), "")...)
		for _, p := range parts {
			out = append(out, p...)
		}
	}
	flushText := func() {
		if text != nil {
			item([]byte(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`), text, []byte(`}]}`))
			text = nil
		}
	}
	for _, b := range wire.Blocks(m.Content) {
		switch b.Type {
		case "text":
			text = joinStrings(text, b.Text)
		case "reasoning":
			if thoughts && esjson.TypeOf(b.Encrypted) == esjson.TypeString {
				flushText()
				item(reasoningItem(b))
			}
		case "tool_use":
			flushText()
			item([]byte(`{"type":"function_call","call_id":`), b.ID, []byte(`,"name":`), b.Name,
				[]byte(`,"arguments":`), callArguments(b), []byte(`}`))
		}
	}
	flushText()
	return out
}

// reasoningItem is a stored reasoning block as the item that it was received as. Its summary
// was for the user and is not sent back.
func reasoningItem(b wire.Block) []byte {
	out := []byte(`{"type":"reasoning",`)
	if id, ok := esjson.Get(b.Raw, "id"); ok && esjson.TypeOf(id) == esjson.TypeString {
		out = append(append(append(out, `"id":`...), id...), ',')
	}
	out = append(out, `"summary":[],"encrypted_content":`...)
	return append(append(out, b.Encrypted...), '}')
}
