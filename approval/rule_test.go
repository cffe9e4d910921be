package approval

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/tool"
)

// files is a call of a tool that touches files by these names.
func files(name string, paths ...string) tool.Ask {
	ask := tool.Ask{Tool: name, Kind: "tool", Paths: paths}
	for _, p := range paths {
		ask.Outside = ask.Outside || strings.HasPrefix(p, "/")
	}
	return ask
}

// TestRules is what each kind of rule covers: all of a call to allow it, any of it to
// ask or to refuse.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		rule          string
		class         tool.Class
		ask           tool.Ask
		allows, stops bool
	}{
		{"write_to_file", tool.Write, files("write_to_file", "a"), true, true},
		{"write_to_file", tool.Write, files("apply_diff", "a"), false, false},
		{"write_to_file", tool.Write, files("write_to_file", "/etc/x"), false, true},
		{"write", tool.Write, files("apply_diff", "a"), true, true},
		{"write", tool.Read, files("read_file", "a"), false, false},
		{"read", tool.Read, files("search_files", "a"), true, true},
		{"*", tool.Write, files("anything", "a"), true, true},
		{"write(docs/**)", tool.Write, files("write_to_file", "docs/a.md"), true, true},
		{"write(docs/**)", tool.Write, files("write_to_file", "docs/deep/a.md"), true, true},
		{"write(docs/)", tool.Write, files("write_to_file", "docs/a.md"), true, true},
		{"write(docs/**)", tool.Write, files("write_to_file", "src/docs/a.md"), false, false},
		{"write(*.md)", tool.Write, files("write_to_file", "src/docs/a.md"), true, true},
		{"write(*.md)", tool.Write, files("write_to_file", "A.MD"), true, true},
		{"write(docs/**)", tool.Write, files("apply_patch", "docs/a.md", "src/b.go"), false, true},
		{"write(docs/**)", tool.Write, files("write_to_file", "docs/a.md", "src/a.md"), false, true}, // a link out of docs
		{"write(docs/**)", tool.Write, files("write_to_file"), false, true},                          // nobody knows what it touches
		{"write(docs/**)", tool.Write, files("write_to_file", "/docs/a.md"), false, false},
		{"write(/docs/**)", tool.Write, files("write_to_file", "/docs/a.md"), true, true},
		{"write(/docs/**)", tool.Write, files("write_to_file", "docs/a.md"), false, false},
		{"write(/**)", tool.Write, files("write_to_file", "/etc/passwd"), true, true},
		{"read(/etc/*)", tool.Read, files("read_file", "/etc/hosts"), true, true},
		{"read(/etc/*)", tool.Read, files("read_file", "/etc/../root/x"), false, false},
		{"use_mcp_tool(s/t)", mcp, files("use_mcp_tool", "s/t"), true, true},
		{"use_mcp_tool(s/t)", mcp, files("use_mcp_tool", "s/u"), false, false},
		{"use_mcp_tool(s/*)", mcp, files("use_mcp_tool", "s/u"), true, true},
		{"use_mcp_tool(s/t)", mcp, files("use_mcp_tool", "evil/../s/t"), false, true}, // the tool ../s/t of the server evil
		{"mcp(s/**)", mcp, files("use_mcp_tool", "evil/../s/t"), false, true},
		{"mcp", mcp, files("use_mcp_tool", "s/u"), true, true},
		{"mcp", tool.Write, files("write_to_file", "a"), false, false},
		{"mcp--s--t", mcp, tool.Ask{Tool: "use_mcp_tool", Title: "mcp--s--t {}", Paths: []string{"s/t"}}, true, true},
		{"mcp--s--t", mcp, tool.Ask{Tool: "use_mcp_tool", Title: "mcp--s--tt {}", Paths: []string{"s/tt"}}, false, false},
		{"web_fetch(example.com)", tool.Web, files("web_fetch", "example.com"), true, true},
		{"web_fetch(example.com)", tool.Web, files("web_fetch", "www.example.com"), false, false},
		{"web_fetch(example.com)", tool.Web, files("web_fetch", "example.com.evil.test"), false, false},
		{"web_fetch(example.com)", tool.Web, files("web_fetch", "example.com:8443", "example.com"), false, true}, // deny: every port
		{"web_fetch(example.com:8443)", tool.Web, files("web_fetch", "example.com:8443", "example.com"), true, true},
		{"web_fetch(example.com:8443)", tool.Web, files("web_fetch", "example.com"), false, false},
		{"web(*.example.com)", tool.Web, files("web_fetch", "a.b.example.com"), true, true},
		{"web(*.example.com)", tool.Web, files("web_fetch", "example.com"), false, false},
		{"web_fetch", tool.Web, files("web_fetch", "example.com"), true, true},
		{"web", tool.Read, files("read_file", "a"), false, false},
		{" write ( docs/** ) ", tool.Write, files("write_to_file", "docs/a"), true, true},
	} {
		r, err := ParseRule(tt.rule)
		if err != nil {
			t.Errorf("%q: got %v, want no error", tt.rule, err)
			continue
		}
		if got := r.coversAll(tt.class, tt.ask); got != tt.allows {
			t.Errorf("%q allows %+v: %v", tt.rule, tt.ask, got)
		}
		if got := r.coversAny(tt.class, tt.ask); got != tt.stops {
			t.Errorf("%q stops %+v: %v", tt.rule, tt.ask, got)
		}
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", " ", "()", "(a)", "write(", "write()", "write( )", "write(a", "write a", "write)", "a/b", "write(!a)", "write(#a)", "write(a\nb)", "write([)", `write(a\)`, "web_fetch(https://example.com)", "web(example.com/docs)"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
		// In a task's settings it allows nothing, and as a deny it at least asks.
		if strings.TrimSpace(text) == "" {
			continue
		}
		if d := Decide(Policy{AllowTools: []string{text}}, tool.Write, files("write_to_file", "a")); d.State != Ask {
			t.Errorf("%q allows: %+v", text, d)
		}
		if d := Decide(Policy{Mode: ModeAll, DenyTools: []string{text}}, tool.Write, files("write_to_file", "a")); d.State != Ask {
			t.Errorf("%q as a deny: %+v", text, d)
		}
	}
}

// TestWhichRuleWins: deny before ask before allow before the mode, and a protected file
// before all but deny.
func TestWhichRuleWins(t *testing.T) {
	all := Policy{Mode: ModeAll, AllowTools: []string{"write"}, AskTools: []string{"write(src/**)"}, DenyTools: []string{"write(src/gen/**)"}}
	protected := files("write_to_file", "docs/a")
	protected.Protected = true
	for _, tt := range []struct {
		p     Policy
		class tool.Class
		ask   tool.Ask
		want  State
		rule  string
	}{
		{all, tool.Write, files("write_to_file", "docs/a"), Allow, ModeAll},
		{all, tool.Write, files("write_to_file", "src/a"), Ask, "write(src/**)"},
		{all, tool.Write, files("write_to_file", "src/gen/a"), Deny, "write(src/gen/**)"},
		{all, tool.Write, protected, Ask, ModeAll},
		{Policy{AllowTools: []string{"write"}}, tool.Write, files("write_to_file", "a"), Allow, "write"},
		{Policy{AllowTools: []string{"write"}}, tool.Write, protected, Ask, ModeAsk},
		{Policy{DenyTools: []string{"write(docs/**)"}}, tool.Write, protected, Deny, "write(docs/**)"},
		{Policy{Mode: ModeAll, DenyTools: []string{"execute_command"}}, tool.Command, tool.Ask{Tool: "execute_command", Command: "ls"}, Deny, "execute_command"},
		{Policy{Mode: ModeAll, AskTools: []string{"execute_command"}}, tool.Command, tool.Ask{Tool: "execute_command", Command: "ls"}, Ask, "execute_command"},
		{Policy{AllowTools: []string{"execute_command", "*"}}, tool.Command, tool.Ask{Tool: "execute_command", Command: "ls"}, Ask, ModeAsk},
		{Policy{AllowTools: []string{"*"}}, tool.Control, tool.Ask{Tool: "ask_followup_question", Kind: "followup"}, Ask, ModeAsk},
		{Policy{AskTools: []string{"read"}}, tool.Read, files("read_file", "a"), Ask, "read"},
	} {
		if d := Decide(tt.p, tt.class, tt.ask); d.State != tt.want || d.Rule != tt.rule || d.Reason == "" {
			t.Errorf("%+v under %+v: %+v, want %s by %q", tt.ask, tt.p, d, tt.want, tt.rule)
		}
	}
}

// Whatever rules there are: one more to ask or deny never lets more through, and one
// more to allow never opens a protected file, a command, or a question to the person.
func TestMoreRules(t *testing.T) {
	rule := rapid.SampledFrom([]string{"*", "read", "write", "write_to_file", "write(docs/**)", "write(/**)", "read(*.go)", "write(", "execute_command", "  "})
	strict := map[State]int{Allow: 0, Ask: 1, Deny: 2}
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(rule, 0, 3)
		p := Policy{
			Mode:       rapid.SampledFrom([]string{ModeAsk, ModeRead, ModeEdits, ModeAll}).Draw(t, "mode"),
			AllowTools: lists.Draw(t, "allow"), AskTools: lists.Draw(t, "ask"), DenyTools: lists.Draw(t, "deny"),
		}
		class := rapid.SampledFrom([]tool.Class{tool.Read, tool.Write, tool.Command, tool.Control, mcp}).Draw(t, "class")
		ask := files(rapid.SampledFrom([]string{"read_file", "write_to_file", "execute_command"}).Draw(t, "tool"), rapid.SampledFrom([]string{"docs/a", "a.go", "/x"}).Draw(t, "path"))
		ask.Command, ask.Text, ask.Protected = "ls", "ls", rapid.Bool().Draw(t, "protected")
		before := Decide(p, class, ask)
		more := rule.Draw(t, "more")
		for name, q := range map[string]Policy{
			"ask":  {Mode: p.Mode, AllowTools: p.AllowTools, AskTools: append(p.AskTools[:len(p.AskTools):len(p.AskTools)], more), DenyTools: p.DenyTools},
			"deny": {Mode: p.Mode, AllowTools: p.AllowTools, AskTools: p.AskTools, DenyTools: append(p.DenyTools[:len(p.DenyTools):len(p.DenyTools)], more)},
		} {
			if after := Decide(q, class, ask); strict[after.State] < strict[before.State] {
				t.Fatalf("one more rule to %s, %q, turns %+v into %+v", name, more, before, after)
			}
		}
		p.AllowTools = append(p.AllowTools[:len(p.AllowTools):len(p.AllowTools)], more)
		after := Decide(p, class, ask)
		if after.State == Allow && before.State != Allow && (ask.Protected || class == tool.Command || class == tool.Control || before.State == Deny) {
			t.Fatalf("one more rule to allow, %q, turns %+v into %+v", more, before, after)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	f.Add("write(docs/**)", "docs/a")
	f.Fuzz(func(t *testing.T, rule, file string) {
		r, err := ParseRule(rule)
		if err != nil {
			return
		}
		ask := files("write_to_file", file)
		if r.coversAll(tool.Write, ask) && !r.coversAny(tool.Write, ask) {
			t.Errorf("%q allows %q and would not stop it", rule, file)
		}
	})
}
