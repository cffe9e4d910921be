package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// rowsThatRead are the kinds whose text a reader takes apart.
func rowsThatRead() (kinds []string) {
	for kind := range payloads {
		kinds = append(kinds, "say:"+kind, "ask:"+kind)
	}
	for kind := range headings {
		kinds = append(kinds, kind)
	}
	return append(kinds, "ask:followup", "ask:use_mcp_server", "say:use_mcp_server", "say:error_retry", "say:user_feedback_diff", "say:checkpoint_saved", "ask:tool", "say:tool", "say:user_edit_todos")
}

// Whatever stands in the text of a row, in whichever shape: the person sees each word of
// it. Programs change what they write there from version to version.
func TestNoWordOfARowIsLost(t *testing.T) {
	t.Parallel()
	for _, kind := range rowsThatRead() {
		typ, name, _ := strings.Cut(kind, ":")
		for _, text := range []string{
			"bare w1w", `["w1w"]`, `"w1w"`, `{"w1w`, `{"w1w":"w2w"}`, `{"w1w":{"w2w":["w3w"]}}`, `{"message":"w1w","other":"w2w"}`, `{"message":{"w1w":"w2w"},"error":["w3w"]}`,
			`{"question":"w1w","other":"w2w","suggest":["w3w",{"answer":"w4w"},{"text":"w5w"},["w6w"]]}`, `{"question":{"w1w":1},"suggest":"w2w","options":{"w3w":1},"response":"w4w"}`,
			`{"serverName":"w1w","toolName":"w2w","uri":"w3w","arguments":{"w4w":"w5w"},"response":"w6w"}`, `{"serverName":["w1w"],"arguments":"w2w"}`,
			`{"seconds":"w1w","count":["w2w"],"toolCount":"w3w","serverCount":{"w4w":1},"imagePath":["w5w"],"action":{"w6w":1},"currentUrl":["w7w"],"logs":{"w8w":1}}`,
			`{"attempt":"w1w","maxAttempts":["w2w"],"errorMessage":{"w3w":1},"w4w":1}`, `{"diff":["w1w"],"path":{"w2w":1},"reason":"w3w"}`, `{"tokensIn":"w1w","cost":"w2w","source":"w3w"}`,
			`{"content":{"query":["w1w"],"results":{"w2w":1},"w3w":1}}`, `{"content":{"query":"w1w","results":["w2w"]},"w3w":"w4w"}`,
		} {
			var o esjson.Object
			o.String("type", typ)
			o.String(typ, name)
			o.String("text", text)
			shown := seen(UI(o.Bytes(), 2))
			for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r != 'w' && (r < '0' || r > '9') }) {
				if len(w) > 2 && !strings.Contains(shown, w) {
					t.Errorf("%s: %s is lost of %s:\n%s", kind, w, text, shown)
				}
			}
		}
	}
}

// What a row does not say is not made up: no zero stands for what nobody recorded.
func TestRowsMakeUpNoNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, text, want string }{
		{"say:api_req_deleted", `{}`, "· requests were taken out by a restore"},
		{"say:api_req_deleted", `{"tokensOut":5,"cacheReads":9}`, "· requests were taken out by a restore\n  5 out"},
		{"say:subagent_usage", `{"tokensIn":1500,"tokensOut":0,"source":"helpers"}`, "· what subagents cost\n  1.5k tokens in, 0 out\n  source: helpers"},
		{"say:api_req_rate_limit_wait", `{}`, "· waiting for the rate limit"},
		{"say:api_req_rate_limit_wait", `{"seconds":0}`, "· waiting 0 s for the rate limit"},
		{"say:too_many_tools_warning", `{}`, "· many tools are switched on"},
		{"say:too_many_tools_warning", `{"toolCount":80}`, "· many tools are switched on: 80"},
		{"say:image", `{"imagePath":"a.png"}`, "output an image a.png"},
		{"ask:auto_approval_max_req_reached", `{}`, "question the limit for automatic approvals is reached"},
		{"say:error_retry", `{}`, "· the request failed; trying again"},
		{"say:error_retry", `{"attempt":2,"errorMessage":"no"}`, "· the request failed; try 2\n  no"},
		{"say:error_retry", `{"failed":true,"errorMessage":"no"}`, "the request failed\n  no"},
		{"say:error_retry", `{"failed":true,"maxAttempts":3}`, "the request failed 3 times"},
		{"say:user_feedback_diff", `{"diff":"-a\n+b","by":"hand"}`, "you changed the file before approving\n  by: hand\n  -a\n  +b"},
		{"say:checkpoint_saved", "", "· checkpoint"},
		{"say:checkpoint_saved", "not a hash", "· checkpoint\n  not a hash"},
		{"ask:use_mcp_server", `{}`, "tool use an MCP server"},
		{"ask:use_mcp_server", `{"serverName":"db","arguments":{"sql":"drop"}}`, "tool mcp db\n  arguments: {\"sql\":\"drop\"}"},
		{"ask:use_mcp_server", `{"type":"access_mcp_resource","serverName":"db","uri":"db://x"}`, "tool mcp db db://x"},
		{"ask:plan_mode_respond", `{"response":"so","options":["go","stay"],"selected":"go"}`, "question\n  so\n  selected: go\n  1. go\n  2. stay"},
		{"say:codebase_search_result", `{"tool":"codebaseSearch","content":{"query":"q","results":[]}}`, "tool found for q"},
	} {
		typ, kind, _ := strings.Cut(tt.kind, ":")
		var o esjson.Object
		o.String("type", typ)
		o.String(typ, kind)
		o.String("text", tt.text)
		it := UI(o.Bytes(), 2)
		it.Number = 0
		if d := cmp.Diff(tt.want, looks(it)); d != "" {
			t.Errorf("got %s %s: %s, want d = \"\"", tt.kind, tt.text, d)
		}
	}
	for raw, want := range map[string]string{
		`{"type":"say","say":"condense_context","contextCondense":{"summary":"so far","prevContextTokens":9}}`:                           "· older history was condensed\n  so far",
		`{"type":"say","say":"condense_context","contextCondense":{"summary":"so far","prevContextTokens":9,"newContextTokens":0}}`:      "· older history was condensed: 9 -> 0 tokens\n  so far",
		`{"type":"say","say":"sliding_window_truncation","contextTruncation":{"messagesRemoved":"many"}}`:                                "· older history is no longer sent",
		`{"type":"say","say":"sliding_window_truncation","contextTruncation":{"messagesRemoved":2,"truncationId":"x"},"text":"as told"}`: "· older history is no longer sent: 2 messages\n  as told",
	} {
		it := UI([]byte(raw), 2)
		it.Number = 0
		if d := cmp.Diff(want, looks(it)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", raw, d)
		}
	}
}
