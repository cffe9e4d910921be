package openai

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// usageOf reads the token counts of a reply, of both APIs, whose names for the same counts
// differ. Both count tokens read from and written to a cache as part of the input; usageOf
// takes them out of it. Both count reasoning as part of the output; some servers that imitate
// the API (xAI's) count it separately, which shows in their total.
//
// OpenAI reports tokens written to a cache for the models that charge for it. LiteLLM has
// another name for that count, and DeepSeek another one for tokens read from a cache.
//
// A server's mistake must not make a cost negative: no part is larger than the whole.
func usageOf(usage []byte) llm.Usage {
	in, out := firstCount(usage, "prompt_tokens", "input_tokens"), firstCount(usage, "completion_tokens", "output_tokens")
	ins := firstObject(usage, "prompt_tokens_details", "input_tokens_details")
	outs := firstObject(usage, "completion_tokens_details", "output_tokens_details")
	read, write := firstCount(ins, "cached_tokens"), firstCount(ins, "cache_write_tokens", "cache_creation_tokens")
	if read == 0 {
		read = firstCount(usage, "prompt_cache_hit_tokens")
	}
	if thought := firstCount(outs, "reasoning_tokens"); thought > 0 && firstCount(usage, "total_tokens") == in+out+thought {
		out += thought
	}
	read = min(read, in)
	write = min(write, in-read)
	return llm.Usage{Input: in - read - write, CacheRead: read, CacheWrite: write, Output: out}
}

// firstCount is the first of these counts that is there and makes sense; 0 otherwise.
func firstCount(object []byte, names ...string) int64 {
	for _, name := range names {
		// The bound keeps sums of a hostile server's counts from overflowing.
		if n, ok := esjson.GetInt(object, name); ok && n > 0 {
			return min(n, 1e15)
		}
	}
	return 0
}

func firstObject(usage []byte, names ...string) []byte {
	for _, name := range names {
		if val, ok := esjson.Get(usage, name); ok && esjson.TypeOf(val) == esjson.TypeObject {
			return val
		}
	}
	return nil
}
