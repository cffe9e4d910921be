package approval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/conformance"
	"github.com/roost-dev/roost/tool"
)

// rooTools are the names in Roo's rows, and what they are here.
var rooTools = map[string]struct {
	name  string
	class tool.Class
}{
	"readFile": {"read_file", tool.Read}, "listFilesTopLevel": {"list_files", tool.Read}, "listFilesRecursive": {"list_files", tool.Read}, "searchFiles": {"search_files", tool.Read},
	"codebaseSearch": {"codebase_search", tool.Read}, "runSlashCommand": {"run_slash_command", tool.Read},
	"editedExistingFile": {"write_to_file", tool.Write}, "newFileCreated": {"write_to_file", tool.Write}, "appliedDiff": {"apply_diff", tool.Write}, "generateImage": {"generate_image", tool.Write},
	"updateTodoList": {"update_todo_list", tool.Control}, "skill": {"skill", tool.Control}, "switchMode": {"switch_mode", tool.Control}, "newTask": {"new_task", tool.Control}, "finishTask": {"finish_task", tool.Control},
}

// asRoo is Roo's row as the call that it speaks of.
func asRoo(kind, text string, protected bool) (tool.Class, tool.Ask) {
	ask := tool.Ask{Kind: kind, Text: text, Tool: kind, Protected: protected}
	var row struct {
		Tool, Path, Type, ServerName, ToolName string
		Outside                                bool `json:"isOutsideWorkspace"`
	}
	_ = json.Unmarshal([]byte(text), &row) // what cannot be read is an unknown tool
	switch kind {
	case "command":
		ask.Command = text
		return tool.Command, ask
	case "tool":
		t, ok := rooTools[row.Tool]
		if !ok {
			return "unknown", ask
		}
		ask.Tool = t.name
		ask.Paths, ask.Outside = []string{"a"}, row.Outside || strings.HasPrefix(row.Path, "../")
		if ask.Outside {
			ask.Paths = []string{"/elsewhere/a"}
		}
		return t.class, ask
	case "use_mcp_server":
		ask.Tool, ask.Paths = row.Type, []string{row.ServerName + "/" + row.ToolName}
		if row.Type == "access_mcp_resource" {
			ask.Paths = []string{row.ServerName}
		}
		return "mcp", ask
	case "command_output":
		return tool.Control, ask
	}
	ask.Kind = "followup" // questions to the person
	return tool.Control, ask
}

// TestVectorsAskApproval compares with Roo's own decisions under the same settings,
// taken over as a policy. Where ours differs it is stricter.
func TestVectorsAskApproval(t *testing.T) {
	strictness := map[string]int{"approve": 0, "timeout": 0, "ask": 1, "deny": 2}
	conformance.Run(t, "ask_auto_approval", func(t *testing.T, c conformance.Case) (choice bool) {
		state := c.Input.Get("state")
		var roo Roo
		if len(state) == 0 {
			state = []byte("{}")
		}
		if err := json.Unmarshal(state, &roo); err != nil {
			t.Fatal(err)
		}
		kind, text := c.Input.Str("ask"), c.Input.Str("text")
		class, ask := asRoo(kind, text, c.Input.Bool("is_protected", false))
		got := Decide(roo.Policy(), class, ask)
		want, known := strictness[c.Want.Str("decision")]
		ours := map[State]int{Allow: 0, Ask: 1, Deny: 2}[got.State]
		switch {
		case !known:
			t.Fatalf("unknown decision %q", c.Want.Str("decision"))
		case ours == want && c.Want.Str("decision") != "timeout":
			return false
		case ours < want:
			t.Errorf("%s %s: %+v, Roo says %s", kind, text, got, c.Want.Str("decision"))
		case kind == "followup": // no policy answers the model's questions
		case ask.Protected: // no policy opens a protected file
		case ask.Outside && !strings.Contains(text, `"isOutsideWorkspace":true`): // its path leads out, whatever the row says
		case kind == "command" && got.State == Ask: // not plain words, or a word that only begins like a pattern
		case kind == "command" && !roo.Execute || !roo.Enabled: // what is denied stays denied
		default:
			t.Errorf("%s %s: %+v, Roo says %s", kind, text, got, c.Want.Str("decision"))
		}
		return true
	})
}

// TestReadRoo: the exported file, its settings alone, and what is neither.
func TestReadRoo(t *testing.T) {
	const settings = `{"autoApprovalEnabled":true,"alwaysAllowReadOnly":true,"alwaysAllowWrite":true,"alwaysAllowExecute":true,"allowedCommands":["git log"," ","*"],"deniedCommands":["rm",""],"allowedMaxRequests":20,"allowedMaxCost":1.5,
	 "mcpServers":[{"name":"s","tools":[{"name":"t","alwaysAllow":true},{"name":"u"},{"name":"*","alwaysAllow":true},{"name":"../x","alwaysAllow":true}]}],"alwaysAllowMcp":true,"other":{"deep":[1]}}`
	want := Policy{
		Mode: ModeAsk, Allow: []string{"git log"}, Deny: []string{"rm"},
		AllowTools: []string{"write", "access_mcp_resource", "use_mcp_tool(s/t)"}, AskTools: []string{"switch_mode", "new_task", "finish_task"},
	}
	for _, text := range []string{settings, `{"providerProfiles":{},"globalSettings":` + settings + `}`} {
		roo, err := ReadRoo([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, roo.Policy()); d != "" {
			t.Error(d)
		}
		if n, usd := roo.Limits(); n != 20 || usd != 1_500_000 {
			t.Errorf("limits %d, %d", n, usd)
		}
	}
	for _, text := range []string{"", "[]", "null", `{"globalSettings":3}`, `{"autoApprovalEnabled":"yes"}`, `{"providerProfiles":{}}`, `{`} {
		if r, err := ReadRoo([]byte(text)); !errors.Is(err, ErrNoRoo) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

// TestReached is Roo's counting: the request that comes counts, a cost is over its
// limit by more than a hundredth of a cent.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		maxRequests, requests int
		maxMicros, micros     int64
		want                  string
	}{
		{0, 1000, 0, 1e9, ""},
		{2, 1, 0, 0, ""},
		{2, 2, 0, 0, `{"count":2,"type":"requests"}`},
		{0, 0, 1_500_000, 1_500_000, ""},
		{0, 0, 1_500_000, 1_500_100, ""},
		{0, 0, 1_500_000, 1_500_101, `{"count":"1.50","type":"cost"}`},
		{1, 1, 1, 1e6, `{"count":1,"type":"requests"}`},
	} {
		if got := Reached(tt.maxRequests, tt.maxMicros, tt.requests, tt.micros); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
