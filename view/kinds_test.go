package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// looks is a message as a terminal gets it, thinking and additions folded.
func looks(it Item) string {
	var out []string
	for _, l := range Fold(it, func(c Class) int {
		if c == Reasoning || c == Appended {
			return -1
		}
		return 0
	}) {
		out = append(out, strings.TrimRight(l.Text, " "))
	}
	return strings.Join(out, "\n")
}

// What every kind of row that a task of today holds looks like. The text is what Roo or
// Cline writes there.
func TestWhatEveryRowLooksLike(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, text, want string }{
		{"ask:followup", `{"question":"which?","suggest":[{"answer":"A"},{"answer":"B","mode":"code"}]}`, "question\n  which?\n  1. A\n  2. B"},
		{"ask:command", "npm test", "tool $ npm test"},
		{"ask:command_output", "", "· the command is running"},
		{"ask:command_output", "ok\n", "output\n  ok"},
		{"ask:completion_result", "", "· waiting for the next word"},
		{"ask:completion_result", "HAS_CHANGES", "· waiting for the next word"},
		{"say:completion_result", "Done.HAS_CHANGES", "result\n  Done."},
		{"ask:api_req_failed", `{"message":"429","modelId":"m"}`, "the request to the model failed\n  429\n  modelId: m"},
		{"ask:api_req_failed", "Connection error.", "the request to the model failed\n  Connection error."},
		{"ask:resume_task", "", "· resumed"},
		{"ask:resume_completed_task", "", "· resumed after completion"},
		{"ask:mistake_limit_reached", "help me", "question too many mistakes in a row\n  help me"},
		{"ask:use_mcp_server", `{"type":"use_mcp_tool","serverName":"db","toolName":"query","arguments":"{\"sql\":\"select 1\",\"rows\":[1,2]}"}`, "tool mcp db query\n  sql: select 1\n  rows: [1,2]"},
		{"ask:use_mcp_server", `{"type":"use_mcp_tool","serverName":"db","toolName":"query","arguments":"half {"}`, "tool mcp db query\n  half {"},
		{"ask:new_task", "go on there", "tool new task\n  go on there"},
		{"ask:plan_mode_respond", `{"response":"so","options":["go"]}`, "question\n  so\n  1. go"},
		{"ask:use_subagents", `{"prompts":["a","b"]}`, "tool use subagents\n  prompts: [\"a\",\"b\"]"},
		{"say:text", "", "model"},
		{"say:reasoning", "a\nb", "thinking (2 lines folded)"},
		{"say:api_req_started", `{"tokensIn":10,"tokensOut":2,"cost":0.1,"cancelReason":"streaming_failed","streamingFailedMessage":"{\"message\":\"terminated\",\"code\":\"ECONNRESET\"}"}`,
			"request: 10 tokens in, 2 out, $0.1000, streaming failed\n  terminated\n  code: ECONNRESET"},
		{"say:error", `{"message":"no"}`, "error\n  no"},
		{"say:error", "no", "error\n  no"},
		{"say:error_retry", `{"attempt":1,"maxAttempts":3,"delaySeconds":2,"errorMessage":"{\"message\":\"x\"}"}`, "· the request failed; try 1 of 3 in 2 s\n  x"},
		{"say:diff_error", "no match", "failed the change did not fit\n  no match"},
		{"say:rooignore_error", ".env", "failed hidden by .rooignore\n  .env"},
		{"say:completion_result", `{"it":"is JSON, and the model's own"}`, "result\n  {\"it\":\"is JSON, and the model's own\"}"},
		{"say:user_feedback", `{"a":1}`, "you\n  {\"a\":1}"},
		{"say:user_feedback_diff", `{"tool":"editedExistingFile","path":"a","diff":"@@ -1 +1 @@\n-x\n+y"}`, "you changed a before approving\n  @@ -1 +1 @@\n  -x\n  +y"},
		{"say:command_output", "10%\n20%\n100%\nok", "output\n  10%\n  20%\n  100%\n  ok"},
		{"say:mcp_server_response", `{"rows":[1,2],"next":null}`, "output the MCP server's answer\n  rows: [1,2]"},
		{"say:checkpoint_saved", "0123456789abcdef", "· checkpoint 0123456789"},
		{"say:condense_context_error", "too short", "failed condensing failed\n  too short"},
		{"say:tool", `{"tool":"readCommandOutput","path":"cmd-1.txt"}`, "tool read output cmd-1.txt"},
		{"say:task_progress", "- [ ] a", "· progress\n  - [ ] a"},
		{"say:telepathy", `{"to":"you","words":"hm"}`, "? say:telepathy\n  to: you\n  words: hm"},
		{"say:telepathy", "hm", "? say:telepathy\n  hm"},
		{"ask:tool", `{"tool":"appliedDiff","path":"a","diff":"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"}`, "tool edit a\n  @@\n  -x\n  +y"},
		{"ask:tool", `{"tool":"editedExistingFile","path":"a","content":"------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"}`, "tool edit a\n  @@\n  -x\n  +y"},
		{"ask:tool", `{"tool":"editedExistingFile","path":"a","content":"the file as it comes","diff":""}`, "tool edit a\n  the file as it comes"},
		{"ask:tool", `{"tool":"newFileCreated","path":"a","content":"@@ -0,0 +1 @@\n+x"}`, "tool create a\n  @@ -0,0 +1 @@\n  +x"},
		{"ask:tool", `{"tool":"newFileCreated","path":"a","content":"x\ny\n"}`, "tool create a\n  +x\n  +y"},
	} {
		typ, kind, _ := strings.Cut(tt.kind, ":")
		var o esjson.Object
		o.String("type", typ)
		o.String(typ, kind)
		o.String("text", tt.text)
		it := UI(o.Bytes(), 2)
		it.Number = 0
		if strings.HasPrefix(tt.want, "failed condensing failed") {
			tt.want = strings.TrimPrefix(tt.want, "failed ") // it says so itself
		}
		if d := cmp.Diff(tt.want, looks(it)); d != "" {
			t.Errorf("got %s %s: %s, want d = \"\"", tt.kind, tt.text, d)
		}
	}
}

