package prompttool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

func slashEnv(t *testing.T, files map[string]string) tool.Env {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, ".roo", "commands", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Env{Workspace: ws}
}

func TestRunOfASlashCommand(t *testing.T) {
	e := slashEnv(t, map[string]string{
		"ship.md":  "---\ndescription: Ship it\nargument-hint: VERSION\nmode: code\n---\nCheck, then tag.",
		"plain.md": "Just do.", "large.md": strings.Repeat("x", 300<<10),
	})
	for _, tt := range []struct{ input, ask, want string }{
		{`{"command":"ship","args":"1.2"}`, `{"tool":"runSlashCommand","command":"ship","args":"1.2","source":"project","description":"Ship it","mode":"code"}`,
			"Command: /ship\nDescription: Ship it\nArgument hint: VERSION\nMode: code\nProvided arguments: 1.2\nSource: project\n\n--- Command Content ---\n\nCheck, then tag."},
		{`{"command":" /plain ","args":null}`, `{"tool":"runSlashCommand","command":"plain","source":"project"}`, "Command: /plain\nSource: project\n\n--- Command Content ---\n\nJust do."},
		{`{"command":"nope"}`, `{"tool":"runSlashCommand","command":"nope"}`, "Error: Command 'nope' not found. Available commands: init, large, plain, ship"},
		{`{"command":"../../x"}`, `{"tool":"runSlashCommand","command":"../../x"}`, "Error: Command '../../x' not found."},
		{`{"command":"large"}`, `{"tool":"runSlashCommand","command":"large"}`, "Error: read the command /large: "},
		{`{"command":"init"}`, `{"tool":"runSlashCommand","command":"init","source":"built-in",`, "Command: /init\n"},
	} {
		p, err := SlashCommand("").Plan(t.Context(), e, json.RawMessage(tt.input))
		if err != nil {
			t.Fatal(err)
		}
		ask := p.Ask()
		if !strings.HasPrefix(ask.Text, tt.ask) || ask.Kind != "tool" || ask.Outside || ask.Protected || !esjson.Valid([]byte(ask.Text)) {
			t.Errorf("%s: ask %+v", tt.input, ask)
		}
		r, err := p.Run(t.Context(), nil)
		if err != nil || !strings.HasPrefix(r.Text, tt.want) || r.IsError != strings.HasPrefix(tt.want, "Error") {
			t.Errorf("%s: got %+v, %v, want no error and strings.HasPrefix(r.Text, tt.want) and r.IsError = strings.HasPrefix(tt.want, \"Error\")",
				tt.input, r, err)
		}
	}
}

func TestMistakesInASlashCommand(t *testing.T) {
	none := SlashCommand("")
	for _, input := range []string{``, `[]`, `{}`, `{"command":""}`, `{"command":" / "}`, `{"command":3}`} {
		_, err := none.Plan(t.Context(), tool.Env{}, json.RawMessage(input))
		var wrong *tool.InputError
		if !errors.As(err, &wrong) || wrong.Tool != "run_slash_command" || wrong.Reason == "" {
			t.Errorf(`%s: got %v, want errors.As(err, &wrong) and wrong.Tool = "run_slash_command" and wrong.Reason != ""`,
				input, err)
		}
	}
	p, err := none.Plan(t.Context(), tool.Env{}, json.RawMessage(`{"command":"x\n\u001b[2J","args":"\u202e"}`))
	if err != nil || strings.ContainsAny(p.Ask().Title, "\n\x1b\u202e") {
		t.Errorf("got %+v, %v, want no error and not strings.ContainsAny(p.Ask().Title, \"\\n\\x1b\\u202e\")",
			p, err)
	}
}

// A command that is for a mode says so to whoever decides about the call, in the same
// words as it goes there; one that cannot be used leads nowhere.
func TestWhereACommandLeads(t *testing.T) {
	e := slashEnv(t, map[string]string{"ship.md": "---\nmode: code\n---\nGo.", "plain.md": "Go.", "odd.md": "---\nmode: [code]\n---\nGo.", "large.md": "---\nmode: code\n---\n" + strings.Repeat("x", 300<<10)})
	for name, want := range map[string]string{"ship": "code", "plain": "", "odd": "", "init": "", "large": "", "none": ""} {
		p, err := SlashCommand("").Plan(t.Context(), e, json.RawMessage(`{"command":"`+name+`","args":null}`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(t.Context(), nil)
		if err != nil || p.Ask().Mode != want || r.Mode != want {
			t.Errorf("%s asks for %q and leads to %q (%v)", name, p.Ask().Mode, r.Mode, err)
		}
	}
}

// What the workspace has hides what the user's own folder has, and links lead nowhere.
func TestWhoseCommandCounts(t *testing.T) {
	e := slashEnv(t, map[string]string{"both.md": "of the project"})
	home := t.TempDir()
	for name, text := range map[string]string{"both.md": "of the user", "mine.md": "mine"} {
		path := filepath.Join(home, ".roo", "commands", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(home, "secret.md")
	if err := os.WriteFile(secret, []byte("hidden-content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(e.Workspace.Root(), ".roo", "commands", "secret.md")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]string{"both": "Source: project", "mine": "Source: global", "secret": "Error: read the command /secret: "} {
		p, err := SlashCommand(home).Plan(t.Context(), e, json.RawMessage(`{"command":"`+name+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.Run(t.Context(), nil); err != nil || !strings.Contains(r.Text, want) || strings.Contains(r.Text, "hidden-content") {
			t.Errorf("%s: got %+v %v, want no error and strings.Contains(r.Text, want) and not strings.Contains(r.Text, \"hidden-content\")",
				name, r, err)
		}
	}
	// A call that was cancelled in between says so.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := SlashCommand(home).Plan(t.Context(), e, json.RawMessage(`{"command":"mine"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
