package approval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/conformance"
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
		ask.Protected = false // Roo says it of files
		return "mcp", ask
	}
	ask.Kind = "followup" // questions to the person
	return tool.Control, ask
}

// TestVectorsAskApproval compares with Roo's own decisions under the same settings, taken
// over as a policy, or with what is wanted where we differ by choice.
func TestVectorsAskApproval(t *testing.T) {
	roos := map[string]State{"approve": Allow, "timeout": Allow, "ask": Ask, "deny": Deny}
	conformance.Run(t, "ask_auto_approval", func(t *testing.T, c conformance.Case) (choice bool) {
		decision, state := c.Want.Str("decision"), c.Input.Get("state")
		want, known := roos[decision]
		if !known {
			t.Fatalf("unknown decision %q", decision)
		}
		if state == nil {
			state = []byte("{}")
		}
		var roo Roo
		if err := json.Unmarshal(state, &roo); err != nil {
			t.Fatal(err)
		}
		kind, text := c.Input.Str("ask"), c.Input.Str("text")
		if kind == "command_output" { // no call here: what a command prints is never asked about
			if want != Allow {
				t.Errorf("Roo says %s", decision)
			}
			return false
		}
		class, ask := asRoo(kind, text, c.Input.Bool("is_protected", false))
		why := "so does Roo"
		switch files := class == tool.Read || class == tool.Write; {
		case kind == "command":
			want, why = ownCommand(text, state.Get("allowedCommands").Strings(), state.Get("deniedCommands").Strings(), want)
			if want == Allow && ask.Protected {
				want, why = Ask, "it changes a protected file"
			}
		case want != Allow:
		case ask.Kind == "followup":
			want, why = Ask, "no policy answers the model's questions"
		case files && ask.Protected:
			want, why = Ask, "no policy opens a protected file"
		case files && ask.Outside && !state.Bool(map[tool.Class]string{tool.Read: "alwaysAllowReadOnlyOutsideWorkspace", tool.Write: "alwaysAllowWriteOutsideWorkspace"}[class], false):
			want, why = Ask, "its path leads out, whatever the row says"
		}
		if got := Decide(roo.Policy(), class, ask); got.State != want {
			t.Errorf("%s %s: %+v, want %s because %s; Roo says %s", kind, text, got, want, why, decision)
		}
		return want != roos[decision] || decision == "timeout"
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
			t.Errorf("%q: got %+v, %v, want errors.Is(err, ErrNoRoo)", text, r, err)
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
			t.Errorf("got %+v: %q, want got = %v", tt, got, tt.want)
		}
	}
}