// What every kind of block looks like.
func TestWhatEveryBlockLooksLike(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		`{"type":"text","text":"words"}`:                     "  words",
		`{"type":"thinking","thinking":"a\nb"}`:              "  thinking (2 lines folded)",
		`{"type":"reasoning","text":"a"}`:                    "  thinking (1 line folded)",
		`{"type":"redacted_thinking","data":"x"}`:            "  thinking (encrypted)",
		`{"type":"thoughtSignature","thoughtSignature":"x"}`: "  · thought signature",
		`{"type":"tool_use","id":"c","name":"read_file","input":{"files":[{"path":"a"},{"path":"b","line_ranges":[[1,2]]}]}}`:                           "  tool read_file a b",
		`{"type":"tool_use","id":"c","name":"execute_command","input":{"command":"make\ntest","cwd":null}}`:                                             "  tool execute_command make\n    test",
		`{"type":"tool_use","id":"c","name":"new_task","input":{"mode":"code","message":"do\nit","todos":null}}`:                                        "  tool new_task code\n    do\n    it",
		`{"type":"tool_use","id":"c","name":"update_todo_list","input":{"todos":"[x] a\n[ ] b"}}`:                                                       "  tool update_todo_list\n    [x] a\n    [ ] b",
		`{"type":"tool_use","id":"c","name":"ask_followup_question","input":{"question":"which?","follow_up":[{"text":"A","mode":null},{"text":"B"}]}}`: "  question ask_followup_question\n    which?\n    1. A\n    2. B",
		`{"type":"tool_use","id":"c","name":"attempt_completion","input":{"result":"Done."}}`:                                                           "  result attempt_completion\n    Done.",
		`{"type":"tool_use","id":"c","name":"search_files","input":{"path":"src","regex":"a+","file_pattern":null}}`:                                    "  tool search_files src\n    regex: a+",
		`{"type":"tool_use","id":"c","name":"mcp--db--query","input":{"sql":"select\n1"}}`:                                                              "  tool mcp--db--query\n    sql:\n      select\n      1",
		`{"type":"tool_use","id":"c","name":"x","input":{}}`:                                                                                            "  tool x",
		`{"type":"tool_use","id":"c","name":"x"}`:                                                                                                       "  tool x",
		`{"type":"tool_use","id":"c","name":"x","input":{"list":[{"a":"` + strings.Repeat("b", 80) + `"}]}}`:                                            "  tool x\n    list:\n      [\n        {\n          \"a\": \"" + strings.Repeat("b", 80) + "\"\n        }\n      ]",
		`{"type":"tool_result","tool_use_id":"c","content":"<file><path>a</path>\n<error>gone</error></file>","is_error":true}`:                         "  result (error)\n    a:\n    gone",
		`{"type":"hologram","x":1}`: "  ? hologram\n    {\"type\":\"hologram\",\"x\":1}",
		`7`:                         "  ?\n    7",
	} {
		it := API([]byte(`{"role":"assistant","content":[`+block+`]}`), 0)
		if d := cmp.Diff("model\n"+want, looks(it)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", block, d)
		}
	}
}

