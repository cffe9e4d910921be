package approval

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
		{"write through a link out", tool.Write, tool.Ask{Outside: true, LinkedOutside: true}, "??????"},
		{"read through a link out", tool.Read, tool.Ask{Outside: true, LinkedOutside: true}, "?aaa??"},
		{"write protected", tool.Write, prot, "??????"},
		{"write a hidden file", tool.Write, tool.Ask{Paths: []string{"sub/.envrc"}}, "???a??"},
		{"write what agents obey", tool.Write, tool.Ask{Paths: []string{"a.go", "CLAUDE.md"}}, "???a??"},
		{"write a plain hidden file", tool.Write, tool.Ask{Paths: []string{".gitignore"}}, "??aa??"},
		{"read a hidden file", tool.Read, tool.Ask{Paths: []string{".envrc"}}, "aaaaaa"},
		{"write ignored", tool.Write, ign, "???a??"},
		{"command", tool.Command, cmd("ls"), "???a??"},
		{"command with two texts", tool.Command, tool.Ask{Command: "ls", Text: "rm"}, "??????"},
		{"command without text", tool.Command, tool.Ask{}, "??????"},
		{"protected command", tool.Command, tool.Ask{Command: "ls", Protected: true}, "??????"},
		{"question", tool.Control, tool.Ask{Kind: "followup"}, "??????"},
		{"completion", tool.Control, tool.Ask{Kind: "completion_result"}, "aaaaaa"},
		{"unknown class", "other", in, "??????"},
		{"an MCP server's tool", tool.MCP, in, "???a??"},
		{"one that its settings allow", tool.MCP, tool.Ask{Agreed: "alwaysAllow"}, "aaaaaa"},
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
			t.Errorf("got %s %q: %+v, want got.State = %v and got.By = tt.by and got.Rule = tt.rule",
				tt.mode, tt.line, got, tt.want)
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
		{tool.Write, tool.Ask{Tool: "write_to_file", Paths: []string{".envrc"}}, Ask},
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
			t.Errorf("got %s %+v: %+v, want got.State = %v", tt.class, tt.ask, got, tt.want)
		}
	}
}

func askOf(line string) tool.Ask { return tool.Ask{Kind: "command", Command: line, Text: line} }

// Modes form a ladder: what a lower one lets through, a higher one does, too. And no
// rung of it reaches protected files or the user's own words.
func TestModesAreALadder(t *testing.T) {
	ladder := []string{ModeAsk, ModeRead, ModeEdits, ModeAll}
	rapid.Check(t, func(t *rapid.T) {
		class := rapid.SampledFrom([]tool.Class{tool.Read, tool.Write, tool.Command, tool.Control, "other", ""}).Draw(t, "class")
		line := rapid.SampledFrom([]string{"", "ls", "git log", "rm x", "ls | cat", "$x"}).Draw(t, "line")
		ask := tool.Ask{
			Tool: rapid.SampledFrom([]string{"", "read_file", "write_to_file"}).Draw(t, "tool"), Kind: rapid.SampledFrom([]string{"tool", "command", "followup"}).Draw(t, "kind"),
			Command: line, Text: line, Outside: rapid.Bool().Draw(t, "outside"), Protected: rapid.Bool().Draw(t, "protected"), Ignored: rapid.Bool().Draw(t, "ignored"),
		}
		p := Policy{
			Allow: rapid.SliceOfN(rapid.SampledFrom([]string{"ls", "git log", "*"}), 0, 2).Draw(t, "allow"), Deny: rapid.SliceOfN(rapid.SampledFrom([]string{"rm", "git"}), 0, 2).Draw(t, "deny"),
			AllowTools: rapid.SliceOfN(rapid.SampledFrom([]string{"read_file", "write_to_file", ""}), 0, 2).Draw(t, "tools"),
		}
		allowed := false
		for _, mode := range ladder {
			p.Mode = mode
			d := Decide(p, class, ask)
			if d.Reason == "" || d.By == "" {
				t.Fatalf("%s: no reason: %+v", mode, d)
			}
			if allowed && d.State != Allow {
				t.Fatalf("%+v is allowed below %s and there %+v", ask, mode, d)
			}
			allowed = d.State == Allow
			control := class == tool.Control && ask.Kind != "followup"
			if allowed && !control && (ask.Protected || class == tool.Control || class == "other" || class == "") {
				t.Fatalf("%s lets %s %+v through: %+v", mode, class, ask, d)
			}
			if d.State == Deny && (class != tool.Command || len(p.Deny) == 0) {
				t.Fatalf("%s denies %s %+v: %+v", mode, class, ask, d)
			}
		}
	})
}

