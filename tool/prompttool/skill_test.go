package prompttool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// env is a workspace with skills, by their folders' paths, and a home folder with one.
func skillEnv(t *testing.T, mode string, files map[string]string) (tool.Env, string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name), "SKILL.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("h/.roo/skills/mine", "---\nname: mine\ndescription: My own\n---\nMine.")
	if err := os.MkdirAll(filepath.Join(dir, "w"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put("w/"+name, text)
	}
	ws, err := workspace.Open(filepath.Join(dir, "w"))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Env{Workspace: ws, Mode: mode}, filepath.Join(dir, "h")
}

func TestUseOfASkill(t *testing.T) {
	files := map[string]string{
		".roo/skills/release":        "---\nname: release\ndescription: How to \"release\"\n---\n\n1. Tag.\n2. Push.\n",
		".roo/skills-ask/explaining": "---\nname: explaining\ndescription: Explain\n---\nSay it.",
		".agents/skills/broken":      "no front matter",
	}
	for _, tt := range []struct{ mode, input, ask, want string }{
		{
			"code", `{"skill":"release","args":"1.2"}`, `{"tool":"skill","skill":"release","args":"1.2","source":"project","description":"How to \"release\""}`,
			"Skill: release\nDescription: How to \"release\"\nProvided arguments: 1.2\nSource: project\nFolder: $W/.roo/skills/release\n\n--- Skill Instructions ---\n\n1. Tag.\n2. Push.",
		},
		{
			"code", `{"skill":" mine ","args":null}`, `{"tool":"skill","skill":"mine","source":"global","description":"My own"}`,
			"Skill: mine\nDescription: My own\nSource: global\nFolder: $H/.roo/skills/mine\n\n--- Skill Instructions ---\n\nMine.",
		},
		{"ask", `{"skill":"explaining"}`, `{"tool":"skill","skill":"explaining","source":"project","description":"Explain"}`, "Skill: explaining\n"},
		{"code", `{"skill":"explaining"}`, `{"tool":"skill","skill":"explaining"}`, "Error: Skill 'explaining' not found. Available skills: mine, release"},
		{"ask", `{"skill":"broken"}`, `{"tool":"skill","skill":"broken"}`, "Error: Skill 'broken' not found. Available skills: explaining, mine, release"},
		{"code", `{"skill":"../skills/release"}`, `{"tool":"skill","skill":"../skills/release"}`, "Error: Skill '../skills/release' not found."},
		{"code", `{"skill":"release/"}`, `{"tool":"skill","skill":"release/"}`, "Error: Skill 'release/' not found."},
	} {
		e, home := skillEnv(t, tt.mode, files)
		p, err := Skill(home).Plan(t.Context(), e, json.RawMessage(tt.input))
		if err != nil {
			t.Fatal(err)
		}
		ask := p.Ask()
		if ask.Text != tt.ask || ask.Kind != "tool" || ask.Mode != "" || !esjson.Valid([]byte(ask.Text)) {
			t.Errorf("%s: ask %+v", tt.input, ask)
		}
		// Roo asks nobody about a skill.
		for _, mode := range []string{approval.ModeAsk, approval.ModeRead} {
			if d := approval.Decide(approval.Policy{Mode: mode}, skillSpec.Class, ask); d.State != approval.Allow {
				t.Errorf("%s: under %s it is %s", tt.input, mode, d.State)
			}
		}
		r, err := p.Run(t.Context(), nil)
		got := strings.NewReplacer(e.Workspace.Root(), "$W", home, "$H", `\`, "/").Replace(r.Text)
		if err != nil || !strings.HasPrefix(got, tt.want) || r.IsError != strings.HasPrefix(tt.want, "Error") {
			t.Errorf("%s: got %+v, %v, want no error and strings.HasPrefix(got, tt.want) and r.IsError = strings.HasPrefix(tt.want, \"Error\")",
				tt.input, r, err)
		}
	}
}

func TestWithoutSkills(t *testing.T) {
	p, err := Skill("").Plan(t.Context(), tool.Env{}, json.RawMessage(`{"skill":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Run(t.Context(), nil); err != nil || r.Text != "Error: Skill 'x' not found. Available skills: (none)" {
		t.Errorf("got %+v %v, want no error and r.Text = \"Error: Skill 'x' not found. Available skills: (none)\"",
			r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call says %v", err)
	}
}

func TestMistakesOfTheModel(t *testing.T) {
	for _, input := range []string{``, `[]`, `null`, `{}`, `{"skill":""}`, `{"skill":" "}`, `{"skill":3}`, `{"args":"x"}`} {
		_, err := Skill("").Plan(t.Context(), tool.Env{}, json.RawMessage(input))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Tool != SkillName || wrong.Reason == "" {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and wrong.Tool = SkillName and wrong.Reason != \"\"",
				input, err)
		}
	}
	p, err := Skill("").Plan(t.Context(), tool.Env{}, json.RawMessage(`{"skill":"x\n\u001b[2J","args":"\u202e"}`))
	if err != nil || strings.ContainsAny(p.Ask().Title, "\n\x1b\u202e") {
		t.Errorf("got %+v, %v, want no error and not strings.ContainsAny(p.Ask().Title, \"\\n\\x1b\\u202e\")",
			p, err)
	}
	r, err := p.Run(t.Context(), nil)
	if err != nil || strings.ContainsAny(r.Text, "\n\x1b") {
		t.Errorf("got %+v, %v, want no error and not strings.ContainsAny(r.Text, \"\\n\\x1b\")", r, err)
	}
}
