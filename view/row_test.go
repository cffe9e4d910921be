package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// row is a UI message whose text is given as it is, not as JSON.
func row(typ, kind, text string) []byte {
	return fmt.Appendf(nil, `{"type":%q,%q:%q,"text":%s}`, typ, typ, kind, esjson.Quote(nil, text))
}

// shown is what the tests below compare: how an item reads.
type shown struct {
	Class       Class
	Title, Body string
	Diff        bool
	Choices     []string
}

func read(raw []byte) shown {
	it := UI(raw, 2)
	return shown{it.Class, it.Title, it.Body, it.Diff, it.Choices}
}

// Every tool that Roo has rows for is named by what it does and to what.
func TestToolRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want shown
	}{
		{`{"tool":"readFile","path":"a.go"}`, shown{Title: "read a.go"}},
		{`{"tool":"readFile","path":"a.go","reason":" (lines 1-9) "}`, shown{Title: "read a.go ((lines 1-9))"}},
		{`{"tool":"readFile","batchFiles":[{"path":"a.go"},{"path":"b.go"},7]}`, shown{Title: "read a.go b.go"}},
		{`{"tool":"listFilesTopLevel","path":"src","content":"a\nb"}`, shown{Title: "list src", Body: "a\nb"}},
		{`{"tool":"listFilesRecursive","path":"src","content":"a"}`, shown{Title: "list all src", Body: "a"}},
		{`{"tool":"searchFiles","path":"src","regex":"f.o","content":"found"}`, shown{Title: "search f.o src", Body: "found"}},
		{`{"tool":"codebaseSearch","query":"where","path":null}`, shown{Title: "search code where"}},
		{`{"tool":"listCodeDefinitionNames","path":"a","content":"func f"}`, shown{Title: "definitions a", Body: "func f"}},
		{`{"tool":"newFileCreated","path":"a","content":"text\n"}`, shown{Title: "create a", Body: "+text", Diff: true}},
		{`{"tool":"newFileCreated","path":"a","content":"x\n@@ not a diff"}`, shown{Title: "create a", Body: "x\n@@ not a diff", Diff: true}},
		{`{"tool":"appliedDiff","path":"a","diff":"@@ -1 +1 @@"}`, shown{Title: "edit a", Body: "@@ -1 +1 @@", Diff: true}},
		{`{"tool":"appliedDiff","path":"a","diff":"@@ -1 +1 @@","content":"@@ -2 +2 @@"}`, shown{Title: "edit a", Body: "@@ -2 +2 @@", Diff: true}},
		{`{"tool":"insertContent","path":"a","content":"x","diffStats":{"added":2,"removed":0}}`, shown{Title: "insert a (+2 -0)", Body: "x"}},
		{`{"tool":"fileDeleted","path":"a","content":"gone"}`, shown{Title: "delete a"}},
		{`{"tool":"switchMode","mode":"architect","reason":"to plan"}`, shown{Title: "switch mode architect", Body: "to plan"}},
		{`{"tool":"newTask","mode":"code","content":"do it"}`, shown{Title: "new task code", Body: "do it"}},
		{`{"tool":"finishTask"}`, shown{Title: "finish task"}},
		{`{"tool":"runSlashCommand","command":"init"}`, shown{Title: "run init"}},
		{`{"tool":"skill","skill":"pdf"}`, shown{Title: "skill pdf"}},
		{`{"tool":"updateTodoList","todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c"},5]}`, shown{Title: "todo list", Body: "[x] a\n[-] b\n[ ] c"}},
		{`{"tool":"updateTodoList","todos":"[x] a\n[ ] b"}`, shown{Title: "todo list", Body: "[x] a\n[ ] b"}},
		{`{"tool":"teleport","path":"mars"}`, shown{Title: "teleport mars"}},
		{`{}`, shown{}},
		{`{"tool":5,"path":["a"],"diffStats":"many"}`, shown{Body: "tool: 5\npath: [\"a\"]"}},
		{`not JSON`, shown{Body: "not JSON"}},
		{`["a"]`, shown{Body: `["a"]`}},
		{`{"tool":"readFile"} and more`, shown{Body: `{"tool":"readFile"} and more`}},
	} {
		tt.want.Class = Tool
		if diff := cmp.Diff(tt.want, read(row("ask", "tool", tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestRequestRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]shown{
		`{"request":"the whole prompt","tokensIn":950,"tokensOut":0}`:    {Title: "request: 950 tokens in, 0 out"},
		`{"tokensIn":1500,"tokensOut":20,"cacheReads":900,"cost":0}`:     {Title: "request: 1.5k tokens in, 20 out, 900 from cache"},
		`{"tokensIn":1500,"tokensOut":20,"cacheReads":0,"cost":1.23456}`: {Title: "request: 1.5k tokens in, 20 out, $1.2346"},
		`{"cost":0.5}`: {Title: "request: $0.5000"},
		`{"tokensIn":7,"tokensOut":1,"cost":1e400}`:                                            {Title: "request: 7 tokens in, 1 out"},
		`{"tokensIn":"7","cost":null}`:                                                         {Title: "request: nothing is recorded of it"},
		`{"cancelReason":"user_cancelled"}`:                                                    {Title: "request: user cancelled"},
		`{"tokensIn":7,"tokensOut":1,"cancelReason":"x","streamingFailedMessage":"the\nline"}`: {Title: "request: 7 tokens in, 1 out, x", Body: "the\nline"},
		`half a {`: {Title: "request"},
		``:         {Title: "request"},
	} {
		want.Class = Request
		if diff := cmp.Diff(want, read(row("say", "api_req_started", text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// What the person is asked shows the question, not the JSON around it.
func TestQuestionRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, text string
		want       shown
	}{
		{"followup", `{"question":"A or B?","suggest":[{"answer":"A","mode":"code"},"B",{"mode":"x"}]}`, shown{Question, "", "A or B?", false, []string{"A", "B", `{"mode":"x"}`}}},
		{"followup", `{"question":"A?","suggest":"A"}`, shown{Question, "", "A?\nsuggest: A", false, nil}},
		{"followup", `{"question":"half`, shown{Question, "", `{"question":"half`, false, nil}},
		{"followup", `bare words`, shown{Question, "", "bare words", false, nil}},
		{"plan_mode_respond", `{"response":"the plan","options":["yes","no"]}`, shown{Question, "", "the plan", false, []string{"yes", "no"}}},
		{"command", "make\ntest", shown{Tool, "$ make\ntest", "", false, nil}},
		{"command_output", "", shown{Note, "the command is running", "", false, nil}},
		{"command_output", "a.txt", shown{Output, "", "a.txt", false, nil}},
		{"api_req_failed", "429", shown{Failure, "the request to the model failed", "429", false, nil}},
		{"mistake_limit_reached", "help", shown{Question, "too many mistakes in a row", "help", false, nil}},
		{"use_mcp_server", `{"serverName":"db","uri":"db://x"}`, shown{Tool, "mcp db db://x", "", false, nil}},
		{"use_mcp_server", `{"serverName":"db","toolName":"q","uri":"u","arguments":"{\"n\":1}"}`, shown{Tool, "mcp db q", "n: 1\nuri: u", false, nil}},
		{"use_mcp_server", `db`, shown{Tool, "use an MCP server", "db", false, nil}},
		{"resume_task", "", shown{Note, "resumed", "", false, nil}},
		{"quantum", "x", shown{Unknown, "ask:quantum", "x", false, nil}},
		{"", "x", shown{Unknown, "ask:", "x", false, nil}},
	} {
		if diff := cmp.Diff(tt.want, read(row("ask", tt.kind, tt.text))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.kind, tt.text, diff)
		}
	}
}

func TestHousekeepingRows(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]shown{
		`{"type":"say","say":"checkpoint_saved","text":"0123456789abcdef"}`:                                                                {Class: Note, Title: "checkpoint 0123456789"},
		`{"type":"say","say":"checkpoint_saved","text":"12345678é日本"}`:                                                                     {Class: Note, Title: "checkpoint", Body: "12345678é日本"},
		`{"type":"say","say":"checkpoint_saved","text":"123456789é"}`:                                                                      {Class: Note, Title: "checkpoint", Body: "123456789é"},
		`{"type":"say","say":"checkpoint_saved"}`:                                                                                          {Class: Note, Title: "checkpoint"},
		`{"type":"say","say":"error_retry","text":"{\"attempt\":1,\"maxAttempts\":3,\"delaySeconds\":2,\"errorMessage\":\"overloaded\"}"}`: {Class: Note, Title: "the request failed; try 1 of 3 in 2 s", Body: "overloaded"},
		`{"type":"say","say":"error_retry","text":"{\"attempt\":3,\"maxAttempts\":3,\"failed\":true}"}`:                                    {Class: Failure, Title: "the request failed 3 times"},
		`{"type":"say","say":"error_retry","text":"soon"}`:                                                                                 {Class: Note, Title: "the request failed; trying again", Body: "soon"},
		`{"type":"say","say":"condense_context"}`:                                                                                          {Class: Note, Title: "older history was condensed"},
		`{"type":"say","say":"condense_context","text":"t","contextCondense":{"prevContextTokens":171000}}`:                                {Class: Note, Title: "older history was condensed", Body: "t"},
		`{"type":"say","say":"sliding_window_truncation","contextTruncation":{"messagesRemoved":12}}`:                                      {Class: Note, Title: "older history is no longer sent: 12 messages"},
		`{"type":"say","say":"sliding_window_truncation","contextTruncation":[]}`:                                                          {Class: Note, Title: "older history is no longer sent"},
		`{"type":"say","say":"user_feedback_diff","text":"{\"path\":\"a\",\"diff\":\"-x\\n+y\"}"}`:                                         {Class: User, Title: "changed a before approving", Body: "-x\n+y", Diff: true},
		`{"type":"say","say":"user_feedback_diff","text":"a diff"}`:                                                                        {Class: User, Title: "changed the file before approving", Body: "a diff"},
		`{"type":"say","say":"error","text":"disk full"}`:                                                                                  {Class: Failure, Title: "error", Body: "disk full"},
		`{"type":"say","say":"completion_result","text":"done"}`:                                                                           {Class: Result, Body: "done"},
		`{"type":"say","say":"reasoning","text":"hm","reasoning":"older"}`:                                                                 {Class: Reasoning, Body: "hm"},
		`{"type":"say","say":"command_output","text":"ok\n"}`:                                                                              {Class: Output, Body: "ok\n"},
		`{"type":"say","say":"text"}`:                                                                                                      {Class: Model},
		`{"type":"say","say":"text","text":7}`:                                                                                             {Class: Model},
		`{"type":"say"}`:                                                                                                                   {Class: Unknown, Title: "say:"},
		`{}`:                                                                                                                               {Class: Unknown, Title: ":"},
		`{"type":"ask","say":"text","text":"x"}`:                                                                                           {Class: Unknown, Title: "ask:", Body: "x"},
		`{"type":"say","say":"text","text":"a","text":"the last one counts"}`:                                                              {Class: Model, Body: "the last one counts"},
		`null`: {Class: Unknown, Title: "not a message", Body: "null"},
		`{"ts":1,"type":"say","say":"text","text":"tor`: {Class: Unknown, Title: "not a message", Body: `{"ts":1,"type":"say","say":"text","text":"tor`},
	} {
		if diff := cmp.Diff(want, read([]byte(raw))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// Why a stored message is not what is sent is part of its title.
func TestAPITags(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"isSummary":true`: "[summary]", `"isSummary":false`: "", `"isTruncationMarker":true`: "[truncation marker]",
		`"truncationParent":"t"`: "[truncated away]", `"condenseParent":"c","truncationParent":"t"`: "[condensed away, truncated away]",
		`"condenseParent":""`: "", `"condenseParent":7`: "",
	} {
		if got := API([]byte(`{"role":"user","content":"x",`+members+`}`), 1); got.Title != want {
			t.Errorf("%s: %q, want %q", members, got.Title, want)
		}
	}
}

func TestResultText(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]struct {
		text   string
		images int
	}{
		`{"content":"plain \ud83d\ude00"}`: {"plain 😀", 0},
		`{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"},"c",{"type":"tool_result"},{"type":"image"}]}`: {"a\nb\nc\n{\"type\":\"tool_result\"}", 2},
		`{"content":[{"query":"/a","result":"one","success":true}]}`:                                                                       {"/a\none", 0},
		`{"content":[]}`: {"", 0}, `{"content":null}`: {"", 0}, `{}`: {"", 0}, `{"content":{"type":"text","text":"a"}}`: {"", 0}, `"x"`: {"", 0},
	} {
		if text, images := ResultText([]byte(block)); text != want.text || images != want.images {
			t.Errorf("%s: %q and %d images", block, text, images)
		}
	}
}

func TestAPIBlocks(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]Item{
		`{"type":"redacted_thinking","data":"secret"}`:              {Kind: "redacted_thinking", Class: Reasoning, Title: "(encrypted)"},
		`{"type":"reasoning","text":"why","summary":[]}`:            {Kind: "reasoning", Class: Reasoning, Body: "why"},
		`{"type":"thoughtSignature","thoughtSignature":"AAAA"}`:     {Kind: "thoughtSignature", Class: Note, Title: "thought signature"},
		`{"type":"image","source":{"data":"AAAA"}}`:                 {Kind: "image", Class: Model, Title: "image", Images: 1, Pictures: []string{"3 B"}},
		`{"type":"tool_use","id":7,"name":null}`:                    {Kind: "tool_use", Class: Tool},
		`{"type":"tool_use","id":"c","name":"n","input":"{\"half"}`: {Kind: "tool_use", Class: Tool, Title: "n", Call: "c", Body: `"{\"half"`},
		`{"type":"tool_result","tool_use_id":"c","content":"out"}`:  {Kind: "tool_result", Class: Output, Title: "result", Call: "c", Body: "out"},
		`{"type":"tool_result","tool_use_id":"c","is_error":"yes"}`: {Kind: "tool_result", Class: Output, Title: "result", Call: "c"},
		`{"text":"no type"}`: {Class: Unknown, Body: `{"text":"no type"}`},
		`"bare"`:             {Kind: "invalid", Class: Unknown, Body: `"bare"`},
		`null`:               {Kind: "invalid", Class: Unknown, Body: `null`},
	} {
		got := API([]byte(`{"role":"assistant","content":[`+block+`]}`), 1)
		if diff := cmp.Diff([]Item{want}, got.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", block, diff)
		}
	}
}

// Nothing that a message says is dropped on the way to its reader, whatever kind it is
// of: a text is shown, as title or as body, except where it is not meant for people.
func TestNoKindDropsItsText(t *testing.T) {
	t.Parallel()
	const words = "the words of this row"
	machine := map[string]string{
		"say:api_req_started":  "it holds JSON, and in old rows the whole prompt",
		"say:checkpoint_saved": "it is a commit's name, and is shortened",
	}
	kinds := map[string][]string{"ask": {"followup", "command", "tool", "use_mcp_server", "one of the future"}, "say": {
		"text", "api_req_started", "tool", "user_edit_todos", "codebase_search_result", "user_feedback_diff", "use_mcp_server", "checkpoint_saved", "error_retry", "condense_context", "sliding_window_truncation", "one of the future",
	}}
	for name := range headings {
		typ, kind, _ := strings.Cut(name, ":")
		kinds[typ] = append(kinds[typ], kind)
	}
	for typ, list := range kinds {
		for _, kind := range list {
			it := UI(row(typ, kind, words), 2)
			var shown string
			for _, l := range Lines(it, 0) {
				shown += l.Text + "\n"
			}
			if _, meant := machine[it.Kind]; !meant && !strings.Contains(shown, words) {
				t.Errorf("%s is shown as %q", it.Kind, shown)
			}
			// A row without text is one line that still says what happened.
			empty := Lines(UI([]byte(`{"type":"`+typ+`","`+typ+`":"`+kind+`"}`), 2), 0)
			if len(empty) != 1 || strings.TrimSpace(strings.TrimPrefix(empty[0].Text, "#2")) == "" {
				t.Errorf("%s without text is shown as %v", it.Kind, empty)
			}
		}
	}
}

// A row that was cut while it was streamed says so, and shows what there was.
func TestInterruptedRows(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`{"type":"say","say":"text","text":"half a sen","partial":true}`:                                   {"#2 model (interrupted)", "  half a sen"},
		`{"type":"say","say":"text","text":"whole","partial":false}`:                                       {"#2 model", "  whole"},
		`{"type":"say","say":"reasoning","partial":true}`:                                                  {"#2 thinking (interrupted)"},
		`{"type":"ask","ask":"command","text":"npm te","partial":true}`:                                    {"#2 tool $ npm te (interrupted)"},
		`{"type":"ask","ask":"tool","text":"{\"tool\":\"newFileCreated\",\"path\":\"a\",","partial":true}`: {"#2 tool (interrupted)", `  {"tool":"newFileCreated","path":"a",`},
		`{"type":"ask","ask":"followup","text":"Which on","partial":true}`:                                 {"#2 question (interrupted)", "  Which on"},
		`{"type":"say","say":"text","text":"odd","partial":"yes"}`:                                         {"#2 model", "  odd"},
	} {
		var got []string
		for _, l := range Lines(UI([]byte(raw), 2), 0) {
			got = append(got, l.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// The first row of a task is the person's, unless it is Cline's own kind for that.
func TestTheFirstRowIsThePersons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   string
		number int
		want   Class
	}{
		{"text", 1, User}, {"text", 2, Model}, {"text", 0, Model}, {"task", 1, User}, {"task", 9, User}, {"user_feedback", 9, User}, {"reasoning", 1, Reasoning},
	} {
		if got := UI(row("say", tt.kind, "x"), tt.number).Class; got != tt.want {
			t.Errorf("%s as number %d is %s, want %s", tt.kind, tt.number, got, tt.want)
		}
	}
}

func TestImagesAreCounted(t *testing.T) {
	t.Parallel()
	for images, want := range map[string]int{`["data:,a","data:,b"]`: 2, `[]`: 0, `null`: 0, `"data:,a"`: 0, `{"0":"data:,a"}`: 0, `[null,[],{}]`: 3} {
		if got := UI([]byte(`{"type":"say","say":"text","text":"x","images":`+images+`}`), 2).Images; got != want {
			t.Errorf("%s: %d images, want %d", images, got, want)
		}
	}
}

// Of a member that is there twice the last one counts, as for JSON.parse: what a person
// approves must be what Roo would have shown.
func TestTheLastDuplicateIsShown(t *testing.T) {
	t.Parallel()
	got := read([]byte(`{"type":"say","type":"ask","ask":"command","text":"ls","text":"rm -rf /"}`))
	if diff := cmp.Diff(shown{Class: Tool, Title: "$ rm -rf /"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachHeadingHasAClass(t *testing.T) {
	t.Parallel()
	for kind, h := range headings {
		if _, known := looksOf[h.class]; !known {
			t.Errorf("%s has the class %q", kind, h.class)
		}
	}
}
