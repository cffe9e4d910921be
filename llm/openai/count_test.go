package openai_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
)

// What was read from a cache or written to one is counted once, thinking is output
// wherever a server counts it, and counts that make no sense do not make a cost
// negative.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name, usage string
		want        llm.Usage
	}{
		{"written and read", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":50}}`, llm.Usage{Input: 20, CacheRead: 30, CacheWrite: 50, Output: 7}},
		{"written, the other API", `{"input_tokens":100,"output_tokens":7,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":100}}`, llm.Usage{CacheWrite: 100, Output: 7}},
		{"a gateway's name for writing", `{"prompt_tokens":100,"prompt_tokens_details":{"cache_creation_tokens":40}}`, llm.Usage{Input: 60, CacheWrite: 40}},
		{"DeepSeek's name for reading", `{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, llm.Usage{Input: 6, CacheRead: 4}},
		{"Moonshot's name for reading", `{"prompt_tokens":10,"cached_tokens":4}`, llm.Usage{Input: 6, CacheRead: 4}},
		{"thinking inside the output", `{"input_tokens":10,"output_tokens":9,"total_tokens":19,"output_tokens_details":{"reasoning_tokens":8}}`, llm.Usage{Input: 10, Output: 9}},
		{"thinking beside the output", `{"prompt_tokens":10,"completion_tokens":1,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":8}}`, llm.Usage{Input: 10, Output: 9}},
		{"no details", `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":null}`, llm.Usage{Input: 10, Output: 1}},
		{"more read than sent", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":5}}`, llm.Usage{CacheRead: 10, Output: 2}},
		{"more written than sent", `{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":50}}`, llm.Usage{CacheRead: 3, CacheWrite: 7}},
		{"negative", `{"prompt_tokens":-4,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":-3,"cache_write_tokens":-5}}`, llm.Usage{}},
		{"words", `{"prompt_tokens":"10"}`, llm.Usage{}},
	} {
		for dialect, stream := range map[string]string{
			"chat":                events(chunk(`{"content":"hi"}`), finished, `{"choices":[],"usage":`+c.usage+`}`, endOfChat),
			"chat, in the choice": events(chunk(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":`+c.usage+`}]}`, endOfChat),
			"responses":           events(`{"type":"response.output_text.delta","delta":"hi"}`, `{"type":"response.completed","response":{"id":"r","usage":`+c.usage+`}}`),
		} {
			t.Run(c.name+"/"+dialect, func(t *testing.T) {
				url, _ := serve(t, 200, nil, stream)
				dialect, _, _ := strings.Cut(dialect, ",")
				if got := collect(t.Context(), provider(t, url, dialects[dialect]), ask("hi")); got.err != nil || got.done.Usage != c.want {
					t.Errorf("%v %+v, want %+v", got.err, got.done.Usage, c.want)
				}
			})
		}
	}
}
