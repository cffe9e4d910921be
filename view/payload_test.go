package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// Rows whose text is JSON are told in words, and never by their bytes.
func TestPayloadsInWords(t *testing.T) {
	t.Parallel()
	shot := "data:image/webp;base64," + strings.Repeat("A", 4000)
	for _, tt := range []struct{ kind, text, want string }{
		{"say:api_req_deleted", `{"tokensIn":1200,"tokensOut":3,"cost":0.5}`, "#2 · requests were taken out by a restore\n  1.2k tokens in, 3 out, $0.5000"},
		{"say:deleted_api_reqs", `{"tokensIn":"x"}`, "#2 · requests were taken out by a restore\n  tokensIn: x"},
		{"say:subagent_usage", `{"totalCost":1}`, "#2 · what subagents cost\n  $1.0000"},
		{"say:api_req_rate_limit_wait", `{"seconds":5}`, "#2 · waiting 5 s for the rate limit"},
		{"say:api_req_rate_limit_wait", ``, "#2 · waiting for the rate limit"},
		{"say:api_req_retry_delayed", "429\nslow down\n<retry_timer>12</retry_timer>", "#2 · waiting before the next try\n  429\n  slow down"},
		{"say:api_req_retry_delayed", "429\nslow down", "#2 · waiting before the next try\n  429\n  slow down"},
		{"say:error", "MODEL_NO_TOOLS_USED", "#2 error\n  the model called no tool"},
		{"say:error", "MODEL_NO_ASSISTANT_MESSAGES", "#2 error\n  the model's reply was empty"},
		{"say:error", "MODEL", "#2 error\n  MODEL"},
		{"say:too_many_tools_warning", `{"toolCount":80,"serverCount":3,"threshold":60}`, "#2 · many tools are switched on: 80 of 3 servers"},
		{"say:image", `{"imageUri":"` + shot + `","imagePath":"a/b.webp"}`, "#2 output an image a/b.webp [1 image: webp 3.0 KB]"},
		{"say:browser_action", `{"action":"click","coordinate":"10,20"}`, "#2 tool browser click 10,20"},
		{"say:browser_action", `launch`, "#2 tool browser\n  launch"},
		{"say:browser_action_result", `{"screenshot":"` + shot + `","logs":"a\nb","currentUrl":"http://x"}`, "#2 output browser http://x [1 image: webp 3.0 KB]\n  a\n  b"},
		{"say:codebase_search_result", `{"tool":"codebaseSearch","content":{"query":"q","results":[{"filePath":"a.go","startLine":3,"endLine":9},7]}}`, "#2 tool found for q\n  a.go:3-9"},
		{"say:codebase_search_result", `{"tool":"codebaseSearch","content":7}`, "#2 tool search code\n  content: 7"},
		{"ask:auto_approval_max_req_reached", `{"count":20,"type":"requests"}`, "#2 question the limit for automatic approvals is reached: 20 requests"},
		{"ask:auto_approval_max_req_reached", `{"count":"1.50","type":"cost"}`, "#2 question the limit for automatic approvals is reached: 1.50 cost"},
		{"ask:auto_approval_max_req_reached", `{"half`, "#2 question the limit for automatic approvals is reached\n  {\"half"},
	} {
		typ, kind, _ := strings.Cut(tt.kind, ":")
		var o esjson.Object
		o.String("type", typ)
		o.String(typ, kind)
		o.String("text", tt.text)
		if d := cmp.Diff(tt.want, readAll([][]byte{[]byte(`7`), o.Bytes()}[1:], func(raw []byte, _ int) Item { return UI(raw, 2) })); d != "" {
			t.Errorf("%s %.60s: %s", tt.kind, tt.text, d)
		}
	}
}

