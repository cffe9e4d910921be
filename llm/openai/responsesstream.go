package openai

import (
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// responsesReply puts a reply of the Responses API together.
type responsesReply struct {
	call wire.Call

	id, model, stop string
	text, thought   []byte
	thoughts        []json.RawMessage // reasoning items, encrypted
	calls           wire.Calls
	usage           llm.Usage
}

func (r *responsesReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.call.Provider, data)
	}
	typ, _ := esjson.GetString(data, "type")
	index, _ := esjson.GetInt(data, "output_index")
	delta, _ := esjson.GetString(data, "delta")
	item, _ := esjson.Get(data, "item")
	switch typ {
	case "response.created", "response.in_progress":
		response, _ := esjson.Get(data, "response")
		r.id, _ = esjson.GetString(response, "id")
		r.model, _ = esjson.GetString(response, "model")
	case "response.output_text.delta", "response.refusal.delta":
		if typ == "response.refusal.delta" {
			r.stop = "refusal"
		}
		if delta != "" {
			r.text = append(r.text, delta...)
			return []llm.Chunk{llm.TextDelta{Text: delta}}, false, nil
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.showThought(delta), false, nil
	case "response.reasoning_summary_part.added":
		if len(r.thought) > 0 {
			return r.showThought("\n\n"), false, nil
		}
	case "response.output_item.added":
		if kind, _ := esjson.GetString(item, "type"); kind == "function_call" {
			id, _ := esjson.GetString(item, "call_id")
			name, _ := esjson.GetString(item, "name")
			return []llm.Chunk{r.calls.Add(index, id, name, "")}, false, nil
		}
	case "response.function_call_arguments.delta":
		if r.calls.Has(index) && delta != "" {
			return []llm.Chunk{r.calls.Add(index, "", "", delta)}, false, nil
		}
	case "response.output_item.done":
		r.item(index, item)
	case "response.completed", "response.incomplete":
		response, _ := esjson.Get(data, "response")
		r.end(response)
		return []llm.Chunk{llm.UsageReport{Usage: r.usage}}, true, nil
	case "response.failed":
		response, _ := esjson.Get(data, "response")
		return nil, false, r.call.ErrorOf(0, response)
	case "error":
		return nil, false, r.call.ErrorOf(0, data)
	}
	return nil, false, nil // other progress events, and events of newer versions
}

func (r *responsesReply) showThought(text string) []llm.Chunk {
	if text == "" {
		return nil
	}
	r.thought = append(r.thought, text...)
	return []llm.Chunk{llm.ReasoningDelta{Text: text}}
}

// item takes a complete item: it is the truth where deltas were missed.
func (r *responsesReply) item(index int64, item []byte) {
	switch kind, _ := esjson.GetString(item, "type"); kind {
	case "function_call":
		arguments, is := esjson.GetString(item, "arguments")
		switch {
		case r.calls.Has(index) && is:
			r.calls.Replace(index, arguments)
		case !r.calls.Has(index):
			id, _ := esjson.GetString(item, "call_id")
			name, _ := esjson.GetString(item, "name")
			r.calls.Add(index, id, name, arguments)
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
	if id, _ := esjson.GetString(response, "id"); id != "" {
		r.id = id
	}
	if model, _ := esjson.GetString(response, "model"); model != "" {
		r.model = model
	}
	details, _ := esjson.Get(response, "incomplete_details")
	if reason, _ := esjson.GetString(details, "reason"); reason != "" {
		r.stop = reason
	}
	usage, _ := esjson.Get(response, "usage")
	r.usage = usageOf(usage)
}

func (r *responsesReply) done() llm.Done {
	d := llm.Done{ID: r.id, Model: r.model, StopReason: stopReason(r.stop, r.calls.Len() > 0), Usage: r.usage}
	d.Blocks = append(d.Blocks, r.thoughts...)
	if len(r.thoughts) == 0 && len(r.thought) > 0 {
		d.Blocks = append(d.Blocks, wire.ReasoningBlock(string(r.thought)))
	}
	if len(r.text) > 0 {
		d.Blocks = append(d.Blocks, wire.TextBlock(string(r.text)))
	}
	r.calls.Finish(&d)
	return d
}