// A progress report is told by its last line, when output is cut; whole output is whole.
func TestProgressIsTold(t *testing.T) {
	t.Parallel()
	body := "begin\nCounting:   4% (1/22)\rCounting:   9% (2/22)\rCounting: 100% (22/22)\nWriting: 50%\nend\n100% sure\n99 bottles\n98 bottles"
	lines := func(most int) (out []string) {
		for _, l := range Lines(Item{Class: Output, Body: body}, most)[1:] {
			out = append(out, strings.TrimPrefix(l.Text, "  "))
		}
		return out
	}
	if d := cmp.Diff([]string{"begin", "Counting: 100% (22/22) (the last of 3 such lines)", "Writing: 50%", "end", "100% sure", "99 bottles", "98 bottles"}, lines(20)); d != "" {
		t.Error(d)
	}
	if got := lines(0); len(got) != 9 {
		t.Errorf("all lines are %q", got)
	}
}

// Where the bytes of a picture are there, they are given on; where they are not, nothing is
// made up.
func TestPicturesBytes(t *testing.T) {
	t.Parallel()
	const png = "data:image/png;base64,iVBORw0KGgo="
	for raw, want := range map[string][]string{
		`{"type":"say","say":"text","images":["` + png + `","https://x/y.png",7]}`:                                 {png, "", ""},
		`{"type":"say","say":"text","images":["https://x/y.png"]}`:                                                 nil,
		`{"type":"say","say":"image","text":"{\"imageUri\":\"` + png + `\",\"imagePath\":\"a.png\"}"}`:             {png},
		`{"type":"say","say":"browser_action_result","images":["a"],"text":"{\"screenshot\":\"` + png + `\"}"}`:    {"", png},
		`{"type":"say","say":"browser_action_result","text":"{\"screenshot\":\"x\"}"}`:                             nil,
		`{"type":"say","say":"browser_action_result","images":["` + png + `"],"text":"{\"screenshot\":\"gone\"}"}`: {png, ""},
	} {
		it := UI([]byte(raw), 2)
		if d := cmp.Diff(want, it.Data); d != "" || len(it.Pictures) != it.Images || it.Data != nil && len(it.Data) != it.Images {
			t.Errorf("%s: %d images, %d named: %s", raw, it.Images, len(it.Pictures), d)
		}
	}
	for block, want := range map[string][]string{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`:                                                                                                  {png},
		`{"type":"image","data":"iVBORw0KGgo=","mediaType":"image/png"}`:                                                                                                                              {png},
		`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`:                                                                                                                            nil,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"iVBORw0KGgo="}}`:                                                                                         nil,
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"},{"type":"image"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}`: {"", png},
	} {
		it := API([]byte(`{"role":"user","content":[`+block+`]}`), 1).Parts[0]
		if d := cmp.Diff(want, it.Data); d != "" || len(it.Pictures) != it.Images {
			t.Errorf("%s: %d images, %d named: %s", block, it.Images, len(it.Pictures), d)
		}
	}
	if it := ToolResult([]byte(`null`)); it.Class != Output || it.Body != "" {
		t.Errorf("a result that is none: %+v", it)
	}
}
