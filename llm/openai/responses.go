package openai

import (
	"encoding/json"
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
		b = strconv.AppendInt(append(b, `,"max_output_tokens":`...), int64(req.MaxTokens), 10)
	}
	if req.System != "" {
		b = esjson.Quote(append(b, `,"instructions":`...), req.System)
	}
	b = wire.List(b, `,"tools":[`, req.Tools, func(b []byte, t llm.ToolSpec) []byte {
		// Strict schemas demand that every member is required; ours have optional ones.
		return append(appendFunction(append(b, `{"type":"function","strict":false,"name":`...), t), '}')
	}, `]`)
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
		out = append(out, separator(len(out))...)
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

// responsesReply puts a reply of the Responses API together.
type responsesReply struct {
	wire.Reply
	thoughts []json.RawMessage // reasoning items, encrypted
}

func (r *responsesReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.Call.Provider, data)
	}
	typ, _ := esjson.GetString(data, "type")
	index, _ := esjson.GetInt(data, "output_index")
	delta, _ := esjson.GetString(data, "delta")
	item, _ := esjson.Get(data, "item")
	switch typ {
	case "response.created", "response.in_progress":
		r.Note(esjson.Member(data, "response"), "id", "model")
	case "response.output_text.delta", "response.refusal.delta":
		if typ == "response.refusal.delta" {
			r.Stop = "refusal"
		}
		return r.Say(delta), false, nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.Think(delta), false, nil
	case "response.reasoning_summary_part.added":
		if len(r.Thought) > 0 {
			return r.Think("\n\n"), false, nil
		}
	case "response.output_item.added":
		if esjson.TextOf(item, "type") == "function_call" {
			name, _ := esjson.GetString(item, "name")
			return []llm.Chunk{r.Calls.Add(index, esjson.TextOf(item, "call_id"), name, "")}, false, nil
		}
	case "response.function_call_arguments.delta":
		if r.Calls.Has(index) && delta != "" {
			return []llm.Chunk{r.Calls.Add(index, "", "", delta)}, false, nil
		}
	case "response.output_item.done":
		r.item(index, item)
	case "response.completed", "response.incomplete":
		r.end(esjson.Member(data, "response"))
		return []llm.Chunk{llm.UsageReport{Usage: r.Usage}}, true, nil
	case "response.failed":
		return nil, false, r.Call.ErrorOf(0, esjson.Member(data, "response"))
	case "error":
		return nil, false, r.Call.ErrorOf(0, data)
	}
	return nil, false, nil // other progress events, and events of newer versions
}

// item takes a complete item: it is the truth where deltas were missed.
func (r *responsesReply) item(index int64, item []byte) {
	switch esjson.TextOf(item, "type") {
	case "function_call":
		arguments, is := esjson.GetString(item, "arguments")
		switch {
		case r.Calls.Has(index) && is:
			r.Calls.Replace(index, arguments)
		case !r.Calls.Has(index):
			r.Calls.Add(index, esjson.TextOf(item, "call_id"), esjson.TextOf(item, "name"), arguments)
		}
	case "reasoning":
		encrypted, is := esjson.Get(item, "encrypted_content")
		if !is || esjson.TypeOf(encrypted) != esjson.TypeString {
			return
		}
		var o esjson.Object
		o.String("type", "reasoning")
		o.Raw("summary", []byte("[]"))
		o.Raw("encrypted_content", encrypted)
		if id, _ := esjson.GetString(item, "id"); id != "" {
			o.String("id", id)
		}
		r.thoughts = append(r.thoughts, o.Bytes())
	}
}

func (r *responsesReply) end(response []byte) {
	r.Note(response, "id", "model")
	if reason, _ := esjson.GetString(esjson.Member(response, "incomplete_details"), "reason"); reason != "" {
		r.Stop = reason
	}
	r.Usage = usageOf(esjson.Member(response, "usage"))
}

func (r *responsesReply) done() llm.Done {
	if len(r.thoughts) == 0 {
		r.thoughts = r.Thoughts()
	}
	return r.Done(stopReason(r.Stop, r.Calls.Len() > 0), r.thoughts)
}
