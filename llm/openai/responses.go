package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// responsesBody builds a request of the Responses API that leaves nothing at the
// provider.
func (p *Provider) responsesBody(req llm.Request) *wire.Body {
	// Models that do not think refuse the thoughts of another one.
	history, thinks := &p.thoughtless, canReason(req.Model)
	var include, reasoning []byte
	if thinks {
		history, include = &p.history, esjson.Strings([]string{"reasoning.encrypted_content"})
		reasoning = esjson.ObjectOf("effort", esjson.Given(p.Effort), "summary", "auto")
	}
	head := esjson.ObjectOf("model", req.Model, "stream", true, "store", false, "include", include,
		"reasoning", reasoning, "max_output_tokens", esjson.Given(max(req.MaxTokens, 0)),
		"instructions", esjson.Given(req.System),
		"tools", wire.Tools(req.Tools, func(_ int, t llm.ToolSpec) []byte {
			// Strict schemas demand that every member is required; ours have optional ones.
			return esjson.ObjectOf(append([]any{"type", "function", "strict", false}, function(t)...)...)
		}))
	body := wire.NewBody(head, "input", 2*len(req.Messages)+2)
	p.last.Store(history)
	history.Add(body, req.Messages, func(m llm.Message) []byte { return responsesItems(m, thinks) })
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
	text: func(text []byte) []byte { return esjson.ObjectOf("type", "input_text", "text", text) },
	image: func(url []byte) []byte {
		return esjson.ObjectOf("type", "input_image", "detail", "auto", "image_url", url)
	},
	result: func(id, text []byte) []byte {
		return esjson.ObjectOf("type", "function_call_output", "call_id", id, "output", text)
	},
	words: func(parts []byte) []byte {
		return esjson.ObjectOf("type", "message", "role", "user", "content", parts)
	},
}

// responsesItems is one stored message as input items.
func responsesItems(m llm.Message, thoughts bool) []byte {
	if m.Role != "assistant" {
		return responsesForm.user(wire.Blocks(m.Content))
	}
	var items [][]byte
	var text []byte
	flushText := func() {
		if text != nil {
			said := esjson.List([][]byte{esjson.ObjectOf("type", "output_text", "text", text)})
			items = append(items, esjson.ObjectOf("type", "message", "role", "assistant", "content", said))
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
				// Its summary was for the user and is not sent back.
				id := esjson.Member(b.Raw, "id")
				if esjson.TypeOf(id) != esjson.TypeString {
					id = nil
				}
				items = append(items, esjson.ObjectOf("type", "reasoning", "id", id,
					"summary", []byte("[]"), "encrypted_content", b.Encrypted))
			}
		case "tool_use":
			flushText()
			items = append(items, esjson.ObjectOf("type", "function_call", "call_id", b.ID, "name", b.Name,
				"arguments", callArguments(b)))
		}
	}
	flushText()
	return bytes.Join(items, []byte{','})
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
		response := esjson.Member(data, "response")
		r.Note(response, "id", "model")
		r.Stop = cmp.Or(esjson.TextOf(esjson.Member(response, "incomplete_details"), "reason"), r.Stop)
		r.Usage = usageOf(esjson.Member(response, "usage"))
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
		r.thoughts = append(r.thoughts, esjson.ObjectOf("type", "reasoning", "summary", []byte("[]"),
			"encrypted_content", encrypted, "id", esjson.Given(esjson.TextOf(item, "id"))))
	}
}

func (r *responsesReply) done() llm.Done {
	if len(r.thoughts) == 0 {
		r.thoughts = r.Thoughts()
	}
	return r.Done(stopReason(r.Stop, r.Calls.Len() > 0), r.thoughts)
}
