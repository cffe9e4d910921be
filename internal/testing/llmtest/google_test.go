package llmtest_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// Each rule of the Gemini API: what breaks it, and the nearest thing that does not.
func TestCheckGoogle(t *testing.T) {
	const user = `{"role":"user","parts":[{"text":"hi"}]}`
	model := func(parts string) string { return `{"role":"model","parts":[` + parts + `]}` }
	answer := func(parts string) string { return `{"role":"user","parts":[` + parts + `]}` }
	const call, more, result = `{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"s"}`,
		`{"functionCall":{"id":"d","name":"g","args":{}}}`,
		`{"functionResponse":{"id":"c","name":"f","response":{"output":"x"}}}`
	ask := func(contents ...string) string { return `{"contents":[` + strings.Join(contents, ",") + `]}` }
	for name, c := range map[string]struct{ body, says string }{
		"sound":                    {ask(user, model(call), answer(result)), ""},
		"two calls":                {ask(user, model(call+","+more), answer(result+`,{"functionResponse":{"id":"d","name":"g","response":{}}}`)), ""},
		"an image":                 {ask(`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`), ""},
		"no JSON":                  {`{`, "Invalid JSON"},
		"nothing":                  {`{"contents":[]}`, "not specified"},
		"assistant":                {ask(`{"role":"assistant","parts":[{"text":"x"}]}`), "valid role"},
		"no parts":                 {ask(`{"role":"user","parts":[]}`), "must not be empty"},
		"an unknown part":          {ask(`{"role":"user","parts":[{"image":1}]}`), "oneof"},
		"an image between results": {ask(`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"functionResponse":{"id":"c","name":"n","response":{}}}]}`), "come before"},
		"an image by address":      {ask(`{"role":"user","parts":[{"inlineData":{"mimeType":"text/html","data":"AAAA"}}]}`), "inline_data"},
		"a call by the user":       {ask(answer(call)), "oneof"},
		"not signed":               {ask(user, model(more), answer(`{"functionResponse":{"id":"d","name":"g","response":{}}}`)), "thought_signature"},
		"arguments no object":      {ask(user, model(strings.Replace(call, `{}`, `[]`, 1)), answer(result)), "function_call"},
		"unanswered":               {ask(user, model(call), user), "equal to the number"},
		"half answered":            {ask(user, model(call+","+more), answer(result)), "equal to the number"},
		"open at the end":          {ask(user, model(call)), "function call turn"},
		"answers nothing":          {ask(user, answer(result)), "answers no call"},
		"another name":             {ask(user, model(call), answer(strings.Replace(result, `"f"`, `"g"`, 1))), "answers no call"},
		"response no object":       {ask(user, model(call), answer(strings.Replace(result, `{"output":"x"}`, `"x"`, 1))), "must be an object"},
		"a name it refuses":        {`{"tools":[{"functionDeclarations":[{"name":"1x"}]}],"contents":[` + user + `]}`, "Invalid function name"},
		"a tool twice":             {`{"tools":[{"functionDeclarations":[{"name":"x"},{"name":"x"}]}],"contents":[` + user + `]}`, "Duplicate"},
	} {
		if got := llmtest.CheckGoogle(jsonType, []byte(c.body)); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf(`%s: got %q, want (c.says == "") = (got == "") and strings.Contains(got, c.says)`, name, got)
		}
	}
}
