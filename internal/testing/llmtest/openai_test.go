package llmtest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

var jsonType = http.Header{"Content-Type": {"application/json"}}

// Each rule of chat completions: what breaks it, and the nearest thing that does not.
func TestCheckChat(t *testing.T) {
	const user, call, result = `{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"ok"}`
	ask := func(tools string, messages ...string) string {
		return `{"model":"m","stream":true` + tools + `,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	for name, c := range map[string]struct{ body, says string }{
		"sound":             {ask(`,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`, `{"role":"system","content":"s"}`, user, call, result), ""},
		"parts":             {ask("", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`), ""},
		"no JSON":           {`{`, "parse"},
		"no model":          {`{"messages":[` + user + `]}`, "model"},
		"no messages":       {ask(""), "messages"},
		"system later":      {ask("", user, `{"role":"system","content":"s"}`), "first"},
		"no such role":      {ask("", `{"role":"bot","content":"s"}`), "Invalid value: 'bot'"},
		"empty parts":       {ask("", `{"role":"user","content":[]}`), "expected a string"},
		"unknown part":      {ask("", `{"role":"user","content":[{"type":"tool_result"}]}`), "tool_result"},
		"image by address":  {ask("", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x"}}]}`), "image_url"},
		"image in a result": {ask("", user, call, `{"role":"tool","tool_call_id":"c","content":[{"type":"image_url"}]}`), "image_url"},
		"says nothing":      {ask("", user, `{"role":"assistant","content":""}`, user), "content or tool_calls"},
		"call unanswered":   {ask("", user, call, user), "must be followed by tool messages"},
		"open at the end":   {ask("", user, call), "no results"},
		"result of nothing": {ask("", user, result), "must be a response"},
		"result twice":      {ask("", user, call, result, result), "must be a response"},
		"id twice":          {ask("", user, call, result, call, result), "duplicate"},
		"input no object":   {ask("", user, strings.ReplaceAll(call, `"{}"`, `"[]"`), result), "arguments"},
		"name too long":     {ask("", user, strings.ReplaceAll(call, `"f"`, `"`+strings.Repeat("f", 65)+`"`), result), "pattern"},
		"tool twice":        {ask(`,"tools":[{"type":"function","function":{"name":"f","parameters":{}}},{"type":"function","function":{"name":"f","parameters":{}}}]`, user), "tools[1]"},
		"tool without form": {ask(`,"tools":[{"type":"function","function":{"name":"f"}}]`, user), "schema"},
		"tool of Anthropic": {ask(`,"tools":[{"name":"f","input_schema":{}}]`, user), "type"},
	} {
		if got := llmtest.CheckChat(jsonType, []byte(c.body)); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf(`%s: got %q, want (c.says == "") = (got == "") and strings.Contains(got, c.says)`, name, got)
		}
	}
	if llmtest.CheckChat(http.Header{}, []byte(ask("", user))) == "" {
		t.Error("a body of unknown type is taken")
	}
}

// The same for the Responses API.
func TestCheckResponses(t *testing.T) {
	const user, call, result, thought = `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c","output":"ok"}`,
		`{"type":"reasoning","summary":[],"encrypted_content":"e"}`
	ask := func(input ...string) string {
		return `{"model":"gpt-5","store":false,"input":[` + strings.Join(input, ",") + `]}`
	}
	for name, c := range map[string]struct{ body, says string }{
		"sound":                             {ask(user, thought, call, result), ""},
		"no JSON":                           {`{`, "parse"},
		"nothing":                           {ask(), "Missing"},
		"stored":                            {strings.Replace(ask(user), `"store":false`, `"store":true`, 1), "store"},
		"stored by default":                 {strings.Replace(ask(user), `"store":false,`, ``, 1), "store"},
		"thoughts of a model that has none": {strings.Replace(ask(user, thought, call, result), "gpt-5", "gpt-4.1", 1), "reasoning"},
		"sealed thoughts of such a model":   {strings.Replace(ask(user), `"gpt-5"`, `"gpt-4.1","include":["reasoning.encrypted_content"]`, 1), "Encrypted content"},
		"words of the user as the model's":  {ask(strings.Replace(user, "input_text", "output_text", 1)), "output_text"},
		"words of the model as the user's":  {ask(user, strings.Replace(user, "user", "assistant", 1), user), "input_text"},
		"thought alone":                     {ask(user, thought, user), "required following item"},
		"thought last":                      {ask(user, thought), "required following item"},
		"thought not sealed":                {ask(user, `{"type":"reasoning","summary":[]}`, call, result), "encrypted_content"},
		"call unanswered":                   {ask(user, call), "No tool output found"},
		"result of nothing":                 {ask(user, result), "No tool call found"},
		"result no text":                    {ask(user, call, `{"type":"function_call_output","call_id":"c","output":{}}`), "output"},
		"an item of the past":               {ask(user, `{"type":"tool_use"}`), "Invalid value"},
		"input no JSON":                     {ask(user, strings.Replace(call, `"{}"`, `"{"`, 1), result), "arguments"},
	} {
		if got := llmtest.CheckResponses(jsonType, []byte(c.body)); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf(`%s: got %q, want (c.says == "") = (got == "") and strings.Contains(got, c.says)`, name, got)
		}
	}
}

// The number of replies that a request brings back selects a scripted server's next reply.
func TestReplies(t *testing.T) {
	for body, want := range map[string]int{
		`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"user"},{"role":"assistant"},{"role":"tool"}]}`:                                                                                  2,
		`{"messages":[{"role":"assistant"},{"role":"assistant"}]}`:                                                                                                                                  2,
		`{"input":[{"role":"user","type":"message"},{"type":"reasoning"},{"type":"message","role":"assistant"},{"type":"function_call"},{"type":"function_call_output"},{"type":"function_call"}]}`: 2,
		`{`: 0,
	} {
		if got := (llmtest.Request{Body: []byte(body)}).Replies(); got != want {
			t.Errorf("%s: got %d, want got = %v", body, got, want)
		}
	}
}
