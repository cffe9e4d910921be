package approval

import (
	"testing"

	"github.com/roost-dev/roost/tool"
)

func TestDecide(t *testing.T) {
	var in, out, prot, ign = tool.Ask{}, tool.Ask{Outside: true}, tool.Ask{Protected: true}, tool.Ask{Ignored: true}
	cmd := func(s string) tool.Ask { return tool.Ask{Kind: "command", Command: s, Text: s} }
	modes := []string{ModeAsk, ModeRead, ModeEdits, ModeAll, "", "nonsense"}
	tests := []struct {
		name  string
		class tool.Class
		ask   tool.Ask
		want  string // a letter for each mode: a(llow), ?(ask)
	}{
		{"read inside", tool.Read, in, "aaaaaa"},
		{"read outside", tool.Read, out, "?aaa??"},
		{"read protected", tool.Read, prot, "??????"},
		{"read ignored", tool.Read, ign, "???a??"},
		{"write inside", tool.Write, in, "??aa??"},
		{"write outside", tool.Write, out, "???a??"},
		{"write protected", tool.Write, prot, "??????"},
		{"write ignored", tool.Write, ign, "???a??"},
		{"command", tool.Command, cmd("ls"), "???a??"},
		{"command with two texts", tool.Command, tool.Ask{Command: "ls", Text: "rm"}, "??????"},
		{"command without text", tool.Command, tool.Ask{}, "??????"},
		{"protected command", tool.Command, tool.Ask{Command: "ls", Protected: true}, "??????"},
		{"question", tool.Control, tool.Ask{Kind: "followup"}, "??????"},
		{"completion", tool.Control, tool.Ask{Kind: "completion_result"}, "aaaaaa"},
		{"unknown class", "other", in, "??????"},
	}
	for _, tt := range tests {
		for i, mode := range modes {
			want := map[byte]State{'a': Allow, '?': Ask}[tt.want[i]]
			if got := Decide(Policy{Mode: mode}, tt.class, tt.ask); got.State != want || got.Reason == "" {
				t.Errorf("%s, mode %q: %+v, want %s", tt.name, mode, got, want)
			}
		}
	}
}

func TestDecideCommandPatterns(t *testing.T) {
	p := Policy{Allow: []string{"git log", "rm"}, Deny: []string{"rm", "git push"}}
	tests := []struct {
		mode, line string
		outside    bool
		want       State
		by, rule   string
	}{
		{ModeAsk, "git log", false, Allow, "allow", "git log"},
		{ModeAsk, "git log", true, Ask, "policy", ModeAsk},
		{ModeAsk, "git log | cat", false, Ask, "policy", ModeAsk},
		{ModeAll, "git log | cat", true, Allow, "policy", ModeAll},
		{ModeAll, "rm x", false, Deny, "deny", "rm"},
		{ModeAll, "sudo git push", false, Deny, "deny", "git push"},
		{ModeAll, "$x", false, Ask, "policy", ModeAll},
		{ModeAll, "ls 'a", false, Ask, "policy", ModeAll},
	}
	for _, tt := range tests {
		p.Mode = tt.mode
		got := Decide(p, tool.Command, tool.Ask{Command: tt.line, Outside: tt.outside})
		if got.State != tt.want || got.By != tt.by || got.Rule != tt.rule {
			t.Errorf("%s %q: %+v", tt.mode, tt.line, got)
		}
	}
	if got := Decide(Policy{Mode: ModeAll}, tool.Command, tool.Ask{Command: "$x"}); got.State != Allow {
		t.Errorf("without denies: %+v", got)
	}
}

func TestAllowToolsStayInside(t *testing.T) {
	p := Policy{AllowTools: []string{"write_to_file", "execute_command", ""}}
	tests := []struct {
		class tool.Class
		ask   tool.Ask
		want  State
	}{
		{tool.Write, tool.Ask{Tool: "write_to_file"}, Allow},
		{tool.Write, tool.Ask{Title: "write_to_file a.go"}, Allow},
		{tool.Write, tool.Ask{Tool: "apply_diff", Title: "write_to_file"}, Ask},
		{tool.Write, tool.Ask{}, Ask},
		{tool.Write, tool.Ask{Tool: "write_to_file", Outside: true}, Ask},
		{tool.Write, tool.Ask{Tool: "write_to_file", Protected: true}, Ask},
		{tool.Write, tool.Ask{Tool: "write_to_file", Ignored: true}, Ask},
		{tool.Command, tool.Ask{Tool: "execute_command", Command: "ls"}, Ask},
		{tool.Control, tool.Ask{Tool: "write_to_file", Kind: "followup"}, Ask},
	}
	for _, tt := range tests {
		if got := Decide(p, tt.class, tt.ask); got.State != tt.want {
			t.Errorf("%s %+v: %+v", tt.class, tt.ask, got)
		}
	}
}
