package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		raw    string
		number int
		want   Item
	}{
		{"first words", `{"ts":5,"type":"say","say":"text","text":"do it","images":["data:,x"]}`, 1,
			Item{Number: 1, TS: 5, Kind: "say:text", Class: User, Body: "do it", Images: 1, Pictures: []string{"0 B"}}},
		{"model's words", `{"ts":6,"type":"say","say":"text","text":"on it","partial":true}`, 3,
			Item{Number: 3, TS: 6, Kind: "say:text", Class: Model, Body: "on it", Partial: true}},
		{"command", `{"ts":7,"type":"ask","ask":"command","text":"make test"}`, 4,
			Item{Number: 4, TS: 7, Kind: "ask:command", Class: Tool, Title: "$ make test"}},
		{"read", `{"ts":7,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"src/a.go\",\"reason\":\"\"}"}`, 4,
			Item{Number: 4, TS: 7, Kind: "ask:tool", Class: Tool, Title: "read src/a.go"}},
		{"edit", `{"type":"ask","ask":"tool","text":"{\"tool\":\"editedExistingFile\",\"path\":\"a\",\"content\":\"@@ -1 +1 @@\\n-x\\n+y\",\"diffStats\":{\"added\":1,\"removed\":1}}"}`, 4,
			Item{Number: 4, Kind: "ask:tool", Class: Tool, Title: "edit a (+1 -1)", Body: "@@ -1 +1 @@\n-x\n+y", Diff: true}},
		{"tool text that does not parse", `{"type":"ask","ask":"tool","text":"{\"tool\":"}`, 4,
			Item{Number: 4, Kind: "ask:tool", Class: Tool, Body: `{"tool":`}},
		{"followup", `{"type":"ask","ask":"followup","text":"{\"question\":\"which?\",\"suggest\":[{\"answer\":\"a\"},{\"answer\":\"b\",\"mode\":null}]}"}`, 4,
			Item{Number: 4, Kind: "ask:followup", Class: Question, Body: "which?", Choices: []string{"a", "b"}}},
		{"plan with plain options", `{"type":"ask","ask":"plan_mode_respond","text":"{\"response\":\"so\",\"options\":[\"go\"]}"}`, 4,
			Item{Number: 4, Kind: "ask:plan_mode_respond", Class: Question, Body: "so", Choices: []string{"go"}}},
		{"request", `{"type":"say","say":"api_req_started","text":"{\"tokensIn\":12000,\"tokensOut\":60,\"cost\":0.0189}"}`, 2,
			Item{Number: 2, Kind: "say:api_req_started", Class: Request, Title: "request: 12k tokens in, 60 out, $0.0189"}},
		{"request without reply", `{"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"openai\"}"}`, 2,
			Item{Number: 2, Kind: "say:api_req_started", Class: Request, Title: "request: nothing is recorded of it"}},
		{"cancelled request", `{"type":"say","say":"api_req_started","text":"{\"cancelReason\":\"streaming_failed\",\"streamingFailedMessage\":\"cut\"}"}`, 2,
			Item{Number: 2, Kind: "say:api_req_started", Class: Request, Title: "request: streaming failed", Body: "cut"}},
		{"condensed", `{"type":"say","say":"condense_context","contextCondense":{"summary":"S","prevContextTokens":9500,"newContextTokens":100}}`, 2,
			Item{Number: 2, Kind: "say:condense_context", Class: Note, Title: "older history was condensed: 9.5k -> 100 tokens", Body: "S"}},
		{"a kind from the future", `{"type":"say","say":"telepathy","text":"hm"}`, 2,
			Item{Number: 2, Kind: "say:telepathy", Class: Unknown, Title: "say:telepathy", Body: "hm"}},
		{"not an object", `17`, 2, Item{Number: 2, Kind: "invalid", Class: Unknown, Title: "not a message", Body: "17"}},
		{"todo list", `{"type":"ask","ask":"tool","text":"{\"tool\":\"updateTodoList\",\"todos\":[{\"content\":\"a\",\"status\":\"completed\"},{\"content\":\"b\",\"status\":\"pending\"}]}"}`, 2,
			Item{Number: 2, Kind: "ask:tool", Class: Tool, Title: "todo list", Body: "[x] a\n[ ] b"}},
		{"mcp", `{"type":"ask","ask":"use_mcp_server","text":"{\"serverName\":\"s\",\"toolName\":\"t\",\"arguments\":\"{}\"}"}`, 2,
			Item{Number: 2, Kind: "ask:use_mcp_server", Class: Tool, Title: "mcp s t"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, UI([]byte(tt.raw), tt.number)); diff != "" {
				t.Errorf("UI (-want +got):\n%s", diff)
			}
		})
	}
}

// Every kind that Roo's format names must be known.
func TestUIKnowsEveryKind(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"ask": "followup command command_output completion_result tool api_req_failed resume_task resume_completed_task mistake_limit_reached " +
			"use_mcp_server auto_approval_max_req_reached browser_action_launch request_limit_reached plan_mode_respond act_mode_respond new_task " +
			"condense summarize_task report_bug use_subagents",
		"say": "text reasoning api_req_started api_req_finished api_req_retried api_req_retry_delayed api_req_rate_limit_wait api_req_deleted error " +
			"completion_result user_feedback user_feedback_diff command_output shell_integration_warning mcp_server_request_started " +
			"mcp_server_response subtask_result checkpoint_saved rooignore_error diff_error condense_context condense_context_error " +
			"sliding_window_truncation codebase_search_result user_edit_todos too_many_tools_warning image tool task command browser_action error_retry " +
			"browser_action_result browser_session_status new_task new_task_started use_mcp_server",
	}
	for typ, list := range kinds {
		for _, kind := range strings.Fields(list) {
			it := UI([]byte(`{"type":"`+typ+`","`+typ+`":"`+kind+`","text":"x"}`), 2)
			if it.Class == Unknown {
				t.Errorf("%s:%s is unknown", typ, kind)
			}
		}
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		want      Item
	}{
		{"string content", `{"role":"user","content":"hi","ts":3}`,
			Item{Number: 1, TS: 3, Kind: "user", Class: User, Parts: []Item{{Kind: "text", Class: User, Body: "hi"}}}},
		{"blocks", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a"}}]}`,
			Item{Number: 1, Kind: "assistant", Class: Model, Parts: []Item{
				{Kind: "thinking", Class: Reasoning, Body: "hm"},
				{Kind: "text", Class: Model, Body: "ok"},
				{Kind: "tool_use", Class: Tool, Title: "read_file a", Call: "c1"},
			}}},
		{"results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"x"},{"type":"image"}],"is_error":true}]}`,
			Item{Number: 1, Kind: "user", Class: Output, Parts: []Item{
				{Kind: "tool_result", Class: Failure, Title: "result (error)", Call: "c1", Body: "x", Images: 1, Pictures: []string{""}},
			}}},
		{"hidden by a summary", `{"role":"user","content":[],"condenseParent":"u"}`,
			Item{Number: 1, Kind: "user", Class: User, Title: "[condensed away]"}},
		{"a block nobody knows", `{"role":"user","content":[{"type":"hologram"}]}`,
			Item{Number: 1, Kind: "user", Class: Output, Parts: []Item{{Kind: "hologram", Class: Unknown, Title: "hologram", Body: `{"type":"hologram"}`}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, API([]byte(tt.raw), 1)); diff != "" {
				t.Errorf("API (-want +got):\n%s", diff)
			}
		})
	}
}