func TestValidMode(t *testing.T) {
	for mode, want := range map[string]bool{ModeAsk: true, ModeRead: true, ModeEdits: true, ModeAll: true, "": false, "ALL": false, "all ": false, "yes": false} {
		if ValidMode(mode) != want {
			t.Errorf("%q: got %v, want ValidMode(mode) = %v", mode, !want, want)
		}
	}
}

// Who decided, by which rule and why, is what the task's record and the person see.
func TestDecisionsSayWhy(t *testing.T) {
	p := Policy{Allow: []string{"git log"}, Deny: []string{"git push"}, AllowTools: []string{"write_to_file"}}
	for _, tt := range []struct {
		name  string
		mode  string
		class tool.Class
		ask   tool.Ask
		want  Decision
	}{
		{"allowed by a pattern", ModeAsk, tool.Command, askOf("git log -3"),
			Decision{Allow, "allow", "git log", `the pattern "git log" allows it`}},
		{"denied by a pattern", ModeAll, tool.Command, askOf("ls && git push"),
			Decision{Deny, "deny", "git push", `the pattern "git push" denies it`}},
		{"allowed by the mode", ModeAll, tool.Command, askOf("ls"),
			Decision{Allow, "policy", ModeAll, "every command that is not denied is allowed"}},
		{"nothing allows it", ModeEdits, tool.Command, askOf("ls"),
			Decision{Ask, "policy", ModeEdits, "no pattern allows it"}},
		{"it cannot be told", ModeAll, tool.Command, askOf("git $x"),
			Decision{Ask, "policy", ModeAll, "what git runs is only known when it runs, so a deny pattern cannot be ruled out"}},
		{"two texts", ModeAll, tool.Command, tool.Ask{Command: "git log", Text: "git  log"},
			Decision{Ask, "policy", ModeAll, "the command line is not known for sure"}},
		{"outside, though a pattern allows it", ModeAsk, tool.Command, tool.Ask{Command: "git log", Outside: true},
			Decision{Ask, "policy", ModeAsk, "it runs outside the visible workspace"}},
		{"allowed by a rule", ModeAsk, tool.Write, tool.Ask{Tool: "write_to_file"},
			Decision{Allow, "rule", "write_to_file", `the rule "write_to_file" allows it`}},
		{"a protected file", ModeAll, tool.Write, tool.Ask{Tool: "write_to_file", Protected: true},
			Decision{Ask, "policy", ModeAll, "it touches a protected file"}},
		{"a hidden file", ModeEdits, tool.Read, tool.Ask{Ignored: true},
			Decision{Ask, "policy", ModeEdits, "it touches what .rooignore hides"}},
		{"outside", ModeAsk, tool.Read, tool.Ask{Outside: true},
			Decision{Ask, "policy", ModeAsk, "it reads outside the workspace"}},
		{"a write outside", ModeEdits, tool.Write, tool.Ask{Outside: true},
			Decision{Ask, "policy", ModeEdits, "it writes outside the workspace"}},
		{"an unknown mode asks as the strictest does", "yolo", tool.Write, tool.Ask{},
			Decision{Ask, "policy", ModeAsk, "writing needs permission"}},
		{"a question", ModeAll, tool.Control, tool.Ask{Kind: "followup"},
			Decision{Ask, "policy", ModeAll, "a question to the user is answered by the user"}},
	} {
		p.Mode = tt.mode
		if diff := cmp.Diff(tt.want, Decide(p, tt.class, tt.ask)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func ExampleDecide() {
	p := Policy{Mode: ModeEdits, Deny: []string{"rm"}}
	d := Decide(p, tool.Command, tool.Ask{Command: "find . -name x | xargs rm"})
	fmt.Println(d.State, d.By, d.Rule)
	// Output: deny deny rm
}

// What a server's own settings allow gives way to the person's rules.
func TestRulesComeBeforeAServersSettings(t *testing.T) {
	ask := tool.Ask{Tool: "use_mcp_tool", Title: "mcp--s--t {}", Paths: []string{"s/t"}, Agreed: "alwaysAllow of the server s"}
	for want, p := range map[State]Policy{
		Allow: {},
		Ask:   {AskTools: []string{"mcp"}},
		Deny:  {DenyTools: []string{"use_mcp_tool(s/t)"}, Mode: ModeAll},
	} {
		if d := Decide(p, tool.MCP, ask); d.State != want || want == Allow && d.Rule != ask.Agreed {
			t.Errorf("got %+v: %+v, want d.State = %v and (want != Allow or d.Rule = ask.Agreed)", p, d, want)
		}
	}
}
