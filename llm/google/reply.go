package google

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// reply puts a reply together from its events.
type reply struct {
	wire.Reply
	signature string
}

func (r *reply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return nil, false, wire.UnreadableEvent(Name, data)
	}
	if err := r.Failed(data); err != nil {
		return nil, false, err
	}
	r.Note(data, "responseId", "modelVersion")
	var chunks []llm.Chunk
	for candidate := range esjson.Array(esjson.Member(data, "candidates")) {
		for part := range esjson.Array(esjson.Member(esjson.Member(candidate, "content"), "parts")) {
			chunks = append(chunks, r.part(part)...)
		}
		if reason, _ := esjson.GetString(candidate, "finishReason"); reason != "" {
			r.Stop = reason
		}
		break // one was asked for
	}
	feedback, _ := esjson.Get(data, "promptFeedback")
	if reason, _ := esjson.GetString(feedback, "blockReason"); reason != "" && r.Stop == "" {
		r.Stop = reason
	}
	if usage, is := esjson.Get(data, "usageMetadata"); is {
		chunks = append(chunks, r.Count(usageOf(usage))...)
	}
	return chunks, false, nil
}

func (r *reply) part(part []byte) []llm.Chunk {
	if s, _ := esjson.GetString(part, "thoughtSignature"); s != "" && r.signature == "" {
		r.signature = s
	}
	if call, is := esjson.Get(part, "functionCall"); is && esjson.TypeOf(call) == esjson.TypeObject {
		return []llm.Chunk{r.addCall(call)}
	}
	text, _ := esjson.GetString(part, "text")
	if esjson.IsTrue(part, "thought") {
		return r.Think(text)
	}
	return r.Say(text)
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
	delta := r.Calls.Begin(int64(r.Calls.Len()), id, name, args)
	delta.Input = string(args)
	return delta
}

// usageOf reads the counts. Thoughts are paid as output; what came from a cache
// is part of the prompt's count.
func usageOf(usage []byte) llm.Usage {
	in, _ := esjson.GetInt(usage, "promptTokenCount")
	cached, _ := esjson.GetInt(usage, "cachedContentTokenCount")
	out, _ := esjson.GetInt(usage, "candidatesTokenCount")
	thoughts, _ := esjson.GetInt(usage, "thoughtsTokenCount")
	in, out = max(in, 0)+max(esjson.IntOf(usage, "toolUsePromptTokenCount"), 0), max(out, 0)+max(thoughts, 0)
	cached = min(max(cached, 0), in)
	return llm.Usage{Input: in - cached, CacheRead: cached, Output: out}
}

func (r *reply) done() llm.Done {
	d := r.Done(r.stopReason(), r.Thoughts())
	if r.signature != "" && len(d.Blocks) > 0 {
		d.Blocks = append(d.Blocks, esjson.ObjectOf("type", "thoughtSignature",
			"thoughtSignature", r.signature))
	}
	return d
}

// stopReason translates Google's finish reasons to llm's.
func (r *reply) stopReason() string {
	switch r.Stop {
	case "STOP":
		if r.Calls.Len() > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "MAX_TOKENS":
		return "max_tokens"
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "OTHER":
		return "refusal"
	}
	return r.Stop
}
