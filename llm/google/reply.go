package google

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// reply puts a reply together from its events.
type reply struct {
	call wire.Call

	id, model, stop string
	text, thought   []byte
	signature       string
	calls           wire.Calls
	usage           llm.Usage
}

func (r *reply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return nil, false, wire.UnreadableEvent(Name, data)
	}
	if failed, is := esjson.Get(data, "error"); is && esjson.TypeOf(failed) != esjson.TypeNull {
		return nil, false, r.call.ErrorOf(0, data)
	}
	if id, _ := esjson.GetString(data, "responseId"); id != "" {
		r.id = id
	}
	if model, _ := esjson.GetString(data, "modelVersion"); model != "" {
		r.model = model
	}
	var chunks []llm.Chunk
	candidates, _ := esjson.Get(data, "candidates")
	for candidate := range esjson.Array(candidates) {
		content, _ := esjson.Get(candidate, "content")
		parts, _ := esjson.Get(content, "parts")
		for part := range esjson.Array(parts) {
			if c := r.part(part); c != nil {
				chunks = append(chunks, c)
			}
		}
		if reason, _ := esjson.GetString(candidate, "finishReason"); reason != "" {
			r.stop = reason
		}
		break // one was asked for
	}
	feedback, _ := esjson.Get(data, "promptFeedback")
	if reason, _ := esjson.GetString(feedback, "blockReason"); reason != "" && r.stop == "" {
		r.stop = reason
	}
	if usage, is := esjson.Get(data, "usageMetadata"); is && r.count(usage) {
		chunks = append(chunks, llm.UsageReport{Usage: r.usage})
	}
	return chunks, false, nil
}

func (r *reply) part(part []byte) llm.Chunk {
	if s, _ := esjson.GetString(part, "thoughtSignature"); s != "" && r.signature == "" {
		r.signature = s
	}
	if call, is := esjson.Get(part, "functionCall"); is && esjson.TypeOf(call) == esjson.TypeObject {
		return r.addCall(call)
	}
	text, _ := esjson.GetString(part, "text")
	if text == "" {
		return nil
	}
	if thought, _ := esjson.GetBool(part, "thought"); thought {
		r.thought = append(r.thought, text...)
		return llm.ReasoningDelta{Text: text}
	}
	r.text = append(r.text, text...)
	return llm.TextDelta{Text: text}
}

// addCall takes a call, which comes whole. Ids are often left out.
func (r *reply) addCall(call []byte) llm.Chunk {
	id, _ := esjson.GetString(call, "id")
	name, _ := esjson.GetString(call, "name")
	args, _ := esjson.Get(call, "args")
	if esjson.TypeOf(args) != esjson.TypeObject {
		args = []byte("{}")
	} else if compact, err := esjson.Compact(nil, args); err == nil {
		args = compact
	}
	delta := r.calls.Begin(int64(r.calls.Len()), id, name, args)
	delta.Input = string(args)
	return delta
}

// count takes over the counts. Thoughts are paid as output; what came from a cache
// is part of the prompt's count.
func (r *reply) count(usage []byte) bool {
	in, _ := esjson.GetInt(usage, "promptTokenCount")
	tools, _ := esjson.GetInt(usage, "toolUsePromptTokenCount")
	cached, _ := esjson.GetInt(usage, "cachedContentTokenCount")
	out, _ := esjson.GetInt(usage, "candidatesTokenCount")
	thoughts, _ := esjson.GetInt(usage, "thoughtsTokenCount")
	in, out = max(in, 0)+max(tools, 0), max(out, 0)+max(thoughts, 0)
	cached = min(max(cached, 0), in)
	next := llm.Usage{Input: in - cached, CacheRead: cached, Output: out}
	changed := next != r.usage
	r.usage = next
	return changed
}

func (r *reply) done() llm.Done {
	d := llm.Done{ID: r.id, Model: r.model, StopReason: r.stopReason(), Usage: r.usage}
	if len(r.thought) > 0 {
		d.Blocks = append(d.Blocks, wire.ReasoningBlock(string(r.thought)))
	}
	if len(r.text) > 0 {
		d.Blocks = append(d.Blocks, wire.TextBlock(string(r.text)))
	}
	r.calls.Finish(&d)
	if r.signature != "" && len(d.Blocks) > 0 {
		var o esjson.Object
		o.String("type", "thoughtSignature")
		o.String("thoughtSignature", r.signature)
		d.Blocks = append(d.Blocks, o.Bytes())
	}
	return d
}

// stopReason translates Google's finish reasons to llm's.
func (r *reply) stopReason() string {
	switch r.stop {
	case "STOP":
		if r.calls.Len() > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "MAX_TOKENS":
		return "max_tokens"
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "OTHER":
		return "refusal"
	}
	return r.stop
}
