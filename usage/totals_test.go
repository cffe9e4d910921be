package usage

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

func genRow(t *rapid.T) []byte {
	text := rapid.SampledFrom([]string{`{"tokensIn":100,"tokensOut":7,"cost":0.1}`, `{"tokensIn":3,"cacheReads":5,"cost":0.7}`, `{"cost":1e300}`,
		`{"apiProtocol":"anthropic"}`, `{bad`, ``, `null`, `[1]`, `"ab"`, `{"tokensIn":"5","cost":null}`, `{"cost":1e999}`, `{"cacheWrites":0}`,
		`{"tool":"updateTodoList","todos":[{"id":"a","content":"b","status":"pending"}]}`}).Draw(t, "text")
	kind := rapid.SampledFrom([]string{`"type":"say","say":"api_req_started"`, `"type":"say","say":"api_req_started"`, `"type":"say","say":"api_req_finished"`,
		`"type":"say","say":"condense_context","contextCondense":{"cost":0.3,"newContextTokens":9}`, `"type":"ask","ask":"command"`,
		`"type":"say","say":"command_output"`, `"type":"ask","ask":"use_mcp_server"`, `"type":"say","say":"mcp_server_response"`,
		`"type":"ask","ask":"tool"`, `"type":"ask","ask":"resume_task"`, `"type":"say","say":"text"`,
		`"type":"say","ask":"command_output","say":"api_req_started"`}).Draw(t, "kind")
	if rapid.IntRange(0, 40).Draw(t, "junk") == 0 {
		return []byte(rapid.SampledFrom([]string{`null`, `{`, ``, `{"type":`, `5`}).Draw(t, "raw"))
	}
	return fmt.Appendf(nil, `{"ts":%d,%s,"text":%s}`, rapid.IntRange(1, 9).Draw(t, "ts"), kind, esjson.Quote(nil, text))
}

func FuzzHistoryItem(f *testing.F) {
	f.Add([]byte(`{"type":"say","say":"api_req_started","text":"{}"}`), []byte(`{"type":"ask","ask":"use_mcp_server","text":"["}`))
	f.Add([]byte(`{"type":"say"`), []byte(`{"a`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		messages := [][]byte{a, b, []byte(`{"type":"say","say":"mcp_server_response","text":"x"}`), a}
		item := HistoryItem(messages, Row{ID: "x"})
		Sum(messages)
		if esjson.Valid(a) && esjson.Valid(b) && !esjson.Valid(item) {
			t.Fatalf("got %s, want not esjson.Valid(a) or not esjson.Valid(b) or esjson.Valid(item)", item)
		}
	})
}
