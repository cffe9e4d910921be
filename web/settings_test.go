package web_test

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names and commands of a project's servers, and values of the user's file, are text on the page of settings; a project
// gets nothing by being shown.
func TestHostileSettings(t *testing.T) {
	g := newBench(t)
	project := filepath.Join(g.dir, "project")
	servers := map[string]any{}
	for i, word := range hostile {
		servers[word] = map[string]any{"command": word, "args": []string{word}}
		servers["plain"+string(rune('a'+i))] = map[string]any{"url": "https://evil.example/" + word}
	}
	for path, doc := range map[string]any{
		filepath.Join(project, ".roo", "mcp.json"): map[string]any{"mcpServers": servers},
		filepath.Join(g.dir, "mcp.json"):           map[string]any{"mcpServers": servers},
	} {
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	modes := "customModes:\n  - slug: evil\n    name: \"<script>x\\u202e\"\n    roleDefinition: x\n    groups: [read]\n"
	if err := os.WriteFile(filepath.Join(project, ".roomodes"), []byte(modes), 0o600); err != nil {
		t.Fatal(err)
	}
	config := "model = \"<script>alert(1)</script>\\u202e\"\nlinter = \"\\u001b[31m<img src=x>\"\n[hooks.x]\non = \"run_end\"\ncommand = \"<svg onload=1>\"\n"
	if err := os.WriteFile(filepath.Join(g.dir, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/settings?workspace=" + project, "/settings", "/start", "/start?provider=anthropic", "/start?provider=openai-compatible", "/"} {
		resp, body := g.ask(path)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %s, want 200", path, resp.Status)
		}
		inert(t, path, body)
		if path != "/settings?workspace="+project {
			continue
		}
		for _, want := range []string{"not allowed", "roost mcp allow '", "⟦U+202E⟧", "evil"} {
			if !strings.Contains(html.UnescapeString(body), want) {
				t.Errorf("%s: lacks %q", path, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(g.dir, "mcp_allowed")); err == nil {
		t.Error("a decision about servers was recorded, want none")
	}
}

// A page that was passed on by another server offers no form for what leads elsewhere.
func TestSettingsFromElsewhere(t *testing.T) {
	g := newBench(t)
	for header, forms := range map[string]bool{"X-Nothing: 1": true, "X-Forwarded-For: 192.0.2.7": false} {
		_, body := g.ask("/settings", header)
		for _, form := range []string{`data-act="POST /v1/mcp-servers"`, `data-act="PUT /v1/providers/anthropic/key"`, `data-key="approve"`, `data-key="linter"`} {
			if strings.Contains(body, form) != forms {
				t.Errorf("with %q: has the form %s: %v, want %v", header, form, !forms, forms)
			}
		}
		if !strings.Contains(body, `data-key="model"`) {
			t.Errorf("with %q: has no form for the model", header)
		}
	}
}