// Every kind of row of Roo's and of Cline's is known: none is shown with a question mark.
func TestEveryKindIsKnown(t *testing.T) {
	t.Parallel()
	for typ, kinds := range map[string]string{
		"ask": "followup command command_output completion_result tool api_req_failed resume_task resume_completed_task mistake_limit_reached use_mcp_server " +
			"auto_approval_max_req_reached browser_action_launch request_limit_reached plan_mode_respond act_mode_respond new_task condense summarize_task report_bug use_subagents",
		"say": "text reasoning api_req_started api_req_finished api_req_retried api_req_retry_delayed api_req_rate_limit_wait api_req_deleted error completion_result " +
			"user_feedback user_feedback_diff command_output shell_integration_warning mcp_server_request_started mcp_server_response subtask_result checkpoint_saved " +
			"rooignore_error diff_error condense_context condense_context_error sliding_window_truncation codebase_search_result user_edit_todos too_many_tools_warning " +
			"image tool task command browser_action browser_action_result browser_session_status new_task new_task_started use_mcp_server checkpoint_created " +
			"deleted_api_reqs subagent_usage clineignore_error error_retry",
	} {
		for _, kind := range strings.Fields(kinds) {
			for _, text := range []string{"", "words", "{}", `{"tool":7}`, "[]"} {
				var o esjson.Object
				o.String("type", typ)
				o.String(typ, kind)
				o.String("text", text)
				if it := UI(o.Bytes(), 2); it.Class == Unknown || it.Class == "" {
					t.Errorf("%s %s %q is of class %q", typ, kind, text, it.Class)
				}
			}
		}
	}
}

func TestBlocksOfOtherTools(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		`{"type":"image","data":"QUJD","mediaType":"image/jpeg"}`:                                            "you image [1 image: jpeg 3 B]",
		`{"type":"image","source":{"type":"url","url":"http://x/y.png"}}`:                                    "you image [1 image: http://x/y.png]",
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}`:        "you document [1 image: application/pdf 3 B]",
		`{"type":"file","path":"a.go","content":"package a\n"}`:                                              "you file a.go|  package a",
		`{"type":"reasoning","summary":[],"encrypted_content":"x"}`:                                          "thinking (encrypted)",
		`{"type":"tool_result","tool_use_id":"c","name":"read_files","content":"x","is_error":true}`:         "result of read_files (error)|  x",
		`{"type":"tool_use","id":"c","name":"n","input":{"path":"a","content":"x\ny\n","n":[1,2],"e":null}}`: "tool n a|  content:|    x|    y|  n: [1,2]",
		`{"type":"tool_use","id":"c","name":"n","input":"half"}`:                                             `tool n|  "half"`,
	} {
		var got []string
		for _, l := range Lines(API([]byte(`{"role":"user","content":[`+block+`]}`), 0), 0)[1:] {
			got = append(got, strings.TrimPrefix(l.Text, "  "))
		}
		if d := cmp.Diff(want, strings.Join(got, "|")); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", block, d)
		}
	}
}

func TestFoldedThinking(t *testing.T) {
	t.Parallel()
	it := Item{Number: 4, Class: Model, Title: "assistant", Parts: []Item{{Class: Reasoning, Body: "1\n2\n3\n"}, {Class: Reasoning}, {Class: Model, Body: "a\nb"}, {Class: Output, Body: "x\ny"}}}
	limit := func(c Class) int { return map[Class]int{Reasoning: -1, Output: 1}[c] }
	want := []Line{{Head, "#4 model assistant"}, {Dim, "  thinking (3 lines folded)"}, {Dim, "  thinking"}, {Said, "  a"}, {Said, "  b"},
		{Dim, "  output"}, {Dim, "    x"}, {Dim, "    ... 1 more line"}}
	if d := cmp.Diff(want, Fold(it, limit)); d != "" {
		t.Error(d)
	}
}

func TestManyPicturesAreNotAllNamed(t *testing.T) {
	t.Parallel()
	it := Item{Class: User, Images: 6, Pictures: []string{"png 1 KB", "", "gif 2 KB", "a", "b", "c"}}
	if got, want := Lines(it, 0)[0].Text, "you [6 images: png 1 KB, gif 2 KB, a, b, and 1 more]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
