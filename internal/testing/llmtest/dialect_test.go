package llmtest_test

import (
	"bytes"
	"encoding/base64"
	"image"
	imagepng "image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// A sound request of each dialect: its path, its key and its body.
var dialects = map[string]struct{ path, key, body string }{
	"messages":  {"/v1/messages", "X-Api-Key: k", messages(hi)},
	"chat":      {"/v1/chat/completions", "Authorization: Bearer k", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
	"responses": {"/v1/responses", "Authorization: Bearer k", `{"model":"m","stream":true,"store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}]}`},
	"google":    {"/v1beta/models/m:streamGenerateContent", "X-Goog-Api-Key: k", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
}

// answerIn is the server's answer in a dialect: the status, and the body without \r.
func answerIn(t *testing.T, s *llmtest.Server, dialect string) (int, string) {
	t.Helper()
	d := dialects[dialect]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+d.path, strings.NewReader(d.body))
	if err != nil {
		t.Fatal(err)
	}
	name, key, _ := strings.Cut(d.key, ": ")
	req.Header.Set(name, key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.ReplaceAll(string(body), "\r", "")
}

// Each API's stream as its provider documents it: thinking, words and a call, the tokens as
// that provider counts them, and the end.
func TestAReplyInEachDialect(t *testing.T) {
	reply := llmtest.Reply{ID: "id", Model: "big", Input: 10, CacheRead: 4, CacheWrite: 2, Output: 5}.AndThinking("hm", "s").AndText("ab").AndCall("c1", "f", `{"a":1}`)
	chunk := func(delta, finish string) string {
		return `data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"big","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	part := func(part, finish string) string {
		return `data: {"candidates":[{"content":{"parts":[` + part + `],"role":"model"},` + finish + `"index":0}],"modelVersion":"big","responseId":"id",` +
			`"usageMetadata":{"cachedContentTokenCount":4,"candidatesTokenCount":5,"promptTokenCount":16,"totalTokenCount":21}}`
	}
	for dialect, want := range map[string][]string{
		"chat": {
			chunk(`{"content":"","role":"assistant"}`, "null"), chunk(`{"reasoning_content":"hm"}`, "null"), chunk(`{"content":"ab"}`, "null"),
			chunk(`{"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"c1","index":0,"type":"function"}]}`, "null"),
			chunk(`{"tool_calls":[{"function":{"arguments":"{\"a\":1}"},"index":0}]}`, "null"), chunk(`{}`, `"tool_calls"`),
			`data: {"id":"id","object":"chat.completion.chunk","created":1,"model":"big","choices":[],"usage":{"prompt_tokens":16,"completion_tokens":5,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2}}}`,
			"data: [DONE]",
		},
		"google": {
			part(`{"text":"hm","thought":true}`, ""), part(`{"text":"ab"}`, ""), part(`{"functionCall":{"args":{"a":1},"id":"c1","name":"f"},"thoughtSignature":"signed:c1"}`, ""),
			part(`{"text":""}`, `"finishReason":"STOP",`),
		},
		"responses": {
			"event: response.created\n" + `data: {"response":{"id":"id","model":"big","object":"response","status":"in_progress"},"sequence_number":0,"type":"response.created"}`,
			"event: response.in_progress\n" + `data: {"response":{"id":"id","model":"big","object":"response","status":"in_progress"},"sequence_number":1,"type":"response.in_progress"}`,
			"event: response.output_item.added\n" + `data: {"item":{"id":"item_1_0","summary":[],"type":"reasoning"},"output_index":0,"sequence_number":2,"type":"response.output_item.added"}`,
			"event: response.reasoning_summary_part.added\n" + `data: {"output_index":0,"sequence_number":3,"summary_index":0,"type":"response.reasoning_summary_part.added"}`,
			"event: response.reasoning_summary_text.delta\n" + `data: {"delta":"hm","output_index":0,"sequence_number":4,"summary_index":0,"type":"response.reasoning_summary_text.delta"}`,
			"event: response.output_item.done\n" + `data: {"item":{"encrypted_content":"enc:hm","id":"item_1_0","summary":[{"text":"hm","type":"summary_text"}],"type":"reasoning"},"output_index":0,"sequence_number":5,"type":"response.output_item.done"}`,
			"event: response.output_item.added\n" + `data: {"item":{"id":"item_1_1","role":"assistant","type":"message"},"output_index":1,"sequence_number":6,"type":"response.output_item.added"}`,
			"event: response.output_text.delta\n" + `data: {"content_index":0,"delta":"ab","item_id":"item_1_1","output_index":1,"sequence_number":7,"type":"response.output_text.delta"}`,
			"event: response.output_item.done\n" + `data: {"item":{"content":[{"annotations":[],"text":"ab","type":"output_text"}],"id":"item_1_1","role":"assistant","type":"message"},"output_index":1,"sequence_number":8,"type":"response.output_item.done"}`,
			"event: response.output_item.added\n" + `data: {"item":{"arguments":"","call_id":"c1","id":"item_1_2","name":"f","type":"function_call"},"output_index":2,"sequence_number":9,"type":"response.output_item.added"}`,
			"event: response.function_call_arguments.delta\n" + `data: {"delta":"{\"a\":1}","item_id":"item_1_2","output_index":2,"sequence_number":10,"type":"response.function_call_arguments.delta"}`,
			"event: response.output_item.done\n" + `data: {"item":{"arguments":"{\"a\":1}","call_id":"c1","id":"item_1_2","name":"f","type":"function_call"},"output_index":2,"sequence_number":11,"type":"response.output_item.done"}`,
			"event: response.completed\n" + `data: {"response":{"id":"id","model":"big","object":"response","status":"completed","usage":{"input_tokens":16,"input_tokens_details":{"cache_write_tokens":2,"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":21}},"sequence_number":12,"type":"response.completed"}`,
		},
	} {
		status, body := answerIn(t, llmtest.New(t, reply), dialect)
		if d := cmp.Diff(append(want, ""), strings.Split(body, "\n\n")); d != "" || status != http.StatusOK {
			t.Errorf("%s: got %d %s, want d = \"\" and status = http.StatusOK", dialect, status, d)
		}
	}
}

// Every way to end a reply has its word in each dialect.
func TestHowAReplyEndsIsSent(t *testing.T) {
	for dialect, words := range map[string]map[string]string{
		"messages":  {"": `"stop_reason":"end_turn"`, "max_tokens": `"stop_reason":"max_tokens"`, "refusal": `"stop_reason":"refusal"`},
		"chat":      {"": `"finish_reason":"stop"`, "max_tokens": `"finish_reason":"length"`, "refusal": `"finish_reason":"content_filter"`, "odd": `"finish_reason":"odd"`},
		"google":    {"": `"finishReason":"STOP"`, "max_tokens": `"finishReason":"MAX_TOKENS"`, "refusal": `"finishReason":"SAFETY"`, "MALFORMED_FUNCTION_CALL": `"finishReason":"MALFORMED_FUNCTION_CALL"`},
		"responses": {"": "response.completed", "max_tokens": `"incomplete_details":{"reason":"max_output_tokens"}`, "refusal": `"incomplete_details":{"reason":"content_filter"}`},
	} {
		for reason, want := range words {
			reply := llmtest.Text("x")
			reply.StopReason = reason
			if _, body := answerIn(t, llmtest.New(t, reply), dialect); !strings.Contains(body, want) {
				t.Errorf("%s ends with %q: %s", dialect, reason, body)
			}
		}
	}
}

// A refusal, and an error in the middle of a stream, have the shape and the words that each
// provider gives them.
func TestErrorsInEachDialect(t *testing.T) {
	for dialect, c := range map[string]struct{ busy, refused, middle string }{
		"messages": {
			`{"type":"error","error":{"type":"rate_limit_error","message":"slow \u003cdown\u003e"},"request_id":"req_test"}`,
			`"type":"authentication_error"`, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"full\"}}\n\n",
		},
		"chat": {
			`{"error":{"message":"slow \u003cdown\u003e","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
			`"type":"authentication_error","param":null,"code":null`, "data: {\"error\":{\"message\":\"full\",\"type\":\"overloaded_error\",\"code\":null}}\n\n",
		},
		"responses": {
			`{"error":{"message":"slow \u003cdown\u003e","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
			`"type":"authentication_error","param":null,"code":null`, "event: error\ndata: {\"type\":\"error\",\"code\":\"overloaded_error\",\"message\":\"full\",\"param\":null}\n\n",
		},
		"google": {
			`{"error":{"code":429,"message":"slow \u003cdown\u003e","status":"RESOURCE_EXHAUSTED"}}`,
			`"status":"UNAUTHENTICATED"`, "data: {\"error\":{\"code\":500,\"message\":\"full\",\"status\":\"INTERNAL\"}}\n\n",
		},
	} {
		s := llmtest.New(t, llmtest.Fail(429, "slow <down>"), llmtest.Text("some words").ErrorEvent(1, "overloaded_error", "full"), llmtest.Fail(400, "beyond the context length"))
		if status, body := answerIn(t, s, dialect); status != 429 || body != c.busy {
			t.Errorf("%s is busy: %d %s", dialect, status, body)
		}
		if status, body := answerIn(t, s, dialect); status != 200 || !strings.HasSuffix(body, c.middle) || strings.Count(body, "\n\n") != 2 {
			t.Errorf("%s fails in the middle: %d %s", dialect, status, body)
		}
		status, body := answerIn(t, s, dialect)
		if openAI := dialect == "chat" || dialect == "responses"; status != 400 || strings.Contains(body, `"context_length_exceeded"`) != openAI {
			t.Errorf("%s is asked for too much: %d %s", dialect, status, body)
		}
		s.Key = "another"
		if status, body := answerIn(t, s, dialect); status != 401 || !strings.Contains(body, c.refused) {
			t.Errorf("%s with a wrong key: %d %s", dialect, status, body)
		}
		s.Key, s.Tolerate = "", true
		if status, _ := answerIn(t, s, dialect); status != 500 || len(s.Violations()) != 1 {
			t.Errorf("%s is asked more often than was planned: %d, %q", dialect, status, s.Violations())
		}
	}
	for status, word := range map[int]string{
		400: "invalid_request_error", 422: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 529: "overloaded_error", 500: "api_error", 503: "api_error",
	} {
		if got := llmtest.Fail(status, "x").Type; got != word {
			t.Errorf("%d is %s", status, got)
		}
	}
	for status, word := range map[int]string{403: "PERMISSION_DENIED", 404: "NOT_FOUND", 503: "UNAVAILABLE", 502: "INTERNAL"} {
		if _, body := answerIn(t, llmtest.New(t, llmtest.Fail(status, "x")), "google"); !strings.Contains(body, `"status":"`+word+`"`) {
			t.Errorf("%d: got %s, want strings.Contains(body, `\"status\":\"`+word+`\"`)", status, body)
		}
	}
}

// Content that a dialect cannot express is left out: no item is sent without a kind.
func TestBlocksThatADialectDoesNotKnow(t *testing.T) {
	for _, dialect := range []string{"chat", "responses", "google"} {
		s := llmtest.New(t, llmtest.Blocks(map[string]any{"type": "redacted_thinking", "data": "x"}, map[string]any{"type": "text", "text": "words"}))
		_, body := answerIn(t, s, dialect)
		if !strings.Contains(body, "words") || strings.Contains(body, "redacted") || strings.Contains(body, `"item":{"id":"item_1_0"}`) {
			t.Errorf("%s: got %s, want strings.Contains(body, \"words\") and not strings.Contains(body, \"redacted\") and not strings.Contains(body, `\"item\":{\"id\":\"item_1_0\"}`)",
				dialect, body)
		}
	}
}

// The pictures of a request are held against each provider's rules, alone and together.
func TestPicturesOfARequest(t *testing.T) {
	picture := func(media, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
	}
	for name, c := range map[string]struct{ content, says string }{
		"a picture":             {picture("image/png", png(10, 10)), ""},
		"under another's name":  {picture("image/jpeg", png(10, 10)), "does not match"},
		"too wide":              {picture("image/png", png(8001, 1)), "max allowed size: 8000"},
		"as wide as it may be":  {picture("image/png", png(8000, 1)), ""},
		"too high":              {picture("image/png", png(1, 8001)), "max allowed size: 8000"},
		"too many bytes":        {picture("image/png", strings.Repeat("A", 10<<20)), "image exceeds the maximum"},
		"many, one of them big": {strings.Repeat(picture("image/png", "AAAA")+",", 20) + picture("image/png", png(2001, 1)), "many-image requests"},
		"many small ones":       {strings.Repeat(picture("image/png", "AAAA")+",", 20) + picture("image/png", png(2000, 1)), ""},
		"few, one of them big":  {strings.Repeat(picture("image/png", "AAAA")+",", 19) + picture("image/png", png(2001, 1)), ""},
	} {
		got := llmtest.Check(header(), []byte(messages(`[{"role":"user","content":[`+c.content+`]}]`)))
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

// png is a picture of that size.
func png(width, height int) string {
	var out bytes.Buffer
	if err := imagepng.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}
