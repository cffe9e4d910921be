package wire

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
)

func TestPath(t *testing.T) {
	for _, c := range []struct {
		refusal, list string
		indexes       []int
		names         []string
	}{
		{"messages.12.content.3: Input should be valid", "messages", []int{12, 3}, []string{"messages", "content"}},
		{"messages.2.content.1.tool_result.content.4.image.source.base64: too big", "messages", []int{2, 1}, []string{"messages", "content"}},
		{"messages.4: all messages must have content", "messages", []int{4}, []string{"messages"}},
		{"Invalid 'input[95].call_id': string too long.", "input", []int{95}, []string{"input"}},
		{"Invalid 'messages[3].content[1].image_url.url'.", "messages", []int{3, 1}, []string{"messages", "content"}},
		{"* GenerateContentRequest.contents[4].parts[2].inline_data: no", "contents", []int{4, 2}, []string{"contents", "parts"}},
		{"messages: roles; messages.7: no", "messages", []int{7}, []string{"messages"}},
		{"max_input.3 is no list of ours", "input", nil, nil},
		{"the input is wrong", "input", nil, nil},
		{"messages[99999999999999999999]: too far", "messages", nil, nil},
		{"", "messages", nil, nil},
	} {
		indexes, names := Path(c.refusal, c.list)
		if d := cmp.Diff(c.indexes, indexes); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.refusal, d)
		}
		if d := cmp.Diff(c.names, names); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", c.refusal, d)
		}
	}
}

// The wire's items are not the messages: a result is an item of its own, and a
// message may be none.
func TestLocate(t *testing.T) {
	var h History
	messages := []llm.Message{
		{Role: "user", Content: []byte(`[{"type":"text","text":"a"},{"type":"image","source":{"media_type":"image/png","data":"AAAA"}}]`)},
		{Role: "assistant", Content: []byte(`[{"type":"text","text":"b"},{"type":"tool_use","id":"c1","name":"f","input":{}},{"type":"tool_use","id":"c2","name":"f","input":{}}]`)},
		{Role: "user", Content: []byte(`[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"image","source":{"media_type":"image/png","data":"BBBB"}}]},{"type":"text","text":"d"}]`)},
		{Role: "assistant", Content: []byte(`[{"type":"text","text":"left out"}]`)},
	}
	wires := []string{
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`,
		`{"role":"assistant","content":"b","tool_calls":[{"id":"c1"},{"id":"c2"}]}`,
		`{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"tool","tool_call_id":"c2","content":"y"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,BBBB"}},{"type":"text","text":"d"}]}`,
		``,
	}
	i := -1
	h.Add(new(Body), messages, func(llm.Message) []byte { i++; return []byte(wires[i]) })
	for refusal, want := range map[string][3]int{
		"messages[1].content[1]: the image is broken":       {0, 1, 1},
		"messages[1]: the image is broken":                  {0, 1, 1},
		"messages[1].content[0]: the text":                  {0, 0, 1},
		"messages[1]: something":                            {0, -1, 1},
		"messages[2].tool_calls[1].function.arguments: no":  {1, 2, 1},
		"messages[3]: no":                                   {2, 0, 1},
		"messages[4].content: no":                           {2, 1, 1},
		"messages[5].content[0].image_url: Invalid image":   {2, 1, 1},
		"messages[5].content[1]: no":                        {2, 2, 1},
		"messages[6]: beyond the end":                       {0, 0, 0},
		"no path":                                           {0, 0, 0},
		"messages[1].content[7]: an element that is absent": {0, -1, 1},
	} {
		message, block, ok := h.Locate(refusal, "messages", 1)
		if got := [3]int{message, block, map[bool]int{true: 1}[ok]}; got != want {
			t.Errorf("%s: %v, wanted %v", refusal, got, want)
		}
	}
}

// For any refusal and any request, Locate names a message and a block that exist, or
// nothing.
func TestLocateStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h History
		var messages []llm.Message
		for range rapid.IntRange(0, 4).Draw(t, "messages") {
			var blocks []string
			for range rapid.IntRange(1, 3).Draw(t, "blocks") {
				blocks = append(blocks, rapid.SampledFrom([]string{
					`{"type":"text","text":"a"}`, `{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"type":"image","source":{"data":"AAAA"}}`,
					`{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"data":"AAAA"}}]}`, `{"type":"reasoning","encrypted_content":"e"}`, `{}`,
				}).Draw(t, "block"))
			}
			messages = append(messages, llm.Message{Role: "user", Content: []byte("[" + strings.Join(blocks, ",") + "]")})
		}
		h.Add(new(Body), messages, func(m llm.Message) []byte {
			return []byte(rapid.SampledFrom([]string{``, `{"content":` + string(m.Content) + `}`, `{"id":"c"},{"content":[]}`}).Draw(t, "wire"))
		})
		refusal := rapid.SampledFrom([]string{"", "the image in "}).Draw(t, "about") + rapid.StringMatching(`messages(\[[0-9]{1,2}\]|\.[0-9])(\.content(\[[0-9]\]|\.[0-9])){0,3}.{0,5}`).Draw(t, "path")
		message, block, ok := h.Locate(refusal, "messages", rapid.IntRange(0, 1).Draw(t, "skip"))
		if ok && (message < 0 || message >= len(messages) || block < -1 || block >= len(Blocks(messages[message].Content))) {
			t.Fatalf("%s: message %d, block %d", refusal, message, block)
		}
	})
}

// A wait above the longest one is not waited out, and one at it is.
func TestAttemptsLeaveLongWaits(t *testing.T) {
	for asked, attempts := range map[int64]int{60_000: 2, 60_001: 1} {
		n, slept := 0, time.Duration(0)
		b := Backoff{Sleep: func(_ context.Context, d time.Duration) error { slept += d; return nil }}
		var last error
		Attempts(t.Context(), b, func(_ llm.Chunk, err error) bool { last = err; return true }, func() (bool, error) {
			if n++; n > 1 {
				return true, nil
			}
			return false, &llm.Error{Kind: llm.RateLimited, RetryAfterMS: asked}
		})
		if n != attempts || (last == nil) != (attempts == 2) || slept != time.Duration(attempts-1)*time.Minute {
			t.Errorf("%d ms: %d attempts, slept %s, %v", asked, n, slept, last)
		}
	}
}

// OpenAI may name the place beside its words only.
func TestARefusalNamesItsPlace(t *testing.T) {
	for page, want := range map[string]string{
		`{"error":{"message":"too long","param":"input[3].call_id","code":"x"}}`:           "too long (input[3].call_id)",
		`{"error":{"message":"Invalid 'input[3].call_id'","param":"input[3].call_id"}}`:    "Invalid 'input[3].call_id'",
		`{"error":{"message":"no","param":null}}`:                                          "no",
		`{"error":{"message":"no","param":{"a":1}}}`:                                       "no",
		`{"error":{"type":"invalid_request_error","message":"messages.1.content.2: bad"}}`: "messages.1.content.2: bad",
	} {
		if _, message := Refusal([]byte(page)); message != want {
			t.Errorf("%s: got %q, want message = %v", page, message, want)
		}
	}
}
